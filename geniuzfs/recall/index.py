"""What recall holds in memory of one folder, and how it keeps up.

Hides: how passages, the places where they stand, terms and vectors are laid out in arrays.
Promises: `refresh` brings the index to the newest commit, at a cost that goes with what has
changed; everything is read in one snapshot. Refuses: to score anything.

A *row* is a passage in its place in a file; a file's rows are neighbours, in order. A *slot* is a
text: that of a passage, which several rows may share, or that of a context, which belongs to a
stretch of rows. Rows of a file that was learned anew are given up and appended as new ones;
when half of all rows are given up, the index is loaded again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geniuzfs.recall.growing import Growing
from geniuzfs.recall.nearest import Nearest
from geniuzfs.recall.occurrences import Found, Occurrences, Part, joined, taken
from geniuzfs.recall.rank import REACH
from geniuzfs.store import passages, postings
from geniuzfs.store.passages import ROW, Source, SourceId
from geniuzfs.store.postings import Keys, Picked, Postings, Segment
from geniuzfs.store.transactions import View

FOLLOWED = 10_000
"""Sources that are brought up to date one by one (20 us each); of more, all is loaded again."""

_CACHED_BYTES = 96 * 1024 * 1024
"""Of decoded buckets of large segments."""

POSTINGS = 300_000
"""Postings that one question reads at most, of words and of n-grams each: 8 ms."""

TELLING = 50
"""Passages that may all hold a term which is still worth asking for."""

NOWHERE = -1

GONE, SPECIAL = -1, -2
"""In place of a row: a text that nobody says any more; a context, or a text with several rows."""

Slots = NDArray[np.int32]


@dataclass(slots=True)
class Place:
    """A source and where its rows lie: first <= row < end."""

    source: SourceId
    inode: int | None
    memory: str | None
    first: int
    end: int


class _Held:
    """A segment in memory: its passages as slots; its terms, where they are few."""

    def __init__(self, view: View, held: Segment, ids: NDArray[np.int64]) -> None:
        self.id = held.id
        self.buckets = held.buckets
        places = np.searchsorted(ids, held.passages)
        places[places == len(ids)] = 0
        found = ids[places] == held.passages if len(ids) else np.zeros(len(places), np.bool_)
        self.slots = np.where(found, places, NOWHERE).astype(np.int32)
        self.rows = self.slots
        """Ordinal → row of a passage that stands in one place; else GONE or SPECIAL."""
        self.age = -1
        """Of the index when `rows` was worked out."""
        self.whole = postings.bucket(view, held.id, 0) if held.buckets == 1 else None


class Index:
    """One folder's index. For one thread at a time."""

    def __init__(self, view: View) -> None:
        self.nearest = Nearest()
        self._age = 0
        self._gone: tuple[tuple[int, int], NDArray[np.int64]] = (-1, -1), np.zeros(0, np.int64)
        self._buckets: dict[tuple[int, int], Postings] = {}
        self._cached = 0
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
    ids: Growing
    """Slot → number of the passage, ascending."""
    first: Growing
    """Slot → its first row, NOWHERE when nobody says it any more."""
    stretch: Growing
    """Slot → of a context: how many rows it stands over; of a passage: 0."""
    others: dict[int, list[int]]
    """Slot of a passage → its rows beside the first."""
    shared: Growing
    """Slot → whether it has `others`."""
    _seq: int
    """Of the last of `learnings` that was taken in."""
    _given_up: int
    _numbers: dict[SourceId, int]
    """Source → number of its place."""
    _segments: dict[int, _Held]
    _age: int
    """How often rows have changed."""

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
            self._age += 1
            self._follow(view, changed)
        self._follow_segments(view)
        self._follow_vectors(view)

    def find(self, view: View, keys: Keys) -> Found:
        """Where terms stand. Of very many postings, those of the rarest terms (POSTINGS)."""
        parts = [(held, list(self._parts(view, held, keys))) for held in self._segments.values()]
        everywhere = np.zeros(len(keys), np.int64)
        for _, found in parts:
            for part, places, at in found:
                everywhere[places] += part.lengths(at)
        read = self._worth_reading(everywhere)
        passages: list[Occurrences] = []
        contexts: list[Occurrences] = []
        for held, found in parts:
            if here := [taken(*one, read) for one in found if read[one[1]].any()]:
                self._place(held, joined(here), passages, contexts)
        return Found(joined(passages), joined(contexts), everywhere, read)

    def anywhere(self, view: View, keys: Keys) -> NDArray[np.bool_]:
        """Which of these terms stand anywhere, in whatever scope."""
        found = np.zeros(len(keys), np.bool_)
        for held in self._segments.values():
            for _, places, _ in self._parts(view, held, keys):
                found[places] = True
        return found

    def gone(self) -> NDArray[np.int64]:
        """Numbers of vectors whose text nobody says any more."""
        asked = (self._age, len(self.nearest))
        if self._gone[0] != asked:
            slots = self.nearest.slot_of(slice(None))
            self._gone = asked, np.flatnonzero(self.first.held[slots] == NOWHERE)
        return self._gone[1]

    def number_of(self, source: SourceId) -> int | None:
        """The number of a source's place; None: it has no rows here."""
        return self._numbers.get(source)

    # Terms

    def _parts(self, view: View, held: _Held, keys: Keys) -> Iterator[Part]:
        """What of a segment holds any of `keys`: which of them, and where there."""
        if held.whole is not None:
            yield held.whole, *held.whole.find(keys)
            return
        picked, places = Picked(), []
        for place, key in enumerate(keys.tolist()):
            part = self._bucket(view, held.id, postings.bucket_of(key, held.buckets))
            first, end = part.slice(key)
            if end:
                picked.add(part, first, end)
                places.append(place)
        yield picked, np.array(places, np.int64), np.arange(len(places))

    def _worth_reading(self, everywhere: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Terms that half of all passages hold say nothing; of the others, the rarest."""
        order = np.argsort(everywhere, kind="stable")
        read = np.zeros(len(everywhere), np.bool_)
        read[order] = np.cumsum(everywhere[order]) <= POSTINGS
        telling = read & (everywhere <= max(self.passages // 2, TELLING))
        return telling if (everywhere[telling] > 0).any() else read

    def _place(
        self,
        held: _Held,
        here: Occurrences,
        passages: list[Occurrences],
        contexts: list[Occurrences],
    ) -> None:
        """Add occurrences in a segment, by ordinal, to those by row and by slot."""
        rows = self._rows_of(held)[here.where]
        plain = rows >= 0
        if plain.all():
            passages.append(here._replace(where=rows))
            return
        passages.append(here._replace(where=rows).only(plain))
        if (special := rows == SPECIAL).any():
            here = here.only(special)
            here = here._replace(where=held.slots[here.where])
            above = self.stretch.held[here.where] > 0
            contexts.append(here.only(above))
            here = here.only(~above)
            passages.append(here._replace(where=self.first.held[here.where]))
            passages.append(self._elsewhere(here))

    def _rows_of(self, held: _Held) -> Slots:
        """Worked out again after each change: 0.3 ms for 65,536. To look up slot, row, stretch and
        twins of each posting took 6 ms of a question to 100,000 passages.
        """
        if held.age != self._age:
            first = self.first.held[held.slots]
            gone = (held.slots < 0) | (first < 0)
            special = (self.stretch.held[held.slots] > 0) | self.shared.held[held.slots]
            held.rows = np.where(gone, GONE, np.where(special, SPECIAL, first)).astype(np.int32)
            held.age = self._age
        return held.rows

    def _elsewhere(self, shared: Occurrences) -> Occurrences:
        """The same, at the other rows that say these texts."""
        rows = [self.others[slot] for slot in shared.where.tolist()]
        times = [len(each) for each in rows]
        return Occurrences(
            np.repeat(shared.terms, times),
            np.array([row for each in rows for row in each], np.int32),
            np.repeat(shared.counts, times),
        )

    def _bucket(self, view: View, segment: int, number: int) -> Postings:
        held = self._buckets.get((segment, number))
        if held is None:
            held = postings.bucket(view, segment, number)
            if self._cached > _CACHED_BYTES:
                self._buckets.clear()
                self._cached = 0
            self._buckets[segment, number] = held
            self._cached += held.ordinals.nbytes * 3 // 2 + held.keys.nbytes * 2
        return held

    # Loading and following

    def _load(self, view: View) -> None:
        self._seq = passages.newest_learning(view)
        self._age += 1
        found, every = passages.sources(view)
        self._given_up = 0
        self.rows = Growing(ROW, every)
        rows = self.rows.held
        texts, contexts = rows["passage"], rows["context"]
        ids = np.sort(np.concatenate((texts, contexts)))
        self.ids = Growing(np.int64, ids[np.diff(ids, prepend=-1) > 0])  # np.unique: 0.5 s longer
        ids = self.ids.held
        self.slot = Growing(np.int32, np.searchsorted(ids, texts))
        self.context = Growing(np.int32, np.searchsorted(ids, contexts))
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
        self.first = Growing(np.int32, np.full(len(ids), NOWHERE))
        self.stretch = Growing(np.int32, np.zeros(len(ids)))
        self.shared = Growing(np.bool_, np.zeros(len(ids)))
        self.others = {}
        self._take_slots(0)
        self._segments = {}
        self._buckets.clear()
        self._cached = 0
        self._follow_segments(view)
        self.nearest.forget()
        self.nearest.refresh(view, ids)

    def _add_place(self, source: Source, first: int) -> int:
        end = first + len(source.rows)
        self._numbers[source.id] = len(self.places)
        self.places.append(Place(source.id, source.inode, source.memory, first, end))
        if source.memory is not None:
            self.memories += 1
            self.memory_rows += end - first
        return end

    def _take_slots(self, begin: int) -> None:
        """Enter the rows from `begin` on with the slots that they name."""
        rows = np.arange(begin, len(self.rows), dtype=np.int32)
        slots, contexts = self.slot.held[begin:], self.context.held[begin:]
        # A context's rows are one stretch: its first row and its length say it all.
        self.first.held[contexts[::-1]] = rows[::-1]
        self.stretch.held[:] += np.bincount(contexts, minlength=len(self.stretch)).astype(np.int32)
        fresh = self.first.held[slots] == NOWHERE
        self.first.held[slots[fresh][::-1]] = rows[fresh][::-1]
        for row in rows[self.first.held[slots] != rows].tolist():
            slot = int(self.slot.held[row])
            self.others.setdefault(slot, []).append(row)
            self.shared.held[slot] = True

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
        both = np.unique(np.concatenate((rows["passage"], rows["context"])))
        ids = self.ids.held
        new = both[both > (ids[-1] if len(ids) else 0)]
        self.ids.extend(new)
        for array, empty in ((self.first, NOWHERE), (self.stretch, 0), (self.shared, False)):
            array.extend(np.full(len(new), empty, array.held.dtype))
        ids = self.ids.held
        self.slot.extend(np.searchsorted(ids, rows["passage"]).astype(np.int32))
        self.context.extend(np.searchsorted(ids, rows["context"]).astype(np.int32))
        for kind, lengths in self.lengths.items():
            lengths.extend(rows[kind])
        self.norm.extend(np.zeros(len(rows), np.float32))
        end = begin
        for source in found:
            number = len(self.places)
            self.place.extend(np.full(len(source.rows), number, np.int32))
            self.is_memory.extend(np.array([source.memory is not None]))
            end = self._add_place(source, end)
        self._take_slots(begin)

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
        contexts = self.context.held[span]
        self.first.held[contexts] = NOWHERE
        self.stretch.held[contexts] = 0
        for row in range(place.first, place.end):
            self._leave_slot(int(self.slot.held[row]), row)

    def _leave_slot(self, slot: int, row: int) -> None:
        others = self.others.get(slot, [])
        if self.first.held[slot] == row:
            self.first.held[slot] = others.pop(0) if others else NOWHERE
        elif row in others:
            others.remove(row)
        if not others and self.others.pop(slot, None) is not None:
            self.shared.held[slot] = False

    def _follow_vectors(self, view: View) -> None:
        """Take in new vectors; what they count for is worked out anew."""
        fresh = self.nearest.refresh(view, self.ids.held)
        rows = self.first.held[fresh]
        shared = [
            row for slot in fresh[self.shared.held[fresh]].tolist() for row in self.others[slot]
        ]
        rows = np.concatenate((rows[rows >= 0], np.asarray(shared, np.int32)))
        for distance in range(-REACH, REACH + 1):
            near = rows + distance
            self.norm.held[near[(near >= 0) & (near < len(self.norm))]] = 0

    def _follow_segments(self, view: View) -> None:
        listed = postings.segment_ids(view)
        if list(self._segments) == listed:
            return
        before = self._segments
        self._segments = {
            id_: before.get(id_) or _Held(view, postings.segment(view, id_), self.ids.held)
            for id_ in listed
        }
        if any(key[0] not in self._segments for key in self._buckets):
            self._buckets.clear()
            self._cached = 0
