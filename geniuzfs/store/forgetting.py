"""Files and memories are erased: not only removed, but gone from the bytes of the database.

Hides: where SQLite, the index and the vectors keep what was deleted. Promises: `files` and `memory`
remove in the caller's transaction all that a file or memory said and nothing else does, and leave a
mark; `erase` then overwrites what lies about, and takes the mark away when all of it is done. A
crash in between leaves the mark: who erases next does what is left. The guard of kept memories is
lifted within the one transaction alone. Refuses: to know of backups, archives and disks.

Nothing of this is needed for a removal to be a removal: readers never see what is gone.
"""

import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from geniuzfs.errors import NotFound, UsageError
from geniuzfs.model import ROOT, InodeNumber, Memory, MemoryId
from geniuzfs.store import (
    histories,
    memories,
    meta,
    paths,
    postings,
    retention,
    tree,
    vectors,
    whole,
)
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import Txn, View
from geniuzfs.store.versions import LineageId

_MARK = "forgetting"
"""In `_meta`, with the time: something was forgotten, and may still lie about in the file."""

_RECORD = "forgotten "
"""In `_meta`, with a memory's ID behind it: when that was forgotten. It is all that is left."""

_TIME = "%Y-%m-%d %H:%M:%S"


class Beneath(NamedTuple):
    """What stands at a path, with all beneath it; `removed`: the histories of files that stood
    there or beneath.
    """

    numbers: list[InodeNumber]
    removed: list[LineageId]
    files: int
    directories: int


def beneath(view: View, path: bytes) -> Beneath:
    """What forgetting `path`, relative to the folder's top, takes. Raises NotFound where nothing
    is and nothing was, and UsageError for the top itself.
    """
    number = paths.find(view, path)
    if number == ROOT:
        raise UsageError("that is the whole folder: name what is in it, or remove the folder")
    removed = histories.ended(view, b"".join(name + b"/" for name in whole.parts(path)))
    if number is None and not removed:
        raise NotFound(f"there is nothing at {path.decode('utf-8', 'replace')!r}")
    numbers = [] if number is None else paths.all_beneath(view, number)
    found = (tree.inode(view, each) for each in numbers)
    directories = sum(each is not None and stat.S_ISDIR(each.mode) for each in found)
    return Beneath(numbers, removed, len(numbers) - directories, directories)


def files(txn: Txn, found: Beneath, now_ns: int) -> None:
    """Remove what was found, with every name that it has, its history and that of what was removed
    there before, and all that was learned of it alone.
    """
    retention.erase_of(txn, found.numbers)
    for lineage in found.removed:
        retention.erase(txn, lineage)
    tree.remove_all(txn, found.numbers, now_ns)
    meta.put(txn, _MARK, _told(now_ns))


def memory(txn: Txn, gone: Memory, now_ns: int) -> None:
    """Remove a kept memory, and all that was learned of it alone. What continued it continues what
    it continued; where it began its thread, or that beginning is not here, each begins one.
    """
    above = gone.parent if memories.memory(txn, gone.parent) is not None else gone.id
    with _guard_lifted(txn):
        txn.run(
            "UPDATE memories SET parent_uuid = CASE WHEN ?1 = ?2 THEN memory_uuid ELSE ?1 END"
            " WHERE parent_uuid = ?2 AND memory_uuid <> ?2",
            (above, gone.id),
        )
        txn.run("DELETE FROM memory_embeddings WHERE memory_uuid = ?", (gone.id,))
        txn.run("DELETE FROM memories WHERE memory_uuid = ?", (gone.id,))
    meta.put(txn, _RECORD + gone.id, _told(now_ns))
    meta.put(txn, _MARK, _told(now_ns))


def forgotten(view: View) -> dict[MemoryId, str]:
    """The memories that were forgotten, by ID, and when (UTC)."""
    rows = view.rows(
        "SELECT substr(key, ?1), value FROM _meta WHERE substr(key, 1, ?1 - 1) = ?2",
        (len(_RECORD) + 1, _RECORD),
    )
    return dict(rows)


def unfinished(view: View) -> str | None:
    """Since when something that was forgotten may still lie about (UTC); None: nothing does."""
    row = view.row("SELECT value FROM _meta WHERE key = ?", (_MARK,))
    return None if row is None else str(row[0])


def erase(database: Database, patiently: Callable[[Callable[[], None]], None]) -> None:
    """Overwrite all that is gone from this folder, whoever removed it, in the index, in gaps and
    free pages and in the log. `patiently` carries out what may be Busy, as often as it wants.
    """
    marked = unfinished(database.view)
    database.overwrite_deleted()
    for step in (_forget_changes, _erase_learned, Database.rewrite, Database.empty_log):
        patiently(partial(step, database))
    with database.txn() as txn:  # another may have begun to forget meanwhile
        txn.run("DELETE FROM _meta WHERE key = ? AND value = ?", (_MARK, marked))


def _forget_changes(database: Database) -> None:
    """The record of changes holds names, also such as a file had before it was renamed."""
    with database.txn() as txn:
        newest = database.newest_change()
        txn.run("INSERT INTO changes (inode) VALUES (?)", (ROOT,))  # the newest row never goes
        txn.run("DELETE FROM changes WHERE name IS NOT NULL AND seq <= ?", (newest,))


def _erase_learned(database: Database) -> None:
    with database.snapshot() as view:
        ids = [id_ for id_ in postings.segment_ids(view) if postings.holds_gone(view, id_)]
    for id_ in ids:  # a transaction each, so that savers get their turn
        with database.txn() as txn:
            if id_ in postings.segment_ids(txn):
                postings.erase_gone(txn, id_)
    with database.txn() as txn:
        postings.drop_unfinished(txn)
        vectors.erase_gone(txn)


@contextmanager
def _guard_lifted(txn: Txn) -> Iterator[None]:
    """Within it memories can be changed. Before the transaction ends the triggers are back; one
    that is undone never took them away.
    """
    triggers = txn.rows(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'memories'"
        " AND substr(name, 1, 15) = 'prevent_memory_'"
    )
    for name, _ in triggers:
        txn.run(f'DROP TRIGGER "{name}"')
    yield
    for _, sql in triggers:
        txn.run(sql)


def _told(now_ns: int) -> str:
    return datetime.fromtimestamp(now_ns // 10**9, UTC).strftime(_TIME)
