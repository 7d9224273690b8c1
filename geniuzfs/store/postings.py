"""The index of terms: which passages hold a term, and how often.

Hides: segments, buckets and their bytes. A segment covers some passages and is never
changed; `merge` makes one of several. Terms are 32-bit keys (store.terms). Within a
segment passages go by ordinals of 16 bits, so that a posting takes 3 bytes. Promises:
a segment is complete once it is listed; a crash while one is written leaves nothing but
rows that the next merge removes. Refuses: to know which passages are still said;
whoever reads leaves out what is gone.

A bucket is: the number of terms n, then n keys in order, then n + 1 offsets (all uint32), then
the ordinals (uint16) and the counts (uint8) of all its postings, term by term.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geniuzfs.model import PassageId
from geniuzfs.store.terms import Terms
from geniuzfs.store.transactions import Txn, View

LARGEST = 65_536
"""Passages in the largest segments: as many as 16 bits can number."""

MOST = 8
"""Segments there may be beside the largest ones: each costs a question 0.1 ms."""

_LEAST = 4
"""Segments that become one at least."""

WHOLE = 4_096
"""Passages up to which a segment is one bucket and is read whole: 3 MB at most."""

_BUCKETS = 4_096
"""Buckets of a larger one: some 12 kB each."""

_BUCKETS_A_STEP = 128
"""Buckets of a merge that are written in one transaction: 1.5 MB, some 10 ms."""

_APART = 64
"""Numbers that are skipped rather than read."""

Keys = NDArray[np.uint32]
Ordinals = NDArray[np.uint16]
Counts = NDArray[np.uint8]

_NOTHING = np.zeros(0, np.int64)


class Postings(NamedTuple):
    """Terms and where they stand: term i's are ordinals[offsets[i]:offsets[i + 1]]."""

    keys: Keys
    offsets: NDArray[np.uint32]
    ordinals: Ordinals
    counts: Counts

    def find(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which of `keys` are here: their places in `keys`, and their places in this."""
        if not len(self.keys):
            return _NOTHING, _NOTHING
        places = np.searchsorted(self.keys, keys)
        places[places == len(self.keys)] = 0
        found = np.flatnonzero(self.keys[places] == keys)
        return found, places[found]

    def lengths(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many postings the terms at `places` have."""
        return self.offsets[places + 1].astype(np.int64) - self.offsets[places]

    def slice(self, key: int) -> tuple[int, int]:
        """Where the postings of one term are: first, end; both 0 when there are none."""
        place = int(self.keys.searchsorted(np.uint32(key)))
        if place == len(self.keys) or self.keys[place] != key:
            return 0, 0
        return int(self.offsets[place]), int(self.offsets[place + 1])

    def sampled(self, place: int, most: int) -> Ordinals:
        """About `most` of the ordinals of the term at `place`, evenly."""
        first, end = int(self.offsets[place]), int(self.offsets[place + 1])
        return self.ordinals[first : end : (end - first) // most + 1]

    def taken(self, places: NDArray[np.int64]) -> tuple[Ordinals, Counts]:
        """Ordinals and counts of the terms at `places`, one after the other."""
        lengths = self.lengths(places)
        ends = np.cumsum(lengths)
        shift = self.offsets[places].astype(np.int64) - ends + lengths
        flat = np.arange(ends[-1] if len(ends) else 0) + np.repeat(shift, lengths)
        return self.ordinals[flat], self.counts[flat]


class Picked:
    """Some terms' postings out of several buckets, with the same questions as Postings."""

    def __init__(self) -> None:
        self._ordinals: list[Ordinals] = []
        self._counts: list[Counts] = []

    def add(self, held: Postings, first: int, end: int) -> None:
        self._ordinals.append(held.ordinals[first:end])
        self._counts.append(held.counts[first:end])

    def lengths(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many postings the terms at `places` have."""
        return np.array([len(self._ordinals[place]) for place in places.tolist()], np.int64)

    def sampled(self, place: int, most: int) -> Ordinals:
        """About `most` of the ordinals of the term at `place`, evenly."""
        return self._ordinals[place][:: len(self._ordinals[place]) // most + 1]

    def taken(self, places: NDArray[np.int64]) -> tuple[Ordinals, Counts]:
        """Ordinals and counts of the terms at `places`, one after the other."""
        chosen = places.tolist()
        return (
            np.concatenate([self._ordinals[place] for place in chosen]),
            np.concatenate([self._counts[place] for place in chosen]),
        )


class Segment(NamedTuple):
    """A segment that is listed; `passages` in ascending order."""

    id: int
    buckets: int
    passages: NDArray[np.int64]


def segment_ids(view: View) -> list[int]:
    """The segments that hold the index now, oldest first."""
    return [row[0] for row in view.rows("SELECT id FROM segments WHERE ready = 1 ORDER BY id")]


def segment(view: View, id_: int) -> Segment:
    """One segment, without its terms."""
    buckets, passages = view.row("SELECT buckets, passages FROM segments WHERE id = ?", (id_,))
    return Segment(id_, buckets, np.frombuffer(passages, np.int64))


def bucket(view: View, id_: int, number: int) -> Postings:
    """One bucket of a segment."""
    row = view.row("SELECT terms FROM postings WHERE segment = ? AND bucket = ?", (id_, number))
    return _decoded(b"\0\0\0\0\0\0\0\0" if row is None else row[0])


def add(txn: Txn, passages: Sequence[PassageId], terms: Sequence[Terms]) -> None:
    """Index new passages, in ascending order, at most LARGEST: they become a segment."""
    if not passages:
        return
    held = [np.concatenate((each.words, each.grams)) for each in terms]
    counts = [np.concatenate((each.word_counts, each.gram_counts)) for each in terms]
    ordinals = np.repeat(np.arange(len(held), dtype=np.uint16), [len(keys) for keys in held])
    postings = _sorted(np.concatenate(held), ordinals, np.concatenate(counts))
    numbers = np.asarray(passages, np.int64)
    id_ = _announce(txn, numbers, 1, ready=True)
    _write(txn, id_, 0, postings)


def to_merge(view: View, most: int = MOST, largest: int = LARGEST) -> list[int]:
    """Segments that should become one, of `largest` passages; [] as long as there are no more than
    `most` that could.

    The smallest ones, up to one that is twice as large as all of them together: so a
    passage is written anew some log3(65,536) = 10 times at most, when it came alone.
    """
    sizes = view.rows(
        "SELECT length(passages) / 8 AS size, id FROM segments WHERE ready = 1 AND size <= ?"
        " ORDER BY size, id",
        (largest // 2,),
    )
    if len(sizes) <= most:
        return []
    chosen: list[int] = []
    total = 0
    for size, id_ in sizes:
        if total + size > largest or (len(chosen) >= _LEAST and size > 2 * total):
            break
        chosen.append(id_)
        total += size
    return chosen


def merge(view: View, ids: Sequence[int]) -> "Merged":
    """What segments `ids` become, without the passages that are gone. Reads all of them."""
    segments = [segment(view, id_) for id_ in ids]
    passages = np.concatenate([each.passages for each in segments])
    order = np.argsort(passages, kind="stable")
    live = _said(view, passages[order])
    new = np.full(len(passages), -1, np.int64)
    new[order[live]] = np.arange(np.count_nonzero(live))
    keys: list[Keys] = []
    ordinals: list[NDArray[np.int64]] = []
    counts: list[Counts] = []
    base = 0
    for each in segments:
        for number in range(each.buckets):
            held = bucket(view, each.id, number)
            keys.append(np.repeat(held.keys, np.diff(held.offsets)))
            ordinals.append(new[base + held.ordinals.astype(np.int64)])
            counts.append(held.counts)
        base += len(each.passages)
    here = np.concatenate(ordinals)
    kept = here >= 0
    postings = _sorted(
        np.concatenate(keys)[kept], here[kept].astype(np.uint16), np.concatenate(counts)[kept]
    )
    return Merged(list(ids), passages[order[live]], postings)


class Merged(NamedTuple):
    """A merge that is worked out and not written yet."""

    of: list[int]
    passages: NDArray[np.int64]
    postings: Postings

    def steps(self) -> Iterator["Step"]:
        """What to write, a transaction each, so that savers get their turn in between."""
        buckets = 1 if len(self.passages) <= WHOLE else _BUCKETS
        if buckets == 1:
            yield Step(self, buckets, [(0, self.postings)], last=True)
            return
        parts = list(_spread(self.postings, buckets))
        for first in range(0, buckets, _BUCKETS_A_STEP):
            end = first + _BUCKETS_A_STEP
            yield Step(self, buckets, parts[first:end], last=end >= buckets)


class Step(NamedTuple):
    """Some buckets of a merge; with the last of them it takes the place of what it was made of."""

    merged: Merged
    buckets: int
    parts: list[tuple[int, Postings]]
    last: bool

    def write(self, txn: Txn, id_: int | None) -> int | None:
        """Write it; `id_` is what the step before returned (None: this is the first). Where another
        process was faster, or has erased some of it (`erase_gone`), nothing more is written: what
        this was worked out from may name texts that were forgotten since.
        """
        stands = id_ is None or txn.row("SELECT 1 FROM segments WHERE id = ?", (id_,)) is not None
        if not stands or not all(_is_listed(txn, old) for old in self.merged.of):
            if id_ is not None:
                txn.run("DELETE FROM segments WHERE id = ?", (id_,))
            return id_
        if id_ is None:
            id_ = _announce(txn, self.merged.passages, self.buckets, ready=False)
        for number, part in self.parts:
            if len(part.keys):
                _write(txn, id_, number, part)
        if self.last:
            txn.run("UPDATE segments SET ready = 1 WHERE id = ?", (id_,))
            for old in self.merged.of:
                txn.run("DELETE FROM segments WHERE id = ?", (old,))
        return id_


def holds_gone(view: View, id_: int) -> bool:
    """Whether a segment lists passages that are gone."""
    return not _said(view, segment(view, id_).passages).all()


def erase_gone(txn: Txn, id_: int) -> None:
    """Write a segment anew without the passages that are gone, and drop what is half written."""
    drop_unfinished(txn)
    written: int | None = None
    for step in merge(txn, [id_]).steps():
        written = step.write(txn, written)


def drop_unfinished(txn: Txn) -> None:
    """Remove what a crash left half written; a merge that is under way is given up by it."""
    txn.run("DELETE FROM segments WHERE ready = 0")


def drop_all(txn: Txn) -> None:
    """Forget the index."""
    txn.run("DELETE FROM segments")


def bucket_of(key: int, buckets: int) -> int:
    """Where a term stands: crc32 spreads well, so its low bits do."""
    return key & (buckets - 1)


def _is_listed(view: View, id_: int) -> bool:
    return view.row("SELECT 1 FROM segments WHERE id = ? AND ready = 1", (id_,)) is not None


def _said(view: View, passages: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these (ascending) are still there. Read in stretches: a segment that is merged late
    may begin long before the others, and all in between would be read for nothing.
    """
    there: list[int] = []
    apart = np.flatnonzero(np.diff(passages) > _APART) + 1
    for part in np.split(passages, apart) if len(passages) else ():
        between = (int(part[0]), int(part[-1]))
        rows = view.rows("SELECT id FROM passages WHERE id BETWEEN ? AND ?", between)
        there += [row[0] for row in rows]
    return np.isin(passages, np.array(there, np.int64))


def _announce(txn: Txn, passages: NDArray[np.int64], buckets: int, *, ready: bool) -> int:
    txn.run(
        "INSERT INTO segments (ready, buckets, passages) VALUES (?, ?, ?)",
        (int(ready), buckets, passages.tobytes()),
    )
    return txn.inserted()


def _write(txn: Txn, id_: int, number: int, postings: Postings) -> None:
    txn.run(
        "INSERT INTO postings (segment, bucket, terms) VALUES (?, ?, ?)",
        (id_, number, _encoded(postings)),
    )


def _sorted(keys: Keys, ordinals: Ordinals, counts: Counts) -> Postings:
    """Postings in the order of their keys, then of their ordinals."""
    order = np.argsort(keys.astype(np.uint64) << np.uint64(16) | ordinals, kind="stable")
    keys = keys[order]
    starts = np.flatnonzero(np.diff(keys, prepend=np.uint32(0)) != 0)
    if len(keys) and (not len(starts) or starts[0] != 0):
        starts = np.concatenate(([0], starts))
    offsets = np.append(starts, len(keys)).astype(np.uint32)
    return Postings(keys[starts], offsets, ordinals[order], counts[order])


def _spread(postings: Postings, buckets: int) -> Iterator[tuple[int, Postings]]:
    """The buckets of `postings`, all of them, in order."""
    sizes = postings.lengths(np.arange(len(postings.keys)))
    place = postings.keys & np.uint32(buckets - 1)
    terms = np.argsort(place, kind="stable")  # so that keys stay in order within a bucket
    every: NDArray[np.uint32] = np.repeat(place, sizes)
    rows = np.argsort(every, kind="stable")
    ordinals, counts = postings.ordinals[rows], postings.counts[rows]
    keys, sizes, place = postings.keys[terms], sizes[terms], place[terms]
    firsts = np.searchsorted(place, np.arange(buckets + 1))
    ends = np.cumsum(np.append(np.int64(0), sizes))
    for number in range(buckets):
        first, end = firsts[number], firsts[number + 1]
        offsets = (ends[first : end + 1] - ends[first]).astype(np.uint32)
        part = slice(ends[first], ends[end])
        yield number, Postings(keys[first:end], offsets, ordinals[part], counts[part])


def _encoded(postings: Postings) -> bytes:
    head = np.array([len(postings.keys)], np.uint32)
    return b"".join(part.tobytes() for part in (head, *postings))


def _decoded(held: bytes) -> Postings:
    terms = int.from_bytes(held[:4], "little")
    keys = np.frombuffer(held, np.uint32, terms, 4)
    offsets = np.frombuffer(held, np.uint32, terms + 1, 4 + 4 * terms)
    rows, base = int(offsets[-1]), 8 + 8 * terms
    ordinals = np.frombuffer(held, np.uint16, rows, base)
    return Postings(keys, offsets, ordinals, np.frombuffer(held, np.uint8, rows, base + 2 * rows))
