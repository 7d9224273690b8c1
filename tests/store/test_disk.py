"""A transaction is whole or not at all, whatever the disk does."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from geniuzfs.errors import StoreError, StoreFault, StoreFull
from geniuzfs.model import CHUNK, ROOT, InodeNumber
from geniuzfs.store import check, content, tree
from geniuzfs.store.connection import Database
from tests.store.faulty import Disk, faulty_disk

FILE = tree.New(0o100644, 0, 0)
OLD = {0: b"old" * 20_000, 1: b"o" * CHUNK, 2: b"old end"}
NEW = {0: b"new" * 20_001, 1: b"n" * CHUNK, 2: b"", 3: b"new end"}


def create(database: Database, name: bytes) -> InodeNumber:
    with database.txn() as txn:
        return tree.create(txn, ROOT, name, FILE, 1).number


def save(database: Database, number: InodeNumber, pieces: dict[int, bytes]) -> None:
    last = max(index for index, piece in pieces.items() if piece)
    size = last * CHUNK + len(pieces[last])
    with database.txn() as txn:
        content.save(txn, number, content.Save(size, 2, 2, pieces))


def assert_sound(database: Database) -> None:
    with database.snapshot() as view:
        assert list(check.problems(view)) == []


def whole(pieces: dict[int, bytes]) -> bytes:
    last = max(index for index, piece in pieces.items() if piece)
    held = bytearray(last * CHUNK)
    for index, piece in pieces.items():
        held[index * CHUNK : index * CHUNK + len(piece)] = piece
    return bytes(held)


# A full disk.


def test_a_full_database_keeps_the_old_state(database: Database) -> None:
    number = create(database, b"file")
    save(database, number, OLD)
    pages = database.view.row("PRAGMA page_count")[0]
    database.view.row(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StoreFull):
        save(database, number, {0: bytes(CHUNK), 5: bytes(CHUNK)})
    assert content.read(database.view, number) == whole(OLD)
    database.view.row("PRAGMA max_page_count = 1000000")
    save(database, number, NEW)
    assert content.read(database.view, number) == whole(NEW)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True
    )
    if done.returncode:
        pytest.skip("only root may mount a tmpfs")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_keeps_the_old_state_wherever_it_fills_up(small_disk: Path) -> None:
    database = Database.open(small_disk / "memory.db", create=True)
    try:
        with database.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
        number = create(database, b"file")
        save(database, number, OLD)
        ballast = small_disk / "ballast"
        left = shutil.disk_usage(small_disk).free // 4096
        outcomes = set()
        for free in range(0, 80, 3):  # pages of room; a save takes about 50
            ballast.write_bytes(bytes((left - free) * 4096))
            before = content.read(database.view, number)
            wanted = NEW if before == whole(OLD) else OLD
            try:
                save(database, number, {**wanted, 2: wanted.get(2, b""), 3: wanted.get(3, b"")})
                outcomes.add("saved")
                assert content.read(database.view, number) == whole(wanted)
            except StoreFull:
                outcomes.add("full")
                assert content.read(database.view, number) == before
            ballast.unlink()
            database.checkpoint(hold_writers=True)
            assert_sound(database)
            left = shutil.disk_usage(small_disk).free // 4096
        assert outcomes == {"saved", "full"}
    finally:
        database.close()


# A failing disk.


@pytest.fixture
def disk() -> Iterator[Disk]:
    with faulty_disk() as faulty:
        yield faulty


def prepared(directory: Path) -> tuple[Database, InodeNumber]:
    """A database in `directory` with a file that holds OLD."""
    directory.mkdir()
    database = Database.open(directory / "memory.db", create=True)
    with database.txn() as txn:
        tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
    number = create(database, b"file")
    save(database, number, OLD)
    return database, number


def until_nothing_fails(disk: Disk, attempt: Callable[[int], None]) -> int:
    """attempt(n) for n = 1, 2, ... until it has made fewer than n operations; how many."""
    for number in range(1, 10_000):
        attempt(number)
        if not disk.failed:
            return number - 1
    raise AssertionError("it never ends")


@pytest.mark.parametrize("torn", [False, True])
def test_a_write_that_fails_is_an_error_and_the_next_save_works(
    disk: Disk, tmp_path: Path, torn: bool
) -> None:
    def attempt(number: int) -> None:
        database, file = prepared(tmp_path / f"{number}")
        disk.fail_at(number, torn=torn)
        try:
            save(database, file, NEW)
            assert not disk.failed
        except StoreError:
            assert disk.failed
            assert content.read(database.view, file) == whole(OLD)
        failed = disk.failed
        disk.fail_at(None)
        assert_sound(database)
        save(database, file, NEW)
        assert content.read(database.view, file) == whole(NEW)
        database.close()
        disk.failed = failed

    assert until_nothing_fails(disk, attempt) > 50


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("checkpoint", [False, True])
def test_after_a_loss_of_power_there_is_one_version_and_never_a_mixture(
    disk: Disk, tmp_path: Path, torn: bool, checkpoint: bool
) -> None:
    """Whichever write or sync is the last, of the save or of a checkpoint around it."""
    seen: set[bytes] = set()

    def attempt(number: int) -> None:
        database, file = prepared(tmp_path / f"{number}")
        disk.fail_at(number, torn=torn, dies=True)
        committed = False
        try:
            if checkpoint:
                database.checkpoint(hold_writers=True)
            save(database, file, NEW)
            committed = True
            if checkpoint:
                database.checkpoint(hold_writers=True)
        except StoreError:
            pass
        crashed = tmp_path / f"{number} after"
        crashed.mkdir()
        for name in ("memory.db", "memory.db-wal"):  # as the disk has them now
            shutil.copy(database.path.with_name(name), crashed / name)
        failed = disk.failed
        with suppress(StoreFault):
            database.close()
        disk.fail_at(None)
        reopened = Database.open(crashed / "memory.db")
        held = content.read(reopened.view, file)
        assert held == whole(NEW) if committed else held in (whole(OLD), whole(NEW))
        assert_sound(reopened)
        reopened.close()
        seen.add(held)
        disk.failed = failed
        shutil.rmtree(tmp_path / f"{number}")
        shutil.rmtree(crashed)

    assert until_nothing_fails(disk, attempt) > 50
    assert seen == {whole(OLD), whole(NEW)}


# In Python an error of the disk during close shows twice: as one, and as one nobody caught.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_failed_begin_of_the_wal_leaves_no_database_that_can_not_be_opened(
    disk: Disk, tmp_path: Path
) -> None:
    """Making a new database, with each of its writes and syncs failing."""

    def attempt(number: int) -> None:
        path = tmp_path / f"{number}.db"
        disk.fail_at(number, dies=True)
        try:
            Database.open(path, create=True).close()
        except StoreError:
            assert disk.failed
        failed = disk.failed
        disk.fail_at(None)
        opened = Database.open(path, create=True)
        with opened.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
        assert_sound(opened)
        opened.close()
        disk.failed = failed

    assert until_nothing_fails(disk, attempt) > 10
