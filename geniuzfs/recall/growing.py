"""Arrays that grow at their end."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

_SPARE = 1.25
"""Room made at once, as a share of what is there. Memory that is not written to costs nothing."""


def _roomy(rows: int) -> int:
    return int(rows * _SPARE) + 64


class Growing:
    """An array of rows to which more can be appended: each row is copied 5 times at most."""

    def __init__(self, dtype: Any, first: NDArray[Any] | None = None) -> None:
        held = np.zeros(0, dtype) if first is None else first
        self._length = len(held)
        self._room: NDArray[Any] = np.empty((_roomy(len(held)), *held.shape[1:]), dtype)
        self._room[: self._length] = held
        self.held: NDArray[Any] = self._room[: self._length]
        """What is there. A view: it is another one after each `extend`."""

    @classmethod
    def with_room(cls, dtype: Any, rows: int, width: int) -> Self:
        """Empty, with room for so many rows and some more: nothing is copied as they come."""
        made = cls(dtype, np.zeros((0, width), dtype))
        made._room = np.empty((_roomy(rows), width), dtype)
        return made

    def __len__(self) -> int:
        return self._length

    def extend(self, more: NDArray[Any]) -> None:
        """Append rows."""
        end = self._length + len(more)
        if end > len(self._room):
            room = np.empty((_roomy(end), *self._room.shape[1:]), self._room.dtype)
            room[: self._length] = self.held
            self._room = room
        self._room[self._length : end] = more
        self._length = end
        self.held = self._room[:end]
