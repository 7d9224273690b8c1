"""What saving, learning and asking cost does not grow with what was written before."""

from pathlib import Path
from typing import Any

import apsw

from geniuzfs.store import tree
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.notes import Asker, learn, remove, rename, write

FEW, MANY = 20, 400


def steps(path: Path, notes: int) -> dict[str, int]:
    """The most steps of SQLite's machine that each statement of a day's work took, in a folder
    with so many other notes.
    """
    taken: dict[str, int] = {}

    def note(event: dict[str, Any]) -> None:
        sql, took = event["sql"], event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]
        taken[sql] = max(taken.get(sql, 0), took)

    database = Database.open(path, create=True)
    try:
        with database.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
        embedder = FakeEmbedder()
        asker = Asker(database, embedder)
        for number in range(notes):
            write(
                database, f"deep/{number}.md", f"# Plans\n\nNote {number} says this.\n\nAnd that."
            )
        learn(database, embedder)
        asker.ask("note")
        database.view._connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
        write(database, "deep/1.md", "# Plans\n\nNote 1 says something else.")
        learn(database, embedder)
        asker.ask("what does note 1 say")
        rename(database, "deep/2.md", "deep/3.md")
        learn(database, embedder)
        remove(database, "deep/3.md")
        asker.ask("note")
        database.view._connection.trace_v2(0)
    finally:
        database.close()
    return taken


def test_no_statement_of_a_days_work_takes_longer_among_many_notes(tmp_path: Path) -> None:
    few, many = steps(tmp_path / "few.db", FEW), steps(tmp_path / "many.db", MANY)
    assert len(few) > 50
    grown = {
        sql: (took, many[sql]) for sql, took in few.items() if many.get(sql, 0) > took * 3 + 300
    }
    assert grown == {}
