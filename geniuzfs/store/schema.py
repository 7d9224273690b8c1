"""The schema: numbered SQL files, run once each, in order, and recorded.

Hides: where the files lie. Promises: each runs in one transaction together with
its record, so a crash leaves the schema before or after it; two processes that
open a new file at once do no harm. Refuses: a file made by a later version.
"""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from geniuzfs.errors import TooNew
from geniuzfs.store.transactions import Txn


class SchemaFile(NamedTuple):
    number: int
    name: str
    sql: str


@cache
def schema_files() -> list[SchemaFile]:
    """The SQL files in order: beside the package in a wheel, one up in a checkout."""
    package = Path(__file__).parent.parent
    for folder in (package / "schema", package.parent / "schema"):
        found = sorted(folder.glob("[0-9][0-9][0-9][0-9]_*.sql"))
        if found:
            return [
                SchemaFile(int(file.name[:4]), file.stem, file.read_text("utf-8")) for file in found
            ]
    raise FileNotFoundError("the installation lacks its schema files: install geniuzfs again")


def statements(sql: str) -> list[str]:
    """The statements of a schema file. Each ends at a semicolon that ends a line,
    a trigger at its END.
    """
    bare = re.sub(r"(?m)^\s*--.*\n|\s+--.*$", "", sql)
    whole = re.findall(r"(?ms)^CREATE TRIGGER.*?^END;$|^\S.*?;$", bare)
    return [statement.strip() for statement in whole]


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
            for statement in statements(file.sql):
                txn.run(statement)
            txn.run(
                "CREATE TABLE IF NOT EXISTS migrations"
                " (number INTEGER PRIMARY KEY, name TEXT NOT NULL,"
                " applied_at TEXT NOT NULL DEFAULT (datetime('now'))) STRICT"
            )
            txn.run("INSERT INTO migrations (number, name) VALUES (?, ?)", (file.number, file.name))


def _applied(txn: Txn) -> int:
    if not txn.row("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migrations'"):
        return 0
    number: int = txn.row("SELECT coalesce(max(number), 0) FROM migrations")[0]
    return number
