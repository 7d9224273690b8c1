"""What recall holds in memory of one folder, and how it keeps up.

Hides: how passages, the places where they stand, terms and vectors are laid out in arrays.
Promises: `refresh` brings the index to the newest commit, at a cost that goes with what has
changed; everything is read in one snapshot. Refuses: to score anything.

A *row* is a passage in its place in a file; a file's rows are neighbours, in order. Its text and
that of its context are *slots* (recall.slots). Rows of a file that was learned anew are given up
and appended as new ones; when half of all rows are given up, the index is loaded again.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geniuzfs.recall.growing import Growing
from geniuzfs.recall.nearest import Nearest
from geniuzfs.recall.rank import REACH
from geniuzfs.recall.segments import Segments
from geniuzfs.recall.slots import NOWHERE, Slots
from geniuzfs.store import passages
from geniuzfs.store.passages import ROW, Source, SourceId
from geniuzfs.store.transactions import View

FOLLOWED = 10_000
"""Sources that are brought up to date one by one (20 us each); of more, all is loaded again."""


@dataclass(slots=True)
class Place:
    """A source and where its rows lie: first <= row < end."""

    source: SourceId
    memory: str | None
    first: int
    end: int


class Index:
    """One folder's index. For one thread at a time."""

    def __init__(self, view: View) -> None:
        self.nearest = Nearest()
        self._gone: tuple[tuple[int, int], NDArray[np.int64]] = (-1, -1), np.zeros(0, np.int64)
        self._load(view)

    # What there is

    rows: Growing
    """Structured as store.passages.ROW."""
    slot: Growing
    """Row → the slot of its passage."""
    context: Growing
    """Row → the slot of its context."""
    place: Growing
    """Row → number of its place; NOWHERE once the row is given up."""
    lengths: dict[str, Growing]
    """"words" and "grams" → row → how many its passage has: of `rows`, once more in a row."""
    norm: Growing
    """Row → length of its windowed vector; 0: not worked out yet (recall.gather does)."""
    places: list[Place | None]
    is_memory: Growing
    """Number of a place → whether it is a kept memory."""
    memories: int
    memory_rows: int
    """How many memories there are, and rows of theirs."""
    slots: Slots
    segments: Segments
    _seq: int
    """Of the last of `learnings` that was taken in."""
    _given_up: int
    _numbers: dict[SourceId, int]
    """Source → number of its place."""

    @property
    def passages(self) -> int:
        """Rows that are there."""
        return len(self.rows) - self._given_up

    def refresh(self, view: View) -> None:
        """Take in what was committed since. `view` must be one snapshot."""
        changed = passages.learnings(view, self._seq, FOLLOWED)
        if changed is None or self._given_up > max(len(self.rows) // 2, 4_096):
            self._load(view)
            return
        if changed:
            self._seq = passages.newest_learning(view)
            self._follow(view, changed)
        self.segments.follow(view)
        self._follow_vectors(view)

    def gone(self) -> NDArray[np.int64]:
        """Numbers of vectors whose text nobody says any more."""
        asked = (self.slots.age, len(self.nearest))
        if self._gone[0] != asked:
            slots = self.nearest.slot_of(slice(None))
            self._gone = asked, np.flatnonzero(self.slots.first.held[slots] == NOWHERE)
        return self._gone[1]

    def number_of(self, source: SourceId) -> int | None:
        """The number of a source's place; None: it has no rows here."""
        return self._numbers.get(source)

    # Loading and following

    def _load(self, view: View) -> None:
        self._seq = passages.newest_learning(view)
        found, every = passages.sources(view)
        self._given_up = 0
        self.rows = Growing(ROW, every)
        rows = self.rows.held
        texts, contexts = rows["passage"], rows["context"]
        ids = np.sort(np.concatenate((texts, contexts)))
        self.slots = Slots(ids[np.diff(ids, prepend=-1) > 0])  # np.unique: 0.5 s longer
        self.slot = Growing(np.int32, self.slots.of(texts))
        self.context = Growing(np.int32, self.slots.of(contexts))
        self.place = Growing(
            np.int32, np.repeat(np.arange(len(found)), [len(source.rows) for source in found])
        )
        self.lengths = {kind: Growing(np.float32, rows[kind]) for kind in ("words", "grams")}
        self.norm = Growing(np.float32, np.zeros(len(rows), np.float32))
        self.places, self._numbers = [], {}
        self.is_memory = Growing(
            np.bool_, np.array([source.memory is not None for source in found], np.bool_)
        )
        self.memories = self.memory_rows = 0
        end = 0
        for source in found:
            end = self._add_place(source, end)
        self.slots.take(0, self.slot.held, self.context.held)
        self.segments = Segments(self.slots)
        self.segments.follow(view)
        self._gone = (-1, -1), np.zeros(0, np.int64)
        self.nearest.forget()
        self.nearest.refresh(view, self.slots.ids.held)

    def _add_place(self, source: Source, first: int) -> int:
        end = first + len(source.rows)
        self._numbers[source.id] = len(self.places)
        self.places.append(Place(source.id, source.memory, first, end))
        if source.memory is not None:
            self.memories += 1
            self.memory_rows += end - first
        return end

    def _follow(self, view: View, changed: list[SourceId]) -> None:
        for id_ in changed:
            number = self._numbers.pop(id_, None)
            if number is not None:
                self._give_up(number)
        now = (passages.source(view, id_) for id_ in changed)
        found = [source for source in now if source is not None and len(source.rows)]
        if not found:
            return
        begin = len(self.rows)
        self.rows.extend(np.concatenate([source.rows for source in found]))
        rows = self.rows.held[begin:]
        self.slots.grow(np.concatenate((rows["passage"], rows["context"])))
        self.slot.extend(self.slots.of(rows["passage"]))
        self.context.extend(self.slots.of(rows["context"]))
        for kind, lengths in self.lengths.items():
            lengths.extend(rows[kind])
        self.norm.extend(np.zeros(len(rows), np.float32))
        end = begin
        for source in found:
            number = len(self.places)
            self.place.extend(np.full(len(source.rows), number, np.int32))
            self.is_memory.extend(np.array([source.memory is not None]))
            end = self._add_place(source, end)
        self.slots.take(begin, self.slot.held[begin:], self.context.held[begin:])

    def _give_up(self, number: int) -> None:
        place = self.places[number]
        if place is None:
            return
        self.places[number] = None
        span = slice(place.first, place.end)
        self.place.held[span] = NOWHERE
        self._given_up += place.end - place.first
        if place.memory is not None:
            self.memories -= 1
            self.memory_rows -= place.end - place.first
        self.slots.leave(place.first, self.slot.held[span], self.context.held[span])

    def _follow_vectors(self, view: View) -> None:
        """Take in new vectors; what they count for is worked out anew."""
        rows = self.slots.rows_of(self.nearest.refresh(view, self.slots.ids.held))
        for distance in range(-REACH, REACH + 1):
            near = rows + distance
            self.norm.held[near[(near >= 0) & (near < len(self.norm))]] = 0
