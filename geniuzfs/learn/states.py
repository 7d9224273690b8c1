"""Whether a file's bytes are text that can be learned, and the word for it if not."""

from enum import StrEnum

TEXT_MAX = 2_000_000
"""Characters of a text that is learned."""


class State(StrEnum):
    """What `user.geniuz.state` says of a file."""

    LEARNED = "learned"
    WAITING = "waiting"
    EMPTY = "empty"
    NOT_TEXT = "not-text"
    TOO_LONG = "too-long"
    IGNORED = "ignored"


def read_text(data: bytes) -> str | State:
    """The bytes as text, or why there is none to learn: NOT_TEXT (not UTF-8, or it has a NUL),
    TOO_LONG, EMPTY (white space alone). A byte order mark stays, so that offsets are the file's.
    """
    # A character has at most 4 bytes: nothing is decoded in vain.
    if b"\0" in data:
        return State.NOT_TEXT
    if len(data) > 4 * TEXT_MAX:
        return State.TOO_LONG
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return State.NOT_TEXT
    if len(text) > TEXT_MAX:
        return State.TOO_LONG
    if not text.removeprefix("\ufeff").strip():
        return State.EMPTY
    return text
