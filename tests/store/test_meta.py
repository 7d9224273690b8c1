"""A folder's file says who it is, and keeps what other programs say in it."""

from geniuzfs.model import FolderId, Identity
from geniuzfs.store import meta
from geniuzfs.store.connection import Database

ME = Identity(FolderId("3487B9B0-0000-4000-8000-000000000001"), "Work", "", "2026-01-01 00:00:00")


def test_a_new_file_has_no_identity(database: Database) -> None:
    assert meta.identity(database.view) is None


def test_an_identity_is_given_once_and_read_by_all(database: Database) -> None:
    with database.txn() as txn:
        assert meta.identify(txn, ME) == ME
    with database.txn() as txn:
        assert meta.identify(txn, ME._replace(id=FolderId("another"), name="Another")) == ME
    other = Database.open(database.path)
    assert meta.identity(other.view) == ME
    other.close()


def test_keys_that_are_not_ours_are_never_rewritten(database: Database) -> None:
    with database.txn() as txn:
        txn.run("INSERT INTO _meta VALUES ('theirs', 'kept'), ('name', 'given before')")
        meta.identify(txn, ME)
    kept = dict(database.view.rows("SELECT key, value FROM _meta"))
    assert kept["theirs"] == "kept"
    assert kept["name"] == "given before"
    assert (kept["version"], kept["product"]) == ("1.0", "geniuz")


def test_an_identity_with_nothing_but_a_number_is_one(database: Database) -> None:
    with database.txn() as txn:
        txn.run("INSERT INTO _meta VALUES ('uuid', 'X'), ('name', NULL)")
    assert meta.identity(database.view) == Identity(FolderId("X"), "", "", "")
