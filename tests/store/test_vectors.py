"""Vectors belong to passages and models; blocks hold the same in 8 bits."""

import numpy as np
import pytest
from numpy.typing import NDArray

from geniuzfs.model import ModelId, PassageId
from geniuzfs.store import vectors
from geniuzfs.store.connection import Database
from geniuzfs.store.vectors import ModelKey
from tests.notes import learn, write


def made(count: int, dimension: int = 8) -> NDArray[np.float32]:
    found = np.random.default_rng(3).standard_normal((count, dimension)).astype(np.float32)
    unit: NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
    return unit


@pytest.fixture
def passages(database: Database) -> list[PassageId]:
    """A block and a half of passages that wait."""
    for number in range(15):
        write(database, f"{number}.md", "\n\n".join(f"text {number} {n}" for n in range(100)))
    learn(database)
    rows = database.view.rows("SELECT passage FROM awaits ORDER BY passage")
    return [row[0] for row in rows]


def model(database: Database, name: str = "one") -> ModelKey:
    with database.txn() as txn:
        return vectors.want(txn, ModelId(name))


def put(database: Database, key: ModelKey, passages: list[PassageId]) -> NDArray[np.float32]:
    found = made(len(passages))
    with database.txn() as txn:
        assert vectors.put(txn, key, passages, found) == len(passages)
    return found


def loaded(database: Database, key: ModelKey) -> dict[int, NDArray[np.float32]]:
    """Passage → vector as the scan sees it: of the blocks and of what is in none."""
    parts = [vectors.block(database.view, id_) for id_ in vectors.blocks(database.view, key)]
    through = vectors.sealed_through(database.view, key)
    parts.append(vectors.tail(database.view, key, through)[1])
    return {
        passage: scale * code.astype(np.float32)
        for part in parts
        for passage, scale, code in zip(
            part.passages.tolist(), part.scales, part.codes, strict=True
        )
    }


def test_vectors_come_back_within_their_bits(database: Database, passages: list[PassageId]) -> None:
    key = model(database)
    found = put(database, key, passages)
    with database.txn() as txn:
        assert vectors.seal(txn, key)
        assert not vectors.seal(txn, key)
    back = loaded(database, key)
    assert sorted(back) == passages
    for passage, vector in zip(passages, found, strict=True):
        assert np.abs(back[passage] - vector).max() < 1 / 127


def test_a_passage_that_is_gone_gets_no_vector(
    database: Database, passages: list[PassageId]
) -> None:
    key = model(database)
    with database.txn() as txn:
        assert vectors.put(txn, key, [PassageId(10**9)], made(1)) == 0
    put(database, key, passages)


def test_another_model_waits_for_all_and_drops_nothing_until_it_has_caught_up(
    database: Database, passages: list[PassageId]
) -> None:
    one = model(database)
    put(database, one, passages)
    other = model(database, "other")
    assert len(vectors.awaiting(database.view, 10_000)) == len(passages)
    put(database, other, passages[:100])
    held = {each.name: each.vectors for each in vectors.models(database.view)}
    assert held == {"one": len(passages), "other": 100}
    assert model(database, "one") == one  # and back: nothing waits
    assert vectors.awaiting(database.view, 10_000) == []
    with database.txn() as txn:
        vectors.drop_unwanted(txn)
    assert [each.name for each in vectors.models(database.view)] == ["one"]


def test_a_block_of_which_many_are_gone_is_written_anew(
    database: Database, passages: list[PassageId]
) -> None:
    key = model(database)
    put(database, key, passages)
    with database.txn() as txn:
        vectors.seal(txn, key)
        assert not vectors.thin(txn, key)
    for number in range(0, 15, 2):
        write(database, f"{number}.md", "short now")
    learn(database)
    alive = {row[0] for row in database.view.rows("SELECT passage FROM vectors")}
    with database.txn() as txn:
        assert vectors.thin(txn, key)
        assert not vectors.thin(txn, key)
    assert set(loaded(database, key)) == alive
    put(database, key, [row[0] for row in vectors.awaiting(database.view, 10_000)])


def test_the_newest_passages_are_embedded_first(
    database: Database, passages: list[PassageId]
) -> None:
    key = model(database)
    assert [row[0] for row in vectors.awaiting(database.view, 3)] == passages[:-4:-1]
    put(database, key, passages)
