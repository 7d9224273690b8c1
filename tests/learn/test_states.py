"""Which bytes are text to be learned."""

import pytest

from geniuzfs.learn.states import TEXT_MAX, State, read_text


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", State.EMPTY),
        (b" \n\t\r\n\xe2\x80\xa8", State.EMPTY),
        (b"\xef\xbb\xbf\n", State.EMPTY),
        (b"caf\xe9", State.NOT_TEXT),
        (b"a\0b", State.NOT_TEXT),
        (b"\xed\xa0\x80", State.NOT_TEXT),
        (b"a" * TEXT_MAX, "a" * TEXT_MAX),
        (b"a" * (TEXT_MAX + 1), State.TOO_LONG),
        ("\U0001f389" * TEXT_MAX, "\U0001f389" * TEXT_MAX),
        (b"a" * (4 * TEXT_MAX + 1), State.TOO_LONG),
        (b"a\r\n\xf0\x9f\x8e\x89", "a\r\n\U0001f389"),
        (b"\xef\xbb\xbfa", "\ufeffa"),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_bytes_are_text_or_the_reason_why_not(data: bytes | str, expected: str) -> None:
    found = read_text(data.encode() if isinstance(data, str) else data)
    assert found == expected
    assert type(found) is type(expected)


def test_the_words_that_the_attribute_shows() -> None:
    assert list(State) == ["learned", "waiting", "empty", "not-text", "too-long", "ignored"]
