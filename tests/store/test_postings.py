"""The index of terms holds what was put in, through every merge."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geniuzfs.model import PassageId
from geniuzfs.store import postings
from geniuzfs.store.connection import Database
from geniuzfs.store.postings import Postings
from geniuzfs.store.terms import Terms


def terms(words: dict[int, int], grams: dict[int, int] | None = None) -> Terms:
    def arrays(held: dict[int, int]) -> tuple[np.ndarray, np.ndarray]:
        keys = sorted(held)
        return np.array(keys, np.uint32), np.array([held[key] for key in keys], np.uint8)

    return Terms(*arrays(words), *arrays(grams or {}), len(words), len(grams or {}))


def put(database: Database, passages: dict[int, dict[int, int]]) -> None:
    """Index passages: number → term → count."""
    with database.txn() as txn:
        for id_ in passages:
            txn.run(
                "INSERT INTO passages (id, hash, context, words, grams, text)"
                " VALUES (?, ?, 1, 1, 1, '')",
                (id_, str(id_).encode()),
            )
        postings.add(
            txn, [PassageId(id_) for id_ in passages], [terms(w) for w in passages.values()]
        )


def held(database: Database) -> dict[int, dict[int, int]]:
    """Everything that is indexed: number → term → count."""
    found: dict[int, dict[int, int]] = {}
    view = database.view
    for id_ in postings.segment_ids(view):
        segment = postings.segment(view, id_)
        for number in range(segment.buckets):
            bucket = postings.bucket(view, id_, number)
            for place, key in enumerate(bucket.keys.tolist()):
                assert segment.buckets == 1 or postings.bucket_of(key, segment.buckets) == number
                ordinals, counts = bucket.taken(np.array([place]))
                assert ordinals.tolist() == sorted(set(ordinals.tolist()))
                for ordinal, count in zip(ordinals.tolist(), counts.tolist(), strict=True):
                    found.setdefault(int(segment.passages[ordinal]), {})[key] = count
    return found


def merge_all(database: Database) -> None:
    while ids := postings.to_merge(database.view):
        merged = postings.merge(database.view, ids)
        written: int | None = None
        for step in merged.steps():
            with database.txn() as txn:
                written = step.write(txn, written)


@pytest.fixture
def index(database: Database) -> Iterator[Database]:
    """A database whose passages nobody says: cleared before it is checked."""
    yield database
    with database.txn() as txn:
        txn.run("DELETE FROM passages")
        postings.drop_all(txn)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.integers(0, 2**32 - 1) | st.integers(0, 9), st.integers(1, 255)),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 7),
)
def test_what_is_put_in_comes_back_after_any_merges(
    made: list[dict[int, int]], at_once: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        database = Database.open(Path(directory) / "memory.db", create=True)
        passages = dict(enumerate(made, 1))
        for first in range(1, len(made) + 1, at_once):
            part = {n: passages[n] for n in range(first, min(first + at_once, len(made) + 1))}
            put(database, part)
            merge_all(database)
        assert held(database) == {n: words for n, words in passages.items() if words}
        assert len(postings.segment_ids(database.view)) <= postings.MOST
        database.close()


def test_a_large_segment_is_read_by_bucket(index: Database) -> None:
    many = {n: {n % 97: 1, 1_000_000 + n: 2} for n in range(1, 4_200)}
    for first in range(1, 4_200, 400):
        put(index, {n: many[n] for n in range(first, min(first + 400, 4_200))})
    while len(postings.segment_ids(index.view)) > 1:
        ids = postings.segment_ids(index.view)
        written: int | None = None
        for step in postings.merge(index.view, ids).steps():
            with index.txn() as txn:
                written = step.write(txn, written)
    (only,) = postings.segment_ids(index.view)
    assert postings.segment(index.view, only).buckets > 1
    assert held(index) == many


def test_a_merge_leaves_out_what_is_gone(index: Database) -> None:
    put(index, {1: {7: 1}, 2: {7: 1, 8: 3}})
    put(index, {3: {7: 1}})
    with index.txn() as txn:
        txn.run("DELETE FROM passages WHERE id = 2")
    for step in postings.merge(index.view, postings.segment_ids(index.view)).steps():
        with index.txn() as txn:
            step.write(txn, None)
    assert held(index) == {1: {7: 1}, 3: {7: 1}}


def test_a_merge_that_was_cut_short_is_dropped_and_nothing_is_lost(index: Database) -> None:
    many = {n: {n: 1} for n in range(1, 4_200)}
    put(index, many)
    merged = postings.merge(index.view, postings.segment_ids(index.view))
    steps = list(merged.steps())
    assert len(steps) > 1
    with index.txn() as txn:
        steps[0].write(txn, None)
    assert held(index) == many
    with index.txn() as txn:
        postings.drop_unfinished(txn)
    assert held(index) == many
    assert index.view.row("SELECT count(*) FROM segments") == (1,)


def test_no_segment_outgrows_its_ordinals(index: Database) -> None:
    sizes = Counter[int]()
    with index.txn() as txn:
        for number in range(20):
            ids = np.arange(number * 9_000, (number + 1) * 9_000, dtype=np.int64)
            txn.run(
                "INSERT INTO segments (ready, buckets, passages) VALUES (1, 1, ?)", (ids.tobytes(),)
            )
            sizes[txn.inserted()] = 9_000
    chosen = postings.to_merge(index.view)
    assert len(chosen) > 1
    assert sum(sizes[id_] for id_ in chosen) <= postings.LARGEST


def test_terms_that_are_not_there_are_not_found() -> None:
    nothing = Postings(
        np.zeros(0, np.uint32),
        np.zeros(1, np.uint32),
        np.zeros(0, np.uint16),
        np.zeros(0, np.uint8),
    )
    places, at = nothing.find(np.array([1, 2], np.uint32))
    assert (places.tolist(), at.tolist()) == ([], [])
    assert nothing.slice(1) == (0, 0)


def test_two_that_merge_the_same_segments_leave_one(index: Database) -> None:
    for number in range(1, 6):
        put(index, {number: {7: number}})
    ids = postings.segment_ids(index.view)
    merges = [postings.merge(index.view, ids) for _ in range(2)]
    for merged in merges:
        for step in merged.steps():
            with index.txn() as txn:
                step.write(txn, None)
    assert held(index) == {number: {7: number} for number in range(1, 6)}
    assert index.view.row("SELECT count(*) FROM segments") == (1,)


def test_small_segments_alone_become_a_small_one(index: Database) -> None:
    put(index, {number: {number: 1} for number in range(1, 4_000)})
    for number in range(4_000, 4_030):
        put(index, {number: {number: 1}})
    assert postings.to_merge(index.view, 40, postings.WHOLE) == []
    chosen = postings.to_merge(index.view, 20, postings.WHOLE)
    assert len(chosen) == 30
    assert postings.segment_ids(index.view)[0] not in chosen
