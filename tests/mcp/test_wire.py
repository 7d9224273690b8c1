"""Lines of bytes, however they come."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geniuzfs.mcp import wire
from geniuzfs.mcp.wire import Line, Wire


@pytest.fixture
def pipe() -> Iterator[tuple[Wire, int]]:
    read, write = os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    yield Wire(read, nowhere), write
    for descriptor in (read, nowhere):
        os.close(descriptor)


def lines(pieces: list[bytes]) -> list[Line]:
    """What comes of these pieces, each taken in by itself."""
    read, write = os.pipe()
    made, found = Wire(read, write), []
    try:
        for piece in [*pieces, b""]:
            if piece:
                os.write(write, piece)
            else:
                os.close(write)
            made.fill()
            while (line := made.next()) is not None:
                found.append(line)
    finally:
        os.close(read)
    return found


@given(st.lists(st.binary(min_size=1, max_size=20).map(lambda b: b.replace(b"x", b"\n"))))
def test_lines_are_the_same_however_they_are_cut(pieces: list[bytes]) -> None:
    whole = b"".join(pieces).split(b"\n")
    assert [line.text for line in lines(pieces)] == [line for line in whole if line.strip()]


def test_of_a_line_that_is_too_long_nothing_is_held(
    pipe: tuple[Wire, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "LONGEST", 1000)
    made, write = pipe
    for _ in range(100):
        os.write(write, b"x" * 900)
        made.fill()
        assert made.next() is None
        assert len(made._held) < 2000
    os.write(write, b"\nshort\n")
    made.fill()
    assert made.next() == Line(b"", too_long=True)
    assert made.next() == Line(b"short")
    os.close(write)


def test_the_first_line_is_there_as_soon_as_it_came(pipe: tuple[Wire, int]) -> None:
    made, write = pipe
    os.write(write, b"\n \n{}\nmore")
    assert made.first() == Line(b"{}")
    os.close(write)
    assert made.first() == Line(b"more")
    assert made.first() is None
