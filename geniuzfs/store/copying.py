"""A folder's database is copied to another disk, and the original is sealed.

Promises: the copy is what was committed when it began, to the last row, or there is none; who
writes to a sealed file, with any tool, is refused (Busy here: the folder is elsewhere by now).
Refuses: to seal against a tool that drops triggers.
"""

from collections.abc import Callable
from pathlib import Path

import apsw

from geniuzfs.errors import StoreDamaged
from geniuzfs.store import meta
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import SEALED, Txn, View, translated

Told = Callable[[int, int], None]
"""Is called with how much is done, and of how much: pages of a copy, say."""

STEP_PAGES = 4_000
"""Copied between two words of progress: 16 MB."""

_MOVED_TO = "moved_to"


def copy(source: Path, target: Path, told: Told = lambda done, of: None) -> None:
    """Make `target`, a new file, a copy of the database at `source`, and compare the two. Nobody
    may write to `source` meanwhile. Raises StoreDamaged when they differ. Not synced.
    """
    original = Database.open(source)
    try:
        _copy_pages(source, target, told)
        twin = Database.open(target)
        try:
            _compare(original, twin)
        finally:
            twin.close()
    finally:
        original.close()


def seal(txn: Txn, target: str) -> None:
    """Let nobody write to this file any more: the folder is at `target` now."""
    meta.put(txn, _MOVED_TO, target)
    tables = txn.rows(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE T%'"
    )
    for (table,) in tables:
        if table.startswith("sqlite_"):
            continue
        name = table.replace('"', '""')
        for change in ("INSERT", "UPDATE", "DELETE"):
            txn.run(
                f'CREATE TRIGGER "sealed_{name}_{change}" BEFORE {change} ON "{name}"'
                f" BEGIN SELECT RAISE(ABORT, '{SEALED}: try again'); END"
            )


def moved_to(view: View) -> str | None:
    """Where the folder of a sealed file is; None for a file that is not sealed."""
    row = view.row("SELECT value FROM _meta WHERE key = ?", (_MOVED_TO,))
    return None if row is None else str(row[0])


def _copy_pages(source: Path, target: Path, told: Told) -> None:
    try:
        reading = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            writing = apsw.Connection(str(target))
            try:
                with writing.backup("main", reading, "main") as backup:
                    while not backup.done:
                        backup.step(STEP_PAGES)
                        told(backup.page_count - backup.remaining, backup.page_count)
            finally:
                writing.close()
        finally:
            reading.close()
    except apsw.Error as error:
        raise translated(error) from error


def _compare(original: Database, twin: Database) -> None:
    with original.snapshot() as one, twin.snapshot() as other:
        found: str = other.row("PRAGMA integrity_check(1)")[0]
        if found != "ok":
            raise StoreDamaged(f"the copy at {twin.path} is not sound: {found}")
        if meta.identity(one) != meta.identity(other) or _counts(one) != _counts(other):
            raise StoreDamaged(f"the copy at {twin.path} is not what was copied")


def _counts(view: View) -> dict[str, int]:
    tables = view.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    quoted = ((name, name.replace('"', '""')) for (name,) in tables)
    return {name: view.row(f'SELECT count(*) FROM "{table}"')[0] for name, table in quoted}
