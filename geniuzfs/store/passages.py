"""What was learned: sources, the passages they say, and what is still due.

Hides: how a source's passages are packed, and that a text is kept once however many sources
say it. Promises: `learn` compares with what the source said before: only new text is
inserted, text that nobody says any more goes in the same transaction. Refuses: to know
how a text is split or what it means.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NewType

import numpy as np
from numpy.typing import NDArray

from geniuzfs.model import InodeNumber, PassageId
from geniuzfs.store import postings
from geniuzfs.store.terms import Terms
from geniuzfs.store.transactions import Txn, View

SourceId = NewType("SourceId", int)

NO_DAY = -(2**31)
"""In place of a day: the passage stands beneath no date."""

DIALOGUE = 1
QUESTION = 2
"""Flags of a row: a turn of a conversation; ends in a question mark."""
KINDS = 4
"""Flags from here on: the kinds of answers that a turn could give, as geniuzfs.kinds has them."""

ROW = np.dtype(
    [
        ("passage", "<i8"),
        ("context", "<i8"),
        ("first_line", "<u4"),
        ("last_line", "<u4"),
        ("day", "<i4"),  # since 1970
        ("speaker", "<u4"),  # a key of the name; 0: none
        ("words", "<f4"),
        ("grams", "<f4"),
        ("flags", "<u4"),
    ]
)
"""A passage in its place, as `sources.rows` packs it: 44 bytes."""

Rows = NDArray[np.void]


class Text(NamedTuple):
    """A text by its hash; `context`: what passages stand under, not one of them."""

    hash: bytes
    text: str
    terms: Terms
    context: bool = False


class Said(NamedTuple):
    """A passage in its place in a source: hashes of its text and of its context."""

    hash: bytes
    context: bytes
    first_line: int
    last_line: int
    day: int
    speaker: int
    flags: int


class Lesson(NamedTuple):
    """What a source says. `texts` holds at least those that are not known yet."""

    state: str
    hash: bytes
    said: tuple[Said, ...] = ()
    texts: Mapping[bytes, Text] = {}


class Key(NamedTuple):
    """Where a source comes from: a file or a kept memory, the other is None."""

    inode: InodeNumber | None
    memory: str | None = None


class Source(NamedTuple):
    id: SourceId
    inode: InodeNumber | None
    memory: str | None
    rows: Rows


class Known(NamedTuple):
    """A passage that is there: its number and lengths."""

    id: PassageId
    words: float
    grams: int


class NotKnown(Exception):
    """A text that was known when the lesson was prepared is gone: prepare it again."""


# What is due


def due(view: View, limit: int) -> list[tuple[InodeNumber, int]]:
    """Files to be learned, newest first: (inode, since_ns)."""
    return view.rows("SELECT inode, since_ns FROM due ORDER BY since_ns DESC LIMIT ?", (limit,))


def due_memories(view: View, limit: int) -> list[str]:
    """Kept memories to be learned, by UUID."""
    rows = view.rows("SELECT memory FROM due_memories LIMIT ?", (limit,))
    return [row[0] for row in rows]


def due_rules(view: View) -> list[InodeNumber]:
    """Directories beneath which every file is to be looked at again."""
    return [row[0] for row in view.rows("SELECT directory FROM due_rules")]


def is_due(view: View, inode: InodeNumber, since_ns: int) -> bool:
    """Whether the file is still due for the same save."""
    return (
        view.row("SELECT 1 FROM due WHERE inode = ? AND since_ns = ?", (inode, since_ns))
        is not None
    )


def is_memory_due(view: View, memory: str) -> bool:
    """Whether the memory is still due, and there."""
    return view.row("SELECT 1 FROM due_memories WHERE memory = ?", (memory,)) is not None


def done(txn: Txn, key: Key) -> None:
    """The source is not due any more."""
    if key.inode is not None:
        txn.run("DELETE FROM due WHERE inode = ?", (key.inode,))
    else:
        txn.run("DELETE FROM due_memories WHERE memory = ?", (key.memory,))


def look_again(txn: Txn, directory: InodeNumber, files: Iterable[InodeNumber]) -> None:
    """Make `files` due, and `directory` not due any more."""
    for inode in files:
        txn.run(
            "INSERT OR IGNORE INTO due (inode, since_ns) SELECT number, ctime_ns FROM inodes"
            " WHERE number = ?",
            (inode,),
        )
    txn.run("DELETE FROM due_rules WHERE directory = ?", (directory,))


def everything_again(txn: Txn) -> None:
    """Make every file and memory due, whatever was learned from it."""
    txn.run("UPDATE sources SET hash = x''")
    txn.run(
        "INSERT OR IGNORE INTO due (inode, since_ns) SELECT number, ctime_ns FROM inodes"
        " WHERE (mode & 61440) = 32768 AND stored > 0"
    )
    txn.run("INSERT OR IGNORE INTO due_memories (memory) SELECT memory_uuid FROM memories")


class Waiting(NamedTuple):
    """How much is not learned: sources without words, passages without a vector."""

    sources: int
    passages: int


def waiting(view: View) -> Waiting:
    """Count what is due."""
    return Waiting(
        *view.row(
            "SELECT (SELECT count(*) FROM due) + (SELECT count(*) FROM due_memories),"
            " (SELECT count(*) FROM awaits)"
        )
    )


# Learning


def learned(view: View, key: Key) -> tuple[str, bytes] | None:
    """State and hash of what was learned last from `key`; None: never looked at."""
    row: tuple[str, bytes] | None = _source_row(view, "state, hash", key)
    return row


def known(view: View, hashes: Iterable[bytes]) -> dict[bytes, Known]:
    """Those of the texts that are there."""
    found = {}
    for hash_ in hashes:
        row = view.row("SELECT id, words, grams FROM passages WHERE hash = ?", (hash_,))
        if row is not None:
            found[hash_] = Known(*row)
    return found


def learn(txn: Txn, key: Key, lesson: Lesson) -> list[tuple[PassageId, Terms]]:
    """Have `key` say this and nothing else. Returns the passages that are new, in ascending
    order, whose terms the caller must index in the same transaction. Raises NotKnown.
    """
    passages, new = _passages(txn, lesson)
    rows = np.zeros(len(lesson.said), ROW)
    for index, said in enumerate(lesson.said):
        passage = passages[said.hash]
        rows[index] = (
            passage.id,
            passages[said.context].id,
            said.first_line,
            said.last_line,
            said.day,
            said.speaker,
            passage.words,
            passage.grams,
            said.flags,
        )
    source = _put_source(txn, key, lesson, rows)
    before = {row[0] for row in txn.rows("SELECT passage FROM teaches WHERE source = ?", (source,))}
    now = {passage.id for passage in passages.values()}
    for id_ in sorted(now - before):
        txn.run("INSERT INTO teaches (source, passage) VALUES (?, ?)", (source, id_))
    for id_ in before - now:
        txn.run("DELETE FROM teaches WHERE source = ? AND passage = ?", (source, id_))
    return new


def index(txn: Txn, new: list[tuple[PassageId, Terms]]) -> None:
    """Index new passages of one or several lessons."""
    for first in range(0, len(new), postings.LARGEST):
        part = new[first : first + postings.LARGEST]
        postings.add(txn, [id_ for id_, _ in part], [terms for _, terms in part])


def _passages(txn: Txn, lesson: Lesson) -> tuple[dict[bytes, Known], list[tuple[PassageId, Terms]]]:
    wanted = dict.fromkeys(hash_ for said in lesson.said for hash_ in (said.context, said.hash))
    passages = known(txn, wanted)
    new: list[tuple[PassageId, Terms]] = []
    for hash_ in wanted:
        if hash_ in passages:
            continue
        text = lesson.texts.get(hash_)
        if text is None:
            raise NotKnown
        terms = text.terms
        txn.run(
            "INSERT INTO passages (hash, context, words, grams, text) VALUES (?, ?, ?, ?, ?)",
            (hash_, int(text.context), terms.length, terms.gram_length, text.text),
        )
        id_ = PassageId(txn.inserted())
        if not text.context:
            txn.run("INSERT INTO awaits (passage) VALUES (?)", (id_,))
        passages[hash_] = Known(id_, terms.length, terms.gram_length)
        new.append((id_, terms))
    return passages, new


def _source_row(view: View, columns: str, key: Key) -> Any:
    # Not `inode IS ? AND memory IS ?`: SQLite then looks through all that have no memory.
    if key.inode is not None:
        return view.row(f"SELECT {columns} FROM sources WHERE inode = ?", (key.inode,))
    return view.row(f"SELECT {columns} FROM sources WHERE memory = ?", (key.memory,))


def _put_source(txn: Txn, key: Key, lesson: Lesson, rows: Rows) -> SourceId:
    values = (lesson.state, lesson.hash, rows.tobytes())
    row = _source_row(txn, "id", key)
    if row is None:
        txn.run(
            "INSERT INTO sources (inode, memory, state, hash, rows) VALUES (?, ?, ?, ?, ?)",
            (*key, *values),
        )
        return SourceId(txn.inserted())
    txn.run("UPDATE sources SET state = ?, hash = ?, rows = ? WHERE id = ?", (*values, row[0]))
    return SourceId(row[0])


# Reading what was learned


def newest_learning(view: View) -> int:
    """The `seq` of the newest row of `learnings`."""
    seq: int = view.row("SELECT coalesce(max(seq), 0) FROM learnings")[0]
    return seq


def learnings(view: View, after: int, limit: int) -> list[SourceId] | None:
    """Sources that were learned anew or went after row `after`, each once; None when there
    are more than `limit` of them, or the record does not reach back so far.
    """
    newest = newest_learning(view)
    if newest == after:
        return []
    rows = view.rows(
        "SELECT source FROM learnings WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit + 1)
    )
    if len(rows) > limit or len(rows) != newest - after:
        return None
    return list(dict.fromkeys(SourceId(row[0]) for row in rows))


def prune_learnings(txn: Txn, kept: int) -> None:
    """Forget all but the newest `kept` rows of `learnings`."""
    txn.run("DELETE FROM learnings WHERE seq <= (SELECT max(seq) FROM learnings) - ?", (kept,))


def sources(view: View) -> tuple[list[Source], Rows]:
    """Every source that says something, in order; their rows are parts of one array, the other."""
    rows = view.rows(
        "SELECT id, inode, memory, rows FROM sources WHERE state = 'learned' ORDER BY id"
    )
    # One array of all, in 5 ms for 10,000 sources; to join as many arrays takes 100.
    every = np.frombuffer(b"".join([row[3] for row in rows]), ROW)
    found, end = [], 0
    for id_, inode, memory, held in rows:
        first, end = end, end + len(held) // ROW.itemsize
        found.append(Source(id_, inode, memory, every[first:end]))
    return found, every


def source(view: View, id_: SourceId) -> Source | None:
    """One source; None when it is gone."""
    row = view.row("SELECT id, inode, memory, rows FROM sources WHERE id = ?", (id_,))
    if row is None:
        return None
    number, inode, memory, held = row
    return Source(number, inode, memory, np.frombuffer(held, ROW))


def text(view: View, passage: PassageId) -> str | None:
    """A passage's text; None when it is gone."""
    row = view.row("SELECT text FROM passages WHERE id = ?", (passage,))
    return None if row is None else row[0]


def state(view: View, inode: InodeNumber) -> str | None:
    """`learned` and the like of a file (schema/0003), `waiting` as long as anything of it is
    due; None for a file that was never looked at and holds nothing.
    """
    if view.row("SELECT 1 FROM due WHERE inode = ?", (inode,)) is not None:
        return "waiting"
    row = view.row("SELECT id, state FROM sources WHERE inode = ?", (inode,))
    if row is None:
        return None
    waits = view.row(
        "SELECT 1 FROM teaches JOIN awaits USING (passage) WHERE source = ? LIMIT 1", (row[0],)
    )
    held: str = row[1]
    return "waiting" if waits is not None else held
