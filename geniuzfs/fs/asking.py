"""`.recall/ask`: a question is written to an open file and its answer read back from it.

Hides: how an answer is placed in a file that has one position for writing and reading.
The rule: what is written before the first read is the question. If the first read after it
is where the question ended, as in a shell (`echo q >&3; cat <&3`), the answer begins there;
if it is before, as after seek(0), the answer begins at 0. A later read from before the
answer's begin turns to 0 as well. A write after a read begins a new question.
Each open file has a question of its own.
"""

import errno
from collections.abc import Awaitable, Callable

from pyfuse3 import FUSEError

QUESTION_MAX = 65_536
"""Bytes in a question."""

UNASKED = b"""\
Write a question to this file and read the answer back from the same open file:
exec 3<>.recall/ask; echo 'what did we decide about pricing' >&3; cat <&3; exec 3>&-
"""


class Asked:
    """An open `.recall/ask`. `answer`: from a question to its answer."""

    __slots__ = ("_answer", "_begin", "_complete", "_end", "_question", "_text")

    def __init__(self, answer: Callable[[bytes], Awaitable[bytes]]) -> None:
        self._answer = answer
        self._question = b""
        self._end = 0
        """Where the question's last byte was written, plus 1."""
        self._begin = 0
        self._complete = False
        """It has been read since: what is written now is another question."""
        self._text: bytes | None = None

    def write(self, offset: int, data: bytes) -> int:
        """Take a question, or more of one. Raises FUSEError when it becomes too long."""
        before = b"" if self._complete else self._question
        if len(before) + len(data) > QUESTION_MAX:
            raise FUSEError(errno.EFBIG)
        self._question, self._text, self._complete = before + data, None, False
        self._end = offset + len(data)
        return len(data)

    async def read(self, offset: int, size: int) -> bytes:
        """A part of the answer, which the first read after a question gets."""
        self._complete = True
        if self._text is None:
            question = self._question.strip()
            text = await self._answer(question) if question else UNASKED
            self._text, self._begin = text, self._end if offset >= self._end else 0
        if offset < self._begin:
            self._begin = 0
        return self._text[offset - self._begin : offset - self._begin + size]
