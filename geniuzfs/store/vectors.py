"""Vectors of passages, each of one model.

Hides: that a vector is kept in 16 bits a number, and once more in 8 in blocks for the scan.
Promises: vectors of different models never meet. Only passages that are still there get one.
"""

from collections.abc import Sequence
from typing import NamedTuple, NewType

import numpy as np
from numpy.typing import NDArray

from geniuzfs.model import ModelId, PassageId
from geniuzfs.store.transactions import Txn, View

BLOCK = 1_024
"""Vectors in a block: 1,000,000 load in 0.15 s (one by one: 2 s)."""

_DEAD_SHARE = 0.25
"""Of a block's vectors; when more are gone it is written anew."""

ModelKey = NewType("ModelKey", int)


class Model(NamedTuple):
    """A model that vectors here come from; `vectors`: of how many passages."""

    key: ModelKey
    name: ModelId
    wanted: bool
    vectors: int


class Codes(NamedTuple):
    """Vectors in 8 bits: vector i is scales[i] * codes[i]."""

    passages: NDArray[np.int64]
    scales: NDArray[np.float32]
    codes: NDArray[np.int8]

    def only(self, kept: NDArray[np.bool_]) -> "Codes":
        return Codes(self.passages[kept], self.scales[kept], self.codes[kept])


def models(view: View) -> list[Model]:
    """The models there are vectors of, the wanted one first."""
    rows = view.rows(
        "SELECT id, name, wanted, (SELECT count(*) FROM vectors WHERE model = models.id)"
        " FROM models ORDER BY wanted DESC, id"
    )
    return [Model(key, name, bool(wanted), n) for key, name, wanted, n in rows]


def wanted(view: View) -> tuple[ModelKey, ModelId] | None:
    """The model that passages wait for."""
    row: tuple[ModelKey, ModelId] | None = view.row("SELECT id, name FROM models WHERE wanted = 1")
    return row


def want(txn: Txn, name: ModelId) -> ModelKey:
    """Have passages wait for this model from now on: those without a vector of it."""
    txn.run("UPDATE models SET wanted = 0 WHERE name <> ?", (name,))
    txn.run(
        "INSERT INTO models (name, wanted) VALUES (?, 1)"
        " ON CONFLICT (name) DO UPDATE SET wanted = 1",
        (name,),
    )
    key = ModelKey(txn.row("SELECT id FROM models WHERE name = ?", (name,))[0])
    txn.run("DELETE FROM awaits")
    txn.run(
        "INSERT INTO awaits (passage) SELECT id FROM passages WHERE context = 0"
        " AND id NOT IN (SELECT passage FROM vectors WHERE model = ?)",
        (key,),
    )
    return key


def drop_unwanted(txn: Txn) -> None:
    """Forget the vectors of other models than the wanted one."""
    if txn.row("SELECT 1 FROM models WHERE wanted = 0") is not None:
        txn.run("DELETE FROM models WHERE wanted = 0")


def awaiting(
    view: View, limit: int, before: PassageId | None = None
) -> list[tuple[PassageId, str]]:
    """Passages without a vector of the wanted model, newest first, below number `before`."""
    return view.rows(
        "SELECT passage, text FROM awaits JOIN passages ON id = passage"
        " WHERE passage < ? ORDER BY passage DESC LIMIT ?",
        (2**62 if before is None else before, limit),
    )


def put(
    txn: Txn, model: ModelKey, passages: Sequence[PassageId], vectors: NDArray[np.float32]
) -> int:
    """Store a vector each, unless the passage is gone. Returns how many were stored."""
    stored = 0
    for passage, vector in zip(passages, vectors.astype("<f2"), strict=True):
        txn.run(
            "INSERT OR IGNORE INTO vectors (passage, model, vector)"
            " SELECT id, ?, ? FROM passages WHERE id = ?",
            (model, vector.tobytes(), passage),
        )
        stored += txn.changed()
        txn.run("DELETE FROM awaits WHERE passage = ?", (passage,))
    return stored


# Blocks


def seal(txn: Txn, model: ModelKey) -> bool:
    """Put the next BLOCK vectors that are in no block into one; False when there are fewer."""
    through = _through(txn, model)
    newest: int = txn.row("SELECT coalesce(max(id), 0) FROM vectors")[0]
    if newest - through < BLOCK:
        return False
    rows = txn.rows(
        "SELECT id, passage, vector FROM vectors WHERE model = ? AND id > ? ORDER BY id LIMIT ?",
        (model, through, BLOCK),
    )
    if len(rows) < BLOCK:
        return False
    _write(txn, model, rows[-1][0], _coded([row[1:] for row in rows]))
    return True


