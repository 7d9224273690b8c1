"""Fixtures of the tests beside a mount's loop."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from geniuzfs.fs.durability import Durability
from geniuzfs.model import ROOT, InodeNumber
from geniuzfs.store import check, tree
from geniuzfs.store.connection import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """As a mount opens it: nothing on the loop waits for a lock."""
    opened = Database.open(tmp_path / "memory.db", create=True, wait=0)
    try:
        with opened.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
        yield opened
        with opened.snapshot() as view:
            assert list(check.problems(view)) == []
    finally:
        opened.close()


@pytest.fixture
def durability(database: Database) -> Iterator[Durability]:
    made = Durability(database)
    yield made
    made.close()


@pytest.fixture
def file(database: Database) -> InodeNumber:
    with database.txn() as txn:
        return tree.create(txn, ROOT, b"plan.md", tree.New(0o100644, 0, 0), 2).number
