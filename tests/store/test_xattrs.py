"""Attributes are kept byte for byte, with the file and no longer."""

import pytest

from geniuzfs.errors import NoSuchAttribute, NotFound, UsageError
from geniuzfs.model import ROOT, InodeNumber
from geniuzfs.store import tree, xattrs
from geniuzfs.store.connection import Database


@pytest.fixture
def file(database: Database) -> InodeNumber:
    with database.txn() as txn:
        return tree.create(txn, ROOT, b"file", tree.New(0o100644, 0, 0), 1).number


def put(database: Database, number: InodeNumber, name: bytes, value: bytes) -> None:
    with database.txn() as txn:
        xattrs.put(txn, number, name, value, 9)


def remove(database: Database, number: InodeNumber, name: bytes) -> None:
    with database.txn() as txn:
        xattrs.remove(txn, number, name, 10)


@pytest.mark.parametrize("value", [b"", b"a\x00\xff", bytes(65_536)])
def test_a_value_comes_back_as_it_was_and_can_be_replaced(
    database: Database, file: InodeNumber, value: bytes
) -> None:
    put(database, file, b"user.a", b"before")
    put(database, file, b"user.a", value)
    assert xattrs.get(database.view, file, b"user.a") == value


def test_names_are_listed_in_order_and_told_apart_by_each_byte(
    database: Database, file: InodeNumber
) -> None:
    for name in (b"user.b", b"user.a", b"user.A", b"user.\xff"):
        put(database, file, name, name)
    assert xattrs.names(database.view, file) == [b"user.A", b"user.a", b"user.b", b"user.\xff"]


def test_a_change_moves_ctime_and_no_other_time(database: Database, file: InodeNumber) -> None:
    put(database, file, b"user.a", b"b")
    found = tree.inode(database.view, file)
    assert found is not None
    assert (found.atime_ns, found.mtime_ns, found.ctime_ns) == (1, 1, 9)
    remove(database, file, b"user.a")
    found = tree.inode(database.view, file)
    assert found is not None
    assert (found.atime_ns, found.mtime_ns, found.ctime_ns) == (1, 1, 10)


def test_what_is_not_there_is_said_so(database: Database, file: InodeNumber) -> None:
    with pytest.raises(NoSuchAttribute):
        xattrs.get(database.view, file, b"user.a")
    with pytest.raises(NoSuchAttribute):
        remove(database, file, b"user.a")
    assert xattrs.names(database.view, file) == []


def test_a_file_that_is_gone_takes_no_attribute(database: Database, file: InodeNumber) -> None:
    put(database, file, b"user.a", b"b")
    with database.txn() as txn:
        tree.remove(txn, ROOT, b"file", 2, directory=False)
    assert database.view.rows("SELECT * FROM xattrs") == []
    with pytest.raises(NotFound):
        put(database, file, b"user.a", b"b")


@pytest.mark.parametrize(("name", "value"), [(b"", b""), (b"n" * 256, b""), (b"n", bytes(65_537))])
def test_what_no_kernel_would_pass_is_refused(
    database: Database, file: InodeNumber, name: bytes, value: bytes
) -> None:
    with pytest.raises(UsageError):
        put(database, file, name, value)


def test_the_holders_of_a_name_are_found(database: Database, file: InodeNumber) -> None:
    assert xattrs.holders(database.view, b"security.capability") == set()
    put(database, file, b"security.capability", b"c")
    put(database, ROOT, b"user.a", b"b")
    assert xattrs.holders(database.view, b"security.capability") == {file}