def thin(txn: Txn, model: ModelKey) -> bool:
    """Write one block anew without the vectors that are gone; False when that can wait."""
    sizes = txn.rows(
        "SELECT id, through, length(passages) / 8 FROM blocks WHERE model = ? ORDER BY id", (model,)
    )
    if not _many_gone(sum(row[2] for row in sizes), _count(txn, model, 0, _through(txn, model))):
        return False
    after = 0
    for id_, through, size in sizes:
        if _many_gone(size, _count(txn, model, after, through)):
            codes = _block(txn, id_)
            there = {
                row[0]
                for row in txn.rows(
                    "SELECT passage FROM vectors WHERE model = ? AND id > ? AND id <= ?",
                    (model, after, through),
                )
            }
            kept = np.array([passage in there for passage in codes.passages.tolist()], np.bool_)
            txn.run("DELETE FROM blocks WHERE id = ?", (id_,))
            _write(txn, model, through, codes.only(kept), id_)
            return True
        after = through
    return False


def erase_gone(txn: Txn) -> None:
    """Write the blocks anew that hold vectors that are gone."""
    for id_, model, through in txn.rows("SELECT id, model, through FROM blocks"):
        codes = _block(txn, id_)
        kept = np.array(
            [
                txn.row("SELECT 1 FROM vectors WHERE passage = ? AND model = ?", (passage, model))
                is not None
                for passage in codes.passages.tolist()
            ],
            np.bool_,
        )
        if not kept.all():
            txn.run("DELETE FROM blocks WHERE id = ?", (id_,))
            _write(txn, model, through, codes.only(kept), id_)


def blocks(view: View, model: ModelKey) -> list[int]:
    """The numbers of the model's blocks, oldest first."""
    return [
        row[0] for row in view.rows("SELECT id FROM blocks WHERE model = ? ORDER BY id", (model,))
    ]


def block(view: View, id_: int) -> Codes:
    """One block."""
    return _block(view, id_)


def tail(view: View, model: ModelKey, after: int) -> tuple[int, Codes]:
    """The vectors beyond vector number `after`, and the number of the last."""
    rows = view.rows(
        "SELECT id, passage, vector FROM vectors WHERE model = ? AND id > ? ORDER BY id",
        (model, after),
    )
    return (rows[-1][0] if rows else after), _coded([row[1:] for row in rows])


def sealed_through(view: View, model: ModelKey) -> int:
    """The number of the last vector that is in a block."""
    return _through(view, model)


def coded(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
    """Scales and codes of vectors, a row each."""
    scales = np.maximum(np.abs(vectors).max(axis=1), 1e-8) / 127
    return scales.astype(np.float32), np.rint(vectors / scales[:, None]).astype(np.int8)


def _coded(rows: Sequence[tuple[int, bytes]]) -> Codes:
    if not rows:
        return Codes(np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros((0, 0), np.int8))
    held = np.frombuffer(b"".join(row[1] for row in rows), "<f2").astype(np.float32)
    passages = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    return Codes(passages, *coded(held.reshape(len(rows), -1)))


def _through(view: View, model: ModelKey) -> int:
    through: int = view.row(
        "SELECT coalesce(max(through), 0) FROM blocks WHERE model = ?", (model,)
    )[0]
    return through


def _block(view: View, id_: int) -> Codes:
    passages, scales, codes = view.row(
        "SELECT passages, scales, codes FROM blocks WHERE id = ?", (id_,)
    )
    numbers = np.frombuffer(passages, np.int64)
    return Codes(
        numbers,
        np.frombuffer(scales, np.float32),
        np.frombuffer(codes, np.int8).reshape(len(numbers), -1),
    )


def _write(txn: Txn, model: ModelKey, through: int, codes: Codes, id_: int | None = None) -> None:
    txn.run(
        "INSERT INTO blocks (id, model, through, passages, scales, codes)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (id_, model, through, *(part.tobytes() for part in codes)),
    )


def _count(view: View, model: ModelKey, after: int, through: int) -> int:
    count: int = view.row(
        "SELECT count(*) FROM vectors WHERE model = ? AND id > ? AND id <= ?",
        (model, after, through),
    )[0]
    return count


def _many_gone(size: int, there: int) -> bool:
    return size - there > size * _DEAD_SHARE
