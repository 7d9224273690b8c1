"""What has a second implementation: the clock, and what turns texts into vectors."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from geniuzfs.model import ModelId

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
else:

    class Vectors:
        """Stands for the array in annotations: numpy takes 100 ms to import."""


class Clock(Protocol):
    """Tells the time; tests bring one that stands still."""

    def now_ns(self) -> int:
        """Nanoseconds since 1970, UTC."""


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        return time.time_ns()


class Embedder(Protocol):
    """Turns texts into vectors of length 1. Blocks; may be used from several threads at once.

    Every method raises ModelUnavailable when there is no model, or no helper that holds it.
    """

    def model(self) -> ModelId:
        """The id of the model that is chosen now: what new vectors are stamped with."""

    def passages(self, texts: Sequence[str], model: ModelId) -> Vectors:
        """One row a text: (len(texts), dimension), float32, each of length 1. A text beyond the
        model's token limit is cut there. Any number of texts; the caller is not in a hurry.
        """

    def query(self, text: str, model: ModelId, seconds: float) -> Vectors:
        """The vector of a question: (dimension,), float32, of length 1. Raises TooLate when it
        is not there after `seconds`.
        """
