"""Arrays that grow at their end."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SPARE = 1.25
"""Room made at once, as a share of what is there."""


class Growing:
    """An array of rows to which more can be appended: each row is copied 5 times at most."""

    def __init__(self, dtype: Any, parts: Sequence[NDArray[Any]]) -> None:
        held = np.concatenate(parts) if parts else np.zeros(0, dtype)
        self._room: NDArray[Any] = held.astype(dtype, copy=False)
        if not self._room.flags.writeable or self._room.base is not None:
            self._room = self._room.copy()
        self._length = len(held)
        self.held: NDArray[Any] = self._room[: self._length]
        """What is there. A view: it is another one after each `extend`."""

    def __len__(self) -> int:
        return self._length

    def extend(self, more: NDArray[Any]) -> None:
        """Append rows."""
        end = self._length + len(more)
        if end > len(self._room):
            room = np.empty((int(end * _SPARE) + 64, *self._room.shape[1:]), self._room.dtype)
            room[: self._length] = self.held
            self._room = room
        self._room[self._length : end] = more
        self._length = end
        self.held = self._room[:end]
