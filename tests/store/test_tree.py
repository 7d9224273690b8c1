"""The rules of the tree: what POSIX wants, and what is refused."""

import stat
from collections.abc import Callable

import pytest

from geniuzfs.errors import (
    AlreadyExists,
    DirectoryNotEmpty,
    GeniuzError,
    IntoItself,
    IsADirectory,
    NameTooLong,
    NotADirectory,
    NotFound,
    UsageError,
)
from geniuzfs.model import ROOT, Exchange, Inode, InodeNumber
from geniuzfs.store import content, tree
from geniuzfs.store.connection import Database

FILE, DIRECTORY = tree.New(0o100644, 7, 8), tree.New(0o40755, 7, 8)
GONE = InodeNumber(4711)


def make(
    database: Database, name: bytes, new: tree.New = FILE, parent: InodeNumber = ROOT
) -> InodeNumber:
    with database.txn() as txn:
        return tree.create(txn, parent, name, new, 1).number


def remove(database: Database, name: bytes, *, directory: bool = False) -> Inode:
    with database.txn() as txn:
        return tree.remove(txn, ROOT, name, 2, directory=directory)


def rename(
    database: Database,
    old: tuple[InodeNumber, bytes],
    new: tuple[InodeNumber, bytes],
    exchange: Exchange = Exchange.REPLACE,
) -> tree.Renamed:
    with database.txn() as txn:
        return tree.rename(txn, old, new, exchange, 2)


def inode(database: Database, number: InodeNumber) -> Inode:
    found = tree.inode(database.view, number)
    assert found is not None
    return found


def names(database: Database, parent: InodeNumber = ROOT) -> list[bytes]:
    return [entry.name for entry in tree.listing(database.view, parent, 0, 1000)]


@pytest.mark.parametrize(
    "new",
    [
        tree.New(0o104755, 1, 2),
        tree.New(0o41777, 1, 2),
        tree.New(0o120777, 1, 2, target=b"to \xff somewhere"),
        tree.New(0o010600, 1, 2),
        tree.New(0o140600, 1, 2),
        tree.New(0o020600, 1, 2, rdev=0x0103),
        tree.New(0o060600, 1, 2, rdev=0x0800),
    ],
)
def test_every_type_is_made_as_it_is_told(database: Database, new: tree.New) -> None:
    with database.txn() as txn:
        made = tree.create(txn, ROOT, b"new", new, 3)
    assert made == tree.child(database.view, ROOT, b"new") == inode(database, made.number)
    assert (made.mode, made.uid, made.gid, made.rdev) == new[:4]
    assert made.size == len(new.target or b"")
    assert made.nlink == (2 if stat.S_ISDIR(new.mode) else 1)
    assert made.atime_ns == made.mtime_ns == made.ctime_ns == 3
    if new.target is not None:
        assert tree.target(database.view, made.number) == new.target


def test_making_and_removing_moves_the_times_of_the_directory(database: Database) -> None:
    make(database, b"sub", DIRECTORY)
    root = inode(database, ROOT)
    assert (root.nlink, root.mtime_ns, root.ctime_ns, root.atime_ns) == (3, 1, 1, 1)
    remove(database, b"sub", directory=True)
    root = inode(database, ROOT)
    assert (root.nlink, root.mtime_ns, root.ctime_ns, root.atime_ns) == (2, 2, 2, 1)


