"""The index of terms as recall holds it: small segments whole, of large ones the buckets asked for.

Promises: a term's postings of all segments at once, as rows; those of texts that nobody says any
more are left out. Refuses: to read more than POSTINGS for one question.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from geniuzfs.recall.occurrences import Found, Occurrences, Part, joined, taken
from geniuzfs.recall.slots import GONE, SPECIAL, Rows, Slots
from geniuzfs.store import postings
from geniuzfs.store.postings import Keys, Picked, Postings, Segment
from geniuzfs.store.transactions import View

_CACHED_BYTES = 96 * 1024 * 1024
"""Of decoded buckets of large segments."""

POSTINGS = 200_000
"""Postings that one question reads at most, of words and of n-grams each: 5 ms."""

TELLING = 50
"""Passages that may all hold a term which is still worth asking for."""

SAMPLED = 10_000
"""Postings of a stop-word that are looked at, evenly."""


class _Held:
    """A segment in memory: its passages as slots; its terms, where they are few."""

    def __init__(self, view: View, held: Segment, slots: Slots) -> None:
        self.id = held.id
        self.buckets = held.buckets
        self.slots = slots.known(held.passages)
        self.rows = self.slots
        """Ordinal → row of a passage that stands in one place; else GONE or SPECIAL."""
        self.age = -1
        """Of the slots when `rows` was worked out."""
        self.whole = postings.bucket(view, held.id, 0) if held.buckets == 1 else None


class Segments:
    """The segments of one folder, whose texts are `slots`."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._segments: dict[int, _Held] = {}
        self._buckets: dict[tuple[int, int], Postings] = {}
        self._cached = 0

    def follow(self, view: View) -> None:
        """Take in new segments, and drop those that were merged."""
        listed = postings.segment_ids(view)
        if list(self._segments) == listed:
            return
        before = self._segments
        self._segments = {
            id_: before.get(id_) or _Held(view, postings.segment(view, id_), self._slots)
            for id_ in listed
        }
        if any(key[0] not in self._segments for key in self._buckets):
            self._buckets.clear()
            self._cached = 0

    def find(self, view: View, passages: int, *groups: Keys) -> list[Found]:
        """Where terms stand, among so many passages, for each group of them: of very many postings
        those of the rarest terms (POSTINGS). In one pass, which takes 1 ms with 20 segments.
        """
        keys = np.concatenate(groups)
        parts = [(held, list(self._parts(view, held, keys))) for held in self._segments.values()]
        everywhere = np.zeros(len(keys), np.int64)
        for _, found in parts:
            for part, places, at in found:
                everywhere[places] += part.lengths(at)
        results: list[Found] = []
        first = 0
        for group in groups:
            span = slice(first, first + len(group))
            results.append(self._found(parts, span, everywhere, passages))
            first += len(group)
        return results

    def stand(self, view: View, keys: Keys, allowed: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Which of these terms stand anywhere in scope, as far as SAMPLED postings of each tell."""
        found = np.zeros(len(keys), np.bool_)
        for held in self._segments.values():
            for part, places, at in self._parts(view, held, keys):
                for place, where in zip(places.tolist(), at.tolist(), strict=True):
                    found[place] = found[place] or self._stands(held, part, where, allowed)
        return found

    def _stands(
        self, held: _Held, part: Postings | Picked, at: int, allowed: NDArray[np.bool_] | None
    ) -> bool:
        rows = self._rows_of(held)[part.sampled(at, SAMPLED)]
        if allowed is None:
            return bool((rows != GONE).any())
        return bool(allowed[rows[rows >= 0]].any())

    def _found(
        self,
        parts: list[tuple[_Held, list[Part]]],
        span: slice,
        everywhere: NDArray[np.int64],
        among: int,
    ) -> Found:
        read = np.zeros(len(everywhere), np.bool_)
        read[span] = self._worth_reading(everywhere[span], among)
        passages: list[Occurrences] = []
        contexts: list[Occurrences] = []
        for held, found in parts:
            if here := [taken(*one, read) for one in found if read[one[1]].any()]:
                one = joined(here)
                one = one._replace(terms=one.terms - np.int16(span.start))
                self._place(held, one, passages, contexts)
        return Found(joined(passages), joined(contexts), everywhere[span], read[span])

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

    @staticmethod
    def _worth_reading(everywhere: NDArray[np.int64], passages: int) -> NDArray[np.bool_]:
        """Terms that half of all passages hold say nothing; of the others, the rarest."""
        order = np.argsort(everywhere, kind="stable")
        read = np.zeros(len(everywhere), np.bool_)
        read[order] = np.cumsum(everywhere[order]) <= POSTINGS
        telling = read & (everywhere <= max(passages // 2, TELLING))
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
            above = self._slots.stretch.held[here.where] > 0
            contexts.append(here.only(above))
            here = here.only(~above)
            passages.append(here._replace(where=self._slots.first.held[here.where]))
            passages.append(self._elsewhere(here))

    def _rows_of(self, held: _Held) -> Rows:
        """Worked out again after each change: 0.3 ms for 65,536. To look up slot, row, stretch and
        twins of each posting took 6 ms of a question to 100,000 passages.
        """
        if not len(self._slots):  # all text is gone, and its terms still stand in a segment
            return np.full(len(held.slots), GONE, np.int32)
        if held.age != self._slots.age:
            first = self._slots.first.held[held.slots]
            gone = (held.slots < 0) | (first < 0)
            special = (self._slots.stretch.held[held.slots] > 0) | self._slots.shared.held[
                held.slots
            ]
            held.rows = np.where(gone, GONE, np.where(special, SPECIAL, first)).astype(np.int32)
            held.age = self._slots.age
        return held.rows

    def _elsewhere(self, shared: Occurrences) -> Occurrences:
        """The same, at the other rows that say these texts."""
        rows = [self._slots.others[slot] for slot in shared.where.tolist()]
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
