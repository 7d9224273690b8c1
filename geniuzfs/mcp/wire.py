"""Standard input and output as a wire: lines of bytes, and nothing but the protocol on it.

Hides: that the descriptors are moved away, so that whatever prints or reads by mistake, a library
or a child process, meets standard error and an empty input instead. Promises: a line is at most
`LONGEST`; of a longer one nothing is held. Needs no SDK: the first line comes before that.
"""

import os
import select
from typing import NamedTuple, Self

from geniuzfs.errors import UsageError

LONGEST = 32 * 1024 * 1024
"""Bytes in a message: a text of 2,000,000 characters, each written as an escape of 12."""

_PIECE = 64 * 1024

WRITES = 4096
"""Bytes written at once: a pipe or socket that says it can be written takes so many (PIPE_BUF)
without making the writer wait.
"""


class Line(NamedTuple):
    """A message's bytes without their newline."""

    text: bytes
    too_long: bool = False
    """It had more than LONGEST bytes, and they are gone."""


class Wire:
    """A pair of descriptors. One reader and one writer at a time."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming = incoming
        self.outgoing = outgoing
        self._held = bytearray()
        self._looked = 0
        """Bytes of `_held` that are known to hold no newline."""
        self._dropping = False
        self._ended = False

    @classmethod
    def claim(cls) -> Self:
        """Take standard input and output. Raises UsageError where they are closed."""
        try:
            for each in (0, 1):  # before one is copied: the copy takes the place of a closed one
                os.fstat(each)
        except OSError as error:
            raise UsageError("standard input and output must be open") from error
        _have_standard_error()
        wire = cls(os.dup(0), os.dup(1))
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return wire

    def first(self) -> Line | None:
        """The first line, when it is there; None at the end. Waits."""
        while (line := self.next()) is None:
            if not self.fill():
                return self.next()
        return line

    def fill(self) -> bool:
        """Take in what has come; False at the end. Waits where nothing has."""
        more = os.read(self.incoming, _PIECE)
        self._ended = not more
        self._held += more
        return bool(more)

    def next(self) -> Line | None:
        """The next line of what was taken in, if all of it has come. Empty lines are none."""
        while (end := self._held.find(b"\n", self._looked)) >= 0:
            line = bytes(self._held[:end])
            del self._held[: end + 1]
            self._looked, dropped, self._dropping = 0, self._dropping, False
            if dropped:
                return Line(b"", too_long=True)
            if line.strip():
                return Line(line)
        if len(self._held) > LONGEST:
            self._dropping = True
        if self._dropping:
            self._held.clear()
        self._looked = len(self._held)
        if self._ended and self._held.strip():  # the last one may come without a newline
            line = bytes(self._held)
            self._held.clear()
            return Line(line)
        return None

    def write(self, data: bytes | memoryview) -> None:
        """Send all of `data`. Waits for a reader. Raises BrokenPipeError when there is none."""
        while data:
            data = data[os.write(self.outgoing, data[:WRITES]) :]

    def takes(self) -> bool:
        """Whether WRITES bytes can be written at once without waiting."""
        poll = select.poll()
        poll.register(self.outgoing, select.POLLOUT)
        return bool(poll.poll(0))


def _have_standard_error() -> None:
    """Where it is closed, what goes there goes nowhere: not into what is opened next."""
    try:
        os.fstat(2)
    except OSError:
        nothing = os.open(os.devnull, os.O_WRONLY)
        if nothing != 2:
            os.dup2(nothing, 2)
            os.close(nothing)