def test_names_are_told_apart_by_each_byte(database: Database) -> None:
    wanted = [b"\xc3\xa9", b"e\xcc\x81", b"\xff\xfe", b"a\nb", b"A", b"a", b"n" * 255]
    for name in wanted:
        make(database, name)
    assert names(database) == wanted


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (AlreadyExists, lambda txn: tree.create(txn, ROOT, b"file", FILE, 1)),
        (NotFound, lambda txn: tree.create(txn, GONE, b"new", FILE, 1)),
        (NotADirectory, lambda txn: tree.create(txn, InodeNumber(2), b"new", FILE, 1)),
        (NameTooLong, lambda txn: tree.create(txn, ROOT, b"n" * 256, FILE, 1)),
        (UsageError, lambda txn: tree.create(txn, ROOT, b"", FILE, 1)),
        (UsageError, lambda txn: tree.create(txn, ROOT, b"..", FILE, 1)),
        (UsageError, lambda txn: tree.create(txn, ROOT, b"a/b", FILE, 1)),
        (UsageError, lambda txn: tree.create(txn, ROOT, b"a\0", FILE, 1)),
        (NotFound, lambda txn: tree.link(txn, GONE, ROOT, b"new", 1)),
        (AlreadyExists, lambda txn: tree.link(txn, InodeNumber(2), ROOT, b"dir", 1)),
        (IsADirectory, lambda txn: tree.link(txn, InodeNumber(3), ROOT, b"new", 1)),
        (NotADirectory, lambda txn: tree.link(txn, InodeNumber(2), InodeNumber(2), b"new", 1)),
        (NotFound, lambda txn: tree.remove(txn, ROOT, b"none", 1, directory=False)),
        (IsADirectory, lambda txn: tree.remove(txn, ROOT, b"dir", 1, directory=False)),
        (NotADirectory, lambda txn: tree.remove(txn, ROOT, b"file", 1, directory=True)),
        (DirectoryNotEmpty, lambda txn: tree.remove(txn, ROOT, b"dir", 1, directory=True)),
        (NotFound, lambda txn: tree.change(txn, GONE, tree.Fields(), 1)),
        (NotFound, lambda txn: tree.target(txn, InodeNumber(2))),
    ],
)
def test_what_the_tree_forbids_is_refused_and_changes_nothing(
    database: Database, error: type[GeniuzError], call: Callable[[object], object]
) -> None:
    make(database, b"file")
    make(database, b"below", parent=make(database, b"dir", DIRECTORY))
    before = database.view.rows("SELECT * FROM inodes"), database.view.rows("SELECT * FROM entries")
    with pytest.raises(error), database.txn() as txn:
        call(txn)
    assert before == (
        database.view.rows("SELECT * FROM inodes"),
        database.view.rows("SELECT * FROM entries"),
    )


# Links and the last name.


def test_a_file_lives_until_its_last_name_goes(database: Database) -> None:
    number = make(database, b"one")
    with database.txn() as txn:
        content.save(txn, number, content.Save(3, 1, 1, {0: b"abc"}))
        assert tree.link(txn, number, ROOT, b"two", 5).nlink == 2
    assert remove(database, b"one").nlink == 1
    assert content.read(database.view, number) == b"abc"
    assert remove(database, b"two").nlink == 0
    assert tree.inode(database.view, number) is None


def test_who_loses_a_file_is_asked_while_its_bytes_are_there(database: Database) -> None:
    number = make(database, b"file")
    kept = []
    with database.txn() as txn:
        content.save(txn, number, content.Save(3, 1, 1, {0: b"abc"}))

        def keep(found: Inode) -> None:
            kept.append(content.read(txn, found.number))

        tree.remove(txn, ROOT, b"file", 2, directory=False, losing=keep)
        tree.create(txn, ROOT, b"new", FILE, 2)
        tree.create(txn, ROOT, b"old", FILE, 2)
        tree.rename(txn, (ROOT, b"new"), (ROOT, b"old"), Exchange.REPLACE, 3, losing=keep)
    assert kept == [b"abc", b""]


def test_a_number_is_never_given_twice(database: Database) -> None:
    first = make(database, b"file")
    remove(database, b"file")
    assert make(database, b"file") > first


# Renames.


def test_a_rename_replaces_in_one_step(database: Database) -> None:
    number, other = make(database, b"new"), make(database, b"old")
    done = rename(database, (ROOT, b"new"), (ROOT, b"old"))
    assert done.moved.number == number
    assert done.other is not None
    assert (done.other.number, done.other.nlink) == (other, 0)
    assert names(database) == [b"old"]
    assert inode(database, number).ctime_ns == 2


def test_a_directory_takes_its_link_along(database: Database) -> None:
    place = make(database, b"place", DIRECTORY)
    moved = make(database, b"moved", DIRECTORY)
    rename(database, (ROOT, b"moved"), (place, b"here"))
    assert (inode(database, ROOT).nlink, inode(database, place).nlink) == (3, 3)
    assert tree.parent_of(database.view, moved) == place
    assert tree.parent_of(database.view, ROOT) == ROOT


def test_two_names_of_one_file_stay_both(database: Database) -> None:
    number = make(database, b"one")
    with database.txn() as txn:
        tree.link(txn, number, ROOT, b"two", 1)
    done = rename(database, (ROOT, b"one"), (ROOT, b"two"))
    assert done.moved == done.other
    assert names(database) == [b"one", b"two"]


