"""Who says a text: slots and the rows that belong to them.

A slot is a text: that of a passage, which several rows may share, or that of a context, which
belongs to a stretch of rows. Slots are in the order of the passages' numbers, which only grow.
"""

import numpy as np
from numpy.typing import NDArray

from geniuzfs.recall.growing import Growing

NOWHERE = -1

GONE, SPECIAL = -1, -2
"""In place of a row: a text that nobody says any more; a context, or a text with several rows."""

Rows = NDArray[np.int32]


class Slots:
    """The slots of one folder. `ids`: numbers of their passages, ascending."""

    def __init__(self, ids: NDArray[np.int64]) -> None:
        self.ids = Growing(np.int64, ids)
        """Slot → number of the passage."""
        self.first = Growing(np.int32, np.full(len(ids), NOWHERE))
        """Slot → its first row, NOWHERE when nobody says it any more."""
        self.stretch = Growing(np.int32, np.zeros(len(ids)))
        """Slot → of a context: how many rows it stands over; of a passage: 0."""
        self.shared = Growing(np.bool_, np.zeros(len(ids)))
        """Slot → whether it has `others`."""
        self.others: dict[int, list[int]] = {}
        """Slot of a passage → its rows beside the first."""
        self.age = 0
        """How often they have changed."""

    def __len__(self) -> int:
        return len(self.ids)

    def of(self, ids: NDArray[np.int64]) -> Rows:
        """The slots of passages that are here."""
        return np.searchsorted(self.ids.held, ids).astype(np.int32)

    def known(self, ids: NDArray[np.int64]) -> Rows:
        """The slots of passages, NOWHERE for those that are not here."""
        places = np.searchsorted(self.ids.held, ids)
        if not len(self):
            return np.full(len(places), NOWHERE, np.int32)
        places[places == len(self)] = 0
        return np.where(self.ids.held[places] == ids, places, NOWHERE).astype(np.int32)

    def grow(self, ids: NDArray[np.int64]) -> None:
        """Make slots for those of `ids` that are new: greater than all there are."""
        wanted = np.unique(ids)
        new = wanted[wanted > (self.ids.held[-1] if len(self) else 0)]
        self.ids.extend(new)
        for array, empty in ((self.first, NOWHERE), (self.stretch, 0), (self.shared, False)):
            array.extend(np.full(len(new), empty, array.held.dtype))

    def take(self, begin: int, slots: Rows, contexts: Rows) -> None:
        """Enter rows from number `begin` on, with the slots of their passages and contexts."""
        self.age += 1
        rows = np.arange(begin, begin + len(slots), dtype=np.int32)
        # A context's rows are one stretch: its first row and its length say it all.
        self.first.held[contexts[::-1]] = rows[::-1]
        np.add.at(self.stretch.held, contexts, 1)
        fresh = self.first.held[slots] == NOWHERE
        self.first.held[slots[fresh][::-1]] = rows[fresh][::-1]
        more = self.first.held[slots] != rows
        for row, slot in zip(rows[more].tolist(), slots[more].tolist(), strict=True):
            self.others.setdefault(slot, []).append(row)
            self.shared.held[slot] = True

    def leave(self, begin: int, slots: Rows, contexts: Rows) -> None:
        """Give up rows that were entered so."""
        self.age += 1
        self.first.held[contexts] = NOWHERE
        self.stretch.held[contexts] = 0
        for row, slot in enumerate(slots.tolist(), begin):
            others = self.others.get(slot, [])
            if self.first.held[slot] == row:
                self.first.held[slot] = others.pop(0) if others else NOWHERE
            elif row in others:
                others.remove(row)
            if not others and self.others.pop(slot, None) is not None:
                self.shared.held[slot] = False

    def rows_of(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """Every row of these slots' passages."""
        first = self.first.held[slots]
        shared = slots[self.shared.held[slots]].tolist()
        others = [row for slot in shared for row in self.others[slot]]
        return np.concatenate((first[first >= 0], np.array(others, np.int64))).astype(np.int64)
