"""A transaction is whole or not at all, and others are told of it."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from geniuzfs.errors import (
    Busy,
    NotFound,
    ReadOnly,
    StoreDamaged,
    StoreFault,
    UsageError,
)
from geniuzfs.model import CHUNK, ROOT, Change, Exchange, InodeNumber
from geniuzfs.store import connection, content, tree, xattrs
from geniuzfs.store.connection import Database

FILE = tree.New(0o100644, 0, 0)
OLD = {0: b"old" * 20_000, 1: b"o" * CHUNK, 2: b"old end"}
MEMORY = (
    "INSERT INTO memories (memory_uuid, payload)"
    " VALUES ('00000000-0000-4000-8000-000000000000', '{}');"
)
Told = list[tuple[int, bytes | None]]


@pytest.fixture
def other(database: Database) -> Iterator[Database]:
    """A second connection to the same database."""
    opened = Database.open(database.path, wait=0)
    yield opened
    opened.close()


def create(database: Database, name: bytes) -> InodeNumber:
    with database.txn() as txn:
        return tree.create(txn, ROOT, name, FILE, 1).number


def save(database: Database, number: InodeNumber, pieces: dict[int, bytes]) -> None:
    last = max(index for index, piece in pieces.items() if piece)
    size = last * CHUNK + len(pieces[last])
    with database.txn() as txn:
        content.save(txn, number, content.Save(size, 2, 2, pieces))


# Opening.


def test_a_missing_file_is_not_found_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Database.open(tmp_path / "memory.db")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_database_is_damaged_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(b"something else " * 1000)
    with pytest.raises(StoreDamaged):
        Database.open(path)
    assert path.read_bytes() == b"something else " * 1000


def test_a_directory_in_its_place_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(StoreFault):
        Database.open(tmp_path, create=True)


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.touch()
    opened = Database.open(path)
    assert opened.wal_path.exists()
    opened.close()


# Transactions.


def test_an_exception_undoes_everything(database: Database) -> None:
    def undone() -> None:
        with database.txn() as txn:
            tree.create(txn, ROOT, b"undone", FILE, 1)
            raise KeyError("on purpose")

    with pytest.raises(KeyError):
        undone()
    assert tree.child(database.view, ROOT, b"undone") is None
    create(database, b"the next one works")


def test_a_snapshot_sees_one_state_and_a_view_the_newest(
    database: Database, other: Database
) -> None:
    with database.snapshot() as view:
        assert tree.child(view, ROOT, b"late") is None
        create(other, b"late")
        assert tree.child(view, ROOT, b"late") is None
    assert tree.child(database.view, ROOT, b"late") is not None


def test_a_held_lock_is_busy_at_once_without_a_wait(database: Database, other: Database) -> None:
    with database.txn():
        with pytest.raises(Busy):
            create(other, b"blocked")
        assert tree.child(other.view, ROOT, b"blocked") is None
    create(other, b"free again")


def test_a_statement_that_breaks_a_constraint_is_refused_by_name(database: Database) -> None:
    number = create(database, b"file")
    for error, statement in (
        (UsageError, f"UPDATE inodes SET nlink = 0 WHERE number = {number}"),
        (UsageError, f"UPDATE inodes SET mode = NULL WHERE number = {number}"),
        (NotFound, "INSERT INTO xattrs VALUES (4711, x'41', x'42')"),
        (ReadOnly, "DELETE FROM memories"),
    ):
        with pytest.raises(error), database.txn() as txn:
            txn.run(MEMORY + statement)


# News.


def names(news: list[Change] | None) -> list[bytes | None]:
    assert news is not None
    return [change.name for change in news]


def test_news_names_each_kind_of_change_of_another_in_order(
    database: Database, other: Database
) -> None:
    number = create(other, b"file")
    save(other, number, OLD)
    with other.txn() as txn:
        xattrs.put(txn, number, b"user.a", b"b", 3)
    with other.txn() as txn:
        tree.rename(txn, (ROOT, b"file"), (ROOT, b"moved"), Exchange.REPLACE, 4)
    with other.txn() as txn:
        tree.remove(txn, ROOT, b"moved", 5, directory=False)
    news = database.news()
    assert news is not None
    assert [change.seq for change in news] == sorted(change.seq for change in news)
    told: Told = [(change.inode, change.name) for change in news]
    kinds: Told = [(ROOT, b"file"), (number, None), (ROOT, b"moved"), (number, None)]
    assert in_this_order(kinds, told)
    assert database.news() == []


def in_this_order(wanted: Told, told: Told) -> bool:
    remaining = iter(told)
    return all(one in remaining for one in wanted)


def test_one_s_own_commits_are_no_news(database: Database) -> None:
    create(database, b"mine")
    assert database.news() == []


@pytest.mark.parametrize("seed", range(20))
def test_no_commit_of_another_is_missed_whatever_comes_between(
    database: Database, other: Database, seed: int
) -> None:
    chance = random.Random(seed)
    number = create(database, b"shared")
    database.news()
    pending: Told = []
    for step in range(60):
        name = b"%d" % step
        match chance.randrange(6):
            case 0:
                create(database, name)
            case 1:
                create(other, name)
                pending.append((ROOT, name))
            case 2:
                save(database, number, {0: name})
            case 3:
                save(other, number, {0: name})
                pending.append((number, None))
            case 4:  # a program that changes bytes and nothing else
                with other.txn() as txn:
                    txn.run("INSERT OR REPLACE INTO contents VALUES (?, ?)", (number, name))
                    size = "UPDATE inodes SET stored = ?1, size = ?1 WHERE number = ?2"
                    txn.run(size, (len(name), number))
                pending.append((number, None))
            case _:
                news = database.news()
                assert news is not None
                assert in_this_order(pending, [(one.inode, one.name) for one in news])
                pending.clear()


def test_bytes_that_another_changed_twice_are_told_twice(
    database: Database, other: Database
) -> None:
    """The second time no row of the inode itself changes."""
    number = create(database, b"shared")
    save(database, number, {0: b"first"})
    database.news()
    for piece in (b"1 to 5", b"2 to 5"):
        with other.txn() as txn:
            txn.run("UPDATE contents SET bytes = ? WHERE inode = ?", (piece[:5], number))
        news = database.news()
        assert news is not None
        assert (number, None) in [(change.inode, change.name) for change in news]


def test_more_news_than_the_limit_are_not_told_one_by_one(
    database: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "NEWS_LIMIT", 10)
    for number in range(5):
        create(other, b"%d" % number)  # two rows each: the name, and the directory
    assert len(names(database.news())) == 10
    for number in range(6):
        create(other, b"more %d" % number)
    assert database.news() is None
    create(other, b"one")
    assert b"one" in names(database.news())


def test_news_that_were_pruned_are_not_passed_over(
    database: Database, other: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CHANGES_KEPT", 4)
    for number in range(5):
        create(other, b"%d" % number)
    other.prune_changes()
    assert database.view.row("SELECT count(*) FROM changes") == (4,)
    assert database.news() is None
    create(other, b"one")
    other.prune_changes()
    assert b"one" in names(database.news())


def test_an_older_state_put_in_place_is_not_passed_over(
    database: Database, other: Database
) -> None:
    create(database, b"file")
    assert database.news() == []
    with other.txn() as txn:
        txn.run("DELETE FROM changes WHERE seq > 1")
    assert database.news() is None
