"""What may be asked about files: paths, texts, labels, pages, and a question's filters.

Hides: which character or length is refused, and why. Promises: pure; every door refuses the same,
before anything is looked at or changed, with one line that says what is allowed. Refuses: to put
anything right: a path or text that was changed a little is another one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import TypedDict

from geniuzfs.errors import BadPath, UsageError
from geniuzfs.model import NAME_MAX, RESERVED

PATH_MAX = 255
"""Characters of a path, its first `/` among them."""

TEXT_MAX = 2_000_000
"""Characters of a text: what can be learned whole."""

LABELS_MAX = 20
LABEL_KEY_MAX = 64
LABEL_VALUE_MAX = 1_000
"""Pairs; characters of a key; characters of a value."""

PAGE, PAGE_MAX = 100, 200
"""Files on a page: unless asked otherwise, and at most."""

When = str | date
"""As in a question (`7d`, `2026-10-01`), or a date or datetime; one without a zone is local."""


class Filters(TypedDict, total=False):
    """What a question may be kept to; None as if it were not there."""

    since: When | None
    until: When | None
    on: When | None
    path: str | None
    labels: Mapping[str, str] | None
    mode: str | None
    """`auto`, `words`, `meaning`, `grep`, `thread`, `recent`, `random`."""


_FILTERS = ("limit", *Filters.__annotations__)


# C0, DEL and C1; half a character, which is no UTF-8.
_REFUSED = re.compile(r"[\0-\x1f\x7f-\x9f\ud800-\udfff\\]")
_HALF = re.compile(r"[\ud800-\udfff]")
_ESCAPED = re.compile(r"[\udc80-\udcff]")
# A key that an operator could not be written with: label:key=value.
_NO_KEY = re.compile(r"[\s=\"“«„「\0-\x1f\x7f-\x9f\ud800-\udfff]")
_NO_VALUE = re.compile(r"[\0-\x1f\x7f-\x9f\ud800-\udfff]")
_RESERVED = {name.decode() for name in RESERVED}


def path(given: object) -> str:
    """The path of a file: `/drafts/plan.md`. Raises BadPath."""
    held = _characters(given)
    if held.endswith("/"):
        raise BadPath(f"{_shown(held)} ends with /: that is no file")
    _parts(held, held[1:].split("/"))
    return held


def means_all(given: object) -> bool:
    """Whether a path means everything beneath a directory, and not a file."""
    return isinstance(given, str) and given.endswith("/")


def directory(given: object) -> str:
    """A path that stands for all beneath it: `/drafts/`. Raises BadPath."""
    held = _characters(given)
    if held == "/" or not held.endswith("/"):
        raise BadPath(f"{_shown(held)} is no directory: write /drafts/")
    _parts(held, held[1:-1].split("/"))
    return held


def prefix(given: object) -> str:
    """What paths begin with: `/`, `/dra`, `/drafts/`. Raises BadPath."""
    held = _characters(given)
    *above, _ = held[1:].split("/")
    _parts(held, above)
    return held


def text(given: object) -> str:
    """A text that can be a file's. Raises UsageError."""
    if not isinstance(given, str):
        raise UsageError(f"a text is a string, not {type(given).__name__}")
    if len(given) > TEXT_MAX:
        raise UsageError(f"a text has at most {TEXT_MAX:,} characters, not {len(given):,}")
    if "\0" in given:
        raise UsageError("a text has no NUL in it")
    if _HALF.search(given):
        raise UsageError("a text has no half characters (lone surrogates) in it")
    return given


def labels(given: object) -> dict[str, str]:
    """Labels, key → value: up to LABELS_MAX. Raises UsageError."""
    if not isinstance(given, Mapping):
        raise UsageError("labels are pairs of key and value: {'channel': 'claude'}")
    if len(given) > LABELS_MAX:
        raise UsageError(f"a file has at most {LABELS_MAX} labels, not {len(given)}")
    for key, value in given.items():
        if not isinstance(key, str) or _NO_KEY.search(key) or not 0 < len(key) <= LABEL_KEY_MAX:
            raise UsageError(
                f"{_shown(key)} is no label's key: 1 to {LABEL_KEY_MAX} characters, without white"
                " space, quotes and ="
            )
        if not isinstance(value, str) or _NO_VALUE.search(value) or not value:
            raise UsageError(f"{_shown(value)} is no label's value: write text on one line")
        if len(value) > LABEL_VALUE_MAX:
            raise UsageError(f"a label's value has at most {LABEL_VALUE_MAX:,} characters")
    return dict(given)


def page(limit: object, cursor: object) -> tuple[int, str]:
    """How many, and after which key; "" is before all. Raises UsageError."""
    if not isinstance(limit, int) or not 1 <= limit <= PAGE_MAX:
        raise UsageError(f"a page has from 1 to {PAGE_MAX} files, not {_shown(limit)}")
    if cursor is not None and (not isinstance(cursor, str) or _HALF.search(cursor)):
        raise UsageError("the cursor is what .next of the page before says")
    return limit, cursor or ""


def version(given: object) -> str | None:
    """What a file is supposed to be: a version, "" for none yet, None: no matter what.
    Raises UsageError.
    """
    if given is not None and not isinstance(given, str):
        raise UsageError("if_version is what .version of an answer says, or '' for a new file")
    return given


def operators(filters: Mapping[str, object]) -> list[tuple[str, str]]:
    """Filters as a question's operators, (key, value): `recall.query` reads both alike. None is
    left out. Raises UsageError, also for a filter that there is not.
    """
    given: list[tuple[str, str]] = []
    for key, value in filters.items():
        if key not in _FILTERS:
            raise UsageError(f"there is no filter {_shown(key)}: only {', '.join(_FILTERS)}")
        if key == "labels" and value is not None:
            given += [("label", label) for label in _labelled(value)]
        elif value is not None:
            given.append((key, _written(value)))
    for key, written in given:
        # Bytes that are no UTF-8, as a hit's path may have, are half characters of their own.
        if _HALF.search(_ESCAPED.sub("", written)):
            raise UsageError(f"{key}: {_shown(written)} has half a character in it")
    return given


def _labelled(given: object) -> Iterator[str]:
    if not isinstance(given, Mapping):
        raise UsageError("labels are pairs of key and value: {'channel': 'claude'}")
    for key, value in given.items():
        if not isinstance(key, str) or not isinstance(value, str) or "=" in key:
            raise UsageError(f"{_shown(key)} is no label's key, or its value no string")
        yield f"{key}={value}"


def _written(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return value.isoformat() if isinstance(value, date) else str(value)


def _characters(given: object) -> str:
    if not isinstance(given, str):
        raise BadPath(f"a path is a string, not {type(given).__name__}")
    if not given.startswith("/"):
        raise BadPath(f"{_shown(given)} does not start with /")
    if len(given) > PATH_MAX:
        raise BadPath(f"a path has at most {PATH_MAX} characters, this one {len(given)}")
    if _REFUSED.search(given):
        raise BadPath(f"{_shown(given)} has a backslash, control character or half a character")
    return given


def _parts(whole: str, parts: Sequence[str]) -> None:
    for part in parts:
        if part in ("", ".", ".."):
            raise BadPath(f"{_shown(whole)} has a part that is empty, . or ..")
        if part in _RESERVED:
            raise BadPath(f"{_shown(whole)}: {part} is what a mount answers with, and no file")
        if len(part) > NAME_MAX // 4 and len(part.encode()) > NAME_MAX:
            raise BadPath(f"a name has at most {NAME_MAX} bytes: {_shown(part)}")


def _shown(value: object) -> str:
    """In quotes, on one line and not long."""
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:59] + "…"
