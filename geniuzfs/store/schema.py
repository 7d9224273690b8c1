"""The schema: numbered SQL files, run once each, in order, and recorded.

Hides: where the files lie. Promises: each runs in one transaction together with
its record, so a crash leaves the schema before or after it; two processes that
open a new file at once do no harm. Refuses: a file made by a later version.
"""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import apsw

from geniuzfs.errors import StoreDamaged, TooNew
from geniuzfs.store.transactions import Txn, View

RECORD = "INSERT INTO migrations (number, name) VALUES (?, ?)"


_SIGNALS = "signals.sql"


_OURS = {"_meta", "memories", "signals", "inodes", "migrations"}
"""A file has one of these tables at least, from whenever it is."""


class SchemaFile(NamedTuple):
    number: int
    name: str
    sql: str


@cache
def schema_files() -> list[SchemaFile]:
    """The SQL files in order: beside the package in a wheel, one up in a checkout."""
    found = sorted(_folder().glob("[0-9][0-9][0-9][0-9]_*.sql"))
    return [SchemaFile(int(file.name[:4]), file.stem, file.read_text("utf-8")) for file in found]


def _folder() -> Path:
    package = Path(__file__).parent.parent
    for folder in (package / "schema", package.parent / "schema"):
        if (folder / _SIGNALS).exists():
            return folder
    raise FileNotFoundError("the installation lacks its schema files: install geniuzfs again")


@cache
def objects() -> dict[str, str]:
    """What a new file has: the name of each table, index, view and trigger → its SQL."""
    connection = apsw.Connection(":memory:")
    try:
        migrate(Txn(connection))
        named = connection.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
        return {name: sql for name, sql in named if not name.startswith("sqlite_")}
    finally:
        connection.close()


def check_ours(view: View) -> None:
    """Raises StoreDamaged for a database of some other program: nothing is put into it."""
    rows = view.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
    names = {row[0] for row in rows}
    if names and not names & _OURS:
        raise StoreDamaged("it is a database of another program")


def migrate(txn: Txn) -> None:
    """Run what has not been run here yet. Raises TooNew and changes nothing when
    the file records a number that this program does not have.
    """
    files = schema_files()
    applied = _applied(txn)
    if applied > files[-1].number:
        raise TooNew(
            f"this folder was written by a newer geniuzfs"
            f" (schema {applied}, here {files[-1].number}): upgrade"
        )
    for file in files[max(0, applied) :]:
        with txn:
            if _applied(txn) >= file.number:  # another process was faster
                continue
            try:
                if file.number == 1 and _has_signals(txn):
                    txn.run((_folder() / _SIGNALS).read_text("utf-8"))
                txn.run(file.sql)
            except apsw.SQLError as error:
                raise StoreDamaged(f"{file.name} does not fit what is there: {error}") from error
            txn.run(
                "CREATE TABLE IF NOT EXISTS migrations"
                " (number INTEGER PRIMARY KEY, name TEXT NOT NULL,"
                " applied_at TEXT NOT NULL DEFAULT (datetime('now'))) STRICT"
            )
            txn.run(RECORD, (file.number, file.name))


def _has_signals(txn: Txn) -> bool:
    """Whether the file's memories have the name that they had at first."""
    named = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
    return bool(txn.row(named, ("signals",))) and not txn.row(named, ("memories",))


def _applied(txn: Txn) -> int:
    if not txn.row("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'"):
        return 0
    number: int = txn.row("SELECT coalesce(max(number), 0) FROM migrations")[0]
    return number
