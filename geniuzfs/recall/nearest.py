"""The scan: how near each passage's vector is to a question's.

Hides: which model's vectors are used, that they are scanned in 8 bits, and numkong. Promises:
every vector is looked at, so no answer is lost to an index of some neighbours; vectors of another
model never come in. An exact scan of 1,000,000 takes 20 ms with numkong; numpy alone, which
serves where numkong has no build, takes 20 times as long.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geniuzfs.model import ModelId
from geniuzfs.recall.growing import Growing
from geniuzfs.store import vectors
from geniuzfs.store.transactions import View
from geniuzfs.store.vectors import Codes, Model

_cdist: Any
try:
    from numkong import cdist as _cdist
except ImportError:  # no build for this machine
    _cdist = None

_ROWS_A_STEP = 4_096
"""Rows that numpy turns to float32 at once: 6 MB."""

NONE = -1

Floats = NDArray[np.float32]


class Nearest:
    """The vectors of one folder, of the model that most passages have one of."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Hold nothing."""
        self.model: Model | None = None
        self._blocks: list[int] = []
        self._after = 0
        self._known = 0
        self._codes = Growing(np.int8, np.zeros((0, 0), np.int8))
        self._scales = Growing(np.float32)
        self._passages = Growing(np.int64)
        self._slots = Growing(np.int64)
        self.vector = np.zeros(0, np.int32)
        """Slot → number of its vector; NONE where there is none. May be shorter than the slots."""

    def __len__(self) -> int:
        return len(self._passages)

    @property
    def name(self) -> ModelId | None:
        """The model that a question must be embedded with; None: there are no vectors."""
        return None if self.model is None or not len(self) else self.model.name

    def refresh(self, view: View, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Take in new vectors, and return their slots. `ids`: slot → passage, ascending."""
        self._choose(view)
        if self.model is None:
            return np.zeros(0, np.int64)
        before = len(self)
        if not before:
            self._load(view, self.model)
        after, tail = vectors.tail(view, self.model.key, self._after)
        if len(tail.passages):
            self._take(tail)
            self._after = after
        return self._locate(before, ids)

    def scores(self, question: Floats) -> Floats:
        """The cosine of every vector with `question`, by number."""
        scales, codes = vectors.coded(question[None])
        held = self._codes.held
        dots: Floats
        if _cdist is not None:
            dots = np.asarray(_cdist(codes, held, metric="dot"))[0].astype(np.float32)
        else:
            dots = np.empty(len(held), np.float32)
            exact = codes[0].astype(np.float32)
            for first in range(0, len(held), _ROWS_A_STEP):
                step = held[first : first + _ROWS_A_STEP].astype(np.float32)
                dots[first : first + _ROWS_A_STEP] = step @ exact
        dots *= self._scales.held
        dots *= scales[0]
        return dots

    def slot_of(self, numbers: NDArray[np.int64] | slice) -> NDArray[np.int64]:
        """The slots that these vectors belong to."""
        found: NDArray[np.int64] = self._slots.held[numbers]
        return found

    def decoded(self, numbers: NDArray[np.int32]) -> Floats:
        """Vectors by number, as float32; zeros for NONE."""
        found: Floats = self._codes.held[numbers].astype(np.float32)
        found *= np.where(numbers == NONE, np.float32(0), self._scales.held[numbers])[:, None]
        return found

    def _choose(self, view: View) -> None:
        """The wanted model, unless another still has vectors of more passages."""
        if self.model is not None and self.model.wanted and self._same_wanted(view):
            return
        best = max(vectors.models(view), key=lambda model: model.vectors, default=None)
        if best is not None and (self.model is None or best.key != self.model.key):
            self.forget()
        self.model = best

    def _same_wanted(self, view: View) -> bool:
        wanted = vectors.wanted(view)
        return self.model is not None and wanted is not None and wanted[0] == self.model.key

    def _load(self, view: View, model: Model) -> None:
        self._after = vectors.sealed_through(view, model.key)
        for id_ in vectors.blocks(view, model.key):
            block = vectors.block(view, id_)
            if not len(self):
                self._codes = Growing.with_room(np.int8, model.vectors, block.codes.shape[1])
            self._take(block)

    def _take(self, codes: Codes) -> None:
        if not self._codes.held.shape[1]:  # only now is the dimension known
            self._codes = Growing(np.int8, codes.codes)
        else:
            self._codes.extend(codes.codes)
        self._scales.extend(codes.scales)
        self._passages.extend(codes.passages)

    def _locate(self, before: int, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slots of the vectors from number `before` on; enter them."""
        if len(self.vector) < len(ids):
            longer = np.full(len(ids) + len(ids) // 4, NONE, np.int32)
            longer[: len(self.vector)] = self.vector
            self.vector = longer
        fresh = self._passages.held[before:]
        if not len(fresh) or not len(ids):
            self._slots.extend(np.zeros(len(fresh), np.int64))
            return np.zeros(0, np.int64)
        slots = np.searchsorted(ids, fresh)
        slots[slots == len(ids)] = 0
        self._slots.extend(slots)
        here = ids[slots] == fresh
        self.vector[slots[here]] = np.flatnonzero(here).astype(np.int32) + before
        found: NDArray[np.int64] = slots[here]
        return found
