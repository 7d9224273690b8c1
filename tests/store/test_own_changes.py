"""A connection is told what others have changed, and never what it has changed itself."""

import pytest

from geniuzfs.errors import NotFound
from geniuzfs.model import ROOT
from geniuzfs.store import tree
from geniuzfs.store.connection import Database

FILE = tree.New(0o100644, 0, 0)


def create(database: Database, name: bytes) -> None:
    with database.txn() as txn:
        tree.create(txn, ROOT, name, FILE, 1)


def undo(database: Database, name: bytes) -> None:
    """Create a file in a transaction that is undone."""

    def fail() -> None:
        with database.txn() as txn:
            tree.create(txn, ROOT, name, FILE, 1)
            raise NotFound("after all")

    with pytest.raises(NotFound):
        fail()


def names_told(database: Database) -> list[bytes]:
    news = database.news()
    assert news is not None
    return [change.name for change in news if change.name is not None]


def test_a_commit_of_another_does_not_bring_up_ones_own(database: Database) -> None:
    other = Database.open(database.path)
    try:
        database.news()
        create(database, b"mine")
        create(other, b"theirs")
        create(database, b"mine too")
        assert names_told(database) == [b"theirs"]
        assert names_told(other) == [b"mine", b"mine too"]
    finally:
        other.close()


def test_what_was_undone_does_not_hide_what_another_did_under_its_number(
    database: Database,
) -> None:
    other = Database.open(database.path)
    try:
        database.news()
        create(database, b"mine")
        undo(database, b"undone")
        create(other, b"theirs")
        assert names_told(database) == [b"theirs"]
    finally:
        other.close()
