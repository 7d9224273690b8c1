"""Vectors of whole memories as Geniuz keeps them, in `memory_embeddings`.

Hides: that they are 384 little-endian float32, and how the model is named there. Promises: what
Geniuz or another tool has put there is not touched. Refuses: to give out what is no vector of
length 1, as another of its models, or a tool, may have left.
"""

import numpy as np
from numpy.typing import NDArray

from geniuzfs.model import MemoryId, PassageId
from geniuzfs.store.transactions import Txn, View

DIMENSION = 384

_BYTES = DIMENSION * 4

_CONTENT = (
    "CASE WHEN NOT json_valid(payload) THEN NULL"
    " WHEN json_type(payload, '$.content') = 'text' THEN json_extract(payload, '$.content') END"
)

Vector = NDArray[np.float32]


def model(view: View) -> str | None:
    """The model that all of them are of, as Geniuz's `backfill` names it; None: it never ran."""
    row = view.row("SELECT value FROM embedding_meta WHERE key = 'model'")
    return None if row is None else str(row[0])


def say_model(txn: Txn, name: str) -> None:
    """Name the model, where nobody has."""
    txn.run("INSERT OR IGNORE INTO embedding_meta (key, value) VALUES ('model', ?)", (name,))


def newest(view: View) -> tuple[str, Vector | None] | None:
    """The text of the newest memory that has one, and its vector if that is one; None: no memory
    has.
    """
    row = view.row(
        f"SELECT {_CONTENT}, embedding FROM memories JOIN memory_embeddings USING (memory_uuid)"
        " ORDER BY memories.rowid DESC LIMIT 1"
    )
    return None if row is None else (str(row[0] or ""), _vector(row[1]))


def lacking(view: View, limit: int) -> list[tuple[MemoryId, str]]:
    """Memories that say something and have no vector there, newest first."""
    return view.rows(
        f"SELECT memory_uuid, {_CONTENT} AS said FROM memories"
        " LEFT JOIN memory_embeddings AS held USING (memory_uuid)"
        " WHERE held.memory_uuid IS NULL AND said <> '' ORDER BY memories.rowid DESC LIMIT ?",
        (limit,),
    )


def put(txn: Txn, memory: MemoryId, vector: Vector) -> None:
    """Give a memory its vector, unless it has been given one or was forgotten meanwhile."""
    txn.run(
        "INSERT OR IGNORE INTO memory_embeddings (memory_uuid, embedding)"
        " SELECT memory_uuid, ? FROM memories WHERE memory_uuid = ?",
        (vector.astype("<f4").tobytes(), memory),
    )


def usable(view: View, limit: int) -> list[tuple[PassageId, Vector]]:
    """Passages that wait for a vector and are all that a memory says which has one."""
    rows = view.rows(
        "SELECT awaits.passage, embedding FROM awaits JOIN passages ON passages.id = passage"
        " JOIN teaches USING (passage) JOIN sources ON sources.id = teaches.source"
        " JOIN memories ON memory_uuid = sources.memory JOIN memory_embeddings USING (memory_uuid)"
        f" WHERE length(embedding) = ? AND {_CONTENT} = text LIMIT ?",
        (_BYTES, limit),
    )
    found = {passage: _vector(held) for passage, held in rows}
    return [(passage, vector) for passage, vector in found.items() if vector is not None]


def _vector(held: object) -> Vector | None:
    if not isinstance(held, bytes) or len(held) != _BYTES:
        return None
    vector = np.frombuffer(held, "<f4").astype(np.float32)
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if 0.9 < length < 1.1 else None
