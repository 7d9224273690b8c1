"""What must hold of what was learned: each function yields what breaks it.

All of it can be made anew from files and memories, so everything here has a mend.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from geniuzfs.model import PassageId
from geniuzfs.store import passages, postings
from geniuzfs.store.invariants import Found
from geniuzfs.store.mends import sql
from geniuzfs.store.terms import terms
from geniuzfs.store.transactions import Txn, View

_AT_ONCE = 10_000


def sources_are_files_or_memories(view: View) -> Iterator[Found]:
    """What was learned comes from a regular file or a memory that is there."""
    for (id_,) in view.rows(
        "SELECT id FROM sources WHERE"
        " (inode IS NOT NULL AND NOT EXISTS (SELECT 1 FROM inodes"
        "  WHERE number = inode AND (mode & 61440) = 32768))"
        " OR (memory IS NOT NULL AND NOT EXISTS (SELECT 1 FROM memories"
        "  WHERE memory_uuid = memory))"
    ):
        yield Found(
            f"source {id_} was learned from what is no file or memory",
            sql("DELETE FROM sources WHERE id = ?", id_),
        )


def rows_are_taught(view: View) -> Iterator[Found]:
    """A source's packed rows and `teaches` name the same passages."""
    for source in passages.sources(view)[0]:
        named = {*source.rows["passage"].tolist(), *source.rows["context"].tolist()}
        taught = {
            row[0]
            for row in view.rows("SELECT passage FROM teaches WHERE source = ?", (source.id,))
        }
        if named != taught:
            yield Found(
                f"source {source.id} does not say what it teaches",
                sql("DELETE FROM sources WHERE id = ?", source.id),
            )


def everything_was_looked_at(view: View) -> Iterator[Found]:
    """Every file that holds something, and every memory, was learned or is due."""
    for (inode,) in view.rows(
        "SELECT number FROM inodes WHERE (mode & 61440) = 32768 AND stored > 0"
        " AND NOT EXISTS (SELECT 1 FROM sources WHERE inode = number)"
        " AND NOT EXISTS (SELECT 1 FROM due WHERE inode = number)"
    ):
        yield Found(
            f"inode {inode} was never learned",
            sql(
                "INSERT INTO due (inode, since_ns) SELECT number, ctime_ns FROM inodes"
                " WHERE number = ?",
                inode,
            ),
        )
    for (memory,) in view.rows(
        "SELECT memory_uuid FROM memories"
        " WHERE NOT EXISTS (SELECT 1 FROM sources WHERE memory = memory_uuid)"
        " AND NOT EXISTS (SELECT 1 FROM due_memories WHERE memory = memory_uuid)"
    ):
        yield Found(
            f"memory {memory} was never learned",
            sql("INSERT INTO due_memories (memory) VALUES (?)", memory),
        )


def passages_are_said(view: View) -> Iterator[Found]:
    """Every text is said by some source."""
    for (id_,) in view.rows(
        "SELECT id FROM passages"
        " WHERE NOT EXISTS (SELECT 1 FROM teaches WHERE passage = passages.id)"
    ):
        yield Found(f"nobody says passage {id_}", sql("DELETE FROM passages WHERE id = ?", id_))


def passages_are_indexed(view: View) -> Iterator[Found]:
    """Every text is in exactly one segment of the index."""
    held = [postings.segment(view, id_).passages for id_ in postings.segment_ids(view)]
    indexed, times = np.unique(
        np.concatenate(held) if held else np.zeros(0, np.int64), return_counts=True
    )
    there = np.array([row[0] for row in view.rows("SELECT id FROM passages ORDER BY id")], np.int64)
    missing = there[~np.isin(there, indexed)]
    for first in range(0, len(missing), _AT_ONCE):
        part = missing[first : first + _AT_ONCE].tolist()
        yield Found(
            f"{len(part)} passages from {part[0]} on are not indexed", partial(_index, part)
        )
    doubled = indexed[times > 1]
    doubled = doubled[np.isin(doubled, there)]
    if len(doubled):
        yield Found(f"passage {doubled[0]} is indexed twice", _index_all)


def passages_have_vectors(view: View) -> Iterator[Found]:
    """Every passage has a vector of the wanted model, or waits for one."""
    for (id_,) in view.rows(
        "SELECT id FROM passages WHERE context = 0"
        " AND NOT EXISTS (SELECT 1 FROM awaits WHERE passage = passages.id)"
        " AND NOT EXISTS (SELECT 1 FROM vectors WHERE passage = passages.id"
        "  AND model = (SELECT id FROM models WHERE wanted = 1))"
    ):
        yield Found(
            f"passage {id_} has no vector and waits for none",
            sql("INSERT INTO awaits (passage) VALUES (?)", id_),
        )


def rebuild(txn: Txn, hash_of: Callable[[str], bytes]) -> None:
    """Have all that was learned made anew: the index and the blocks now, from the texts; the texts
    by the next who learns, from files and memories. Vectors that make sense, of texts that have
    the hash they should have, are kept; the others are asked for again.
    """
    for id_, hash_, text in txn.rows("SELECT id, hash, text FROM passages WHERE context = 0"):
        if hash_of(text) != hash_:
            txn.run(
                "DELETE FROM sources WHERE id IN (SELECT source FROM teaches WHERE passage = ?)",
                (id_,),
            )
    for id_, vector in txn.rows("SELECT id, vector FROM vectors"):
        numbers = np.frombuffer(vector[: len(vector) // 2 * 2], "<f2").astype(np.float32)
        if not 0.9 < float(np.linalg.norm(numbers)) < 1.1:  # NaN is not either
            txn.run("DELETE FROM vectors WHERE id = ?", (id_,))
    txn.run("DELETE FROM blocks")
    passages.everything_again(txn)
    postings.drop_all(txn)


def _index(ids: list[int], txn: Txn, _now_ns: int) -> None:
    new = [
        (PassageId(id_), terms(text))
        for id_ in ids
        if (text := passages.text(txn, PassageId(id_))) is not None
    ]
    passages.index(txn, new)


def _index_all(txn: Txn, now_ns: int) -> None:
    postings.drop_all(txn)
    ids = [row[0] for row in txn.rows("SELECT id FROM passages ORDER BY id")]
    for first in range(0, len(ids), _AT_ONCE):
        _index(ids[first : first + _AT_ONCE], txn, now_ns)