def test_a_swap_exchanges_two_of_any_type(database: Database) -> None:
    place = make(database, b"place", DIRECTORY)
    number, other = make(database, b"file"), make(database, b"sub", DIRECTORY, place)
    rename(database, (ROOT, b"file"), (place, b"sub"), Exchange.SWAP)
    here, there = tree.child(database.view, ROOT, b"file"), tree.child(database.view, place, b"sub")
    assert here is not None
    assert there is not None
    assert (here.number, there.number) == (other, number)
    assert (inode(database, ROOT).nlink, inode(database, place).nlink) == (4, 2)


@pytest.mark.parametrize(
    ("error", "old", "new", "exchange"),
    [
        (NotFound, b"none", b"file", Exchange.REPLACE),
        (NotFound, b"file", b"none", Exchange.SWAP),
        (AlreadyExists, b"file", b"dir", Exchange.NOREPLACE),
        (AlreadyExists, b"file", b"file", Exchange.NOREPLACE),
        (IsADirectory, b"file", b"dir", Exchange.REPLACE),
        (NotADirectory, b"dir", b"file", Exchange.REPLACE),
        (DirectoryNotEmpty, b"empty", b"dir", Exchange.REPLACE),
        (NameTooLong, b"file", b"n" * 256, Exchange.REPLACE),
        (UsageError, b"file", b".", Exchange.REPLACE),
    ],
)
def test_a_rename_that_is_forbidden_changes_nothing(
    database: Database, error: type[GeniuzError], old: bytes, new: bytes, exchange: Exchange
) -> None:
    make(database, b"file")
    make(database, b"empty", DIRECTORY)
    make(database, b"below", parent=make(database, b"dir", DIRECTORY))
    with pytest.raises(error):
        rename(database, (ROOT, old), (ROOT, new), exchange)
    assert names(database) == [b"file", b"empty", b"dir"]


def test_a_directory_is_not_moved_beneath_itself(database: Database) -> None:
    top = make(database, b"top", DIRECTORY)
    middle = make(database, b"middle", DIRECTORY, top)
    low = make(database, b"low", DIRECTORY, middle)
    for place in (top, middle, low):
        with pytest.raises(IntoItself):
            rename(database, (ROOT, b"top"), (place, b"new"))
    with pytest.raises(IntoItself):
        rename(database, (ROOT, b"top"), (middle, b"low"), Exchange.SWAP)
    with pytest.raises(IntoItself):
        rename(database, (middle, b"low"), (ROOT, b"top"), Exchange.SWAP)
    with pytest.raises(DirectoryNotEmpty):
        rename(database, (middle, b"low"), (ROOT, b"top"))


# Listings.


def test_a_listing_in_pages_names_what_stays_exactly_once(database: Database) -> None:
    stays = [b"%d" % number for number in range(50)]
    for name in stays:
        make(database, name)
    seen: list[bytes] = []
    after = 0
    while page := tree.listing(database.view, ROOT, after, 7):
        seen += [entry.name for entry in page]
        after = page[-1].id
        make(database, b"new %d" % after)
        remove(database, b"new %d" % after)
        rename(database, (ROOT, b"49"), (ROOT, b"moved"))
        rename(database, (ROOT, b"moved"), (ROOT, b"49"))
    assert [name for name in seen if not name.startswith(b"new")] == stays


def test_the_inodes_of_a_page_come_with_one_question(database: Database) -> None:
    numbers = [make(database, b"%d" % number) for number in range(5)]
    entries = tree.listing(database.view, ROOT, 0, 3)
    found = tree.inodes_listed(database.view, ROOT, entries[0].id, entries[-1].id)
    assert {one.number for one in found} == set(numbers[:3])


# Attributes.


def test_a_change_sets_what_is_named_and_never_the_type(database: Database) -> None:
    number = make(database, b"file")
    with database.txn() as txn:
        changed = tree.change(txn, number, tree.Fields(mode=0o44751, mtime_ns=77), 9)
    assert changed == inode(database, number)
    assert (changed.mode, changed.uid, changed.gid) == (0o104751, 7, 8)
    assert (changed.atime_ns, changed.mtime_ns, changed.ctime_ns) == (1, 77, 9)
