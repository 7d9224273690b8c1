"""Backups: what is in them, where they may lie, and what is made of them."""

import dataclasses
import os
import shutil
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from geniuzfs import durable, runtime
from geniuzfs.api import Folder, Geniuz
from geniuzfs.api.backups import BackedUp, Restored
from geniuzfs.config import Config
from geniuzfs.errors import (
    AlreadyExists,
    Busy,
    FolderError,
    Moved,
    NotFound,
    StoreDamaged,
    StoreFull,
    TooNew,
    UsageError,
)
from geniuzfs.folders import places, restoring
from geniuzfs.store import check, copying, schema
from geniuzfs.store.connection import Database
from geniuzfs.store.copying import Told
from tests.crash.disks import small_disk
from tests.daemon import wait_until
from tests.folders.killing import STEPS, killed_at, other_disk


def _program(home: Path) -> Geniuz:
    config = Config.from_environment({"GENIUZ_HOME": str(home), "XDG_RUNTIME_DIR": str(home)})
    return runtime.geniuz(dataclasses.replace(config, owner=(0, 0)))


@pytest.fixture
def geniuz(tmp_path: Path) -> Geniuz:
    """A data directory with "My memory", in which one memory is kept, and "Lumen"."""
    program = _program(tmp_path / "home")
    program.keep("My memory", "Tea at four.")
    program.arranging.new("Lumen")
    return program


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    return shelf


def _backed_up(program: Geniuz, destination: Path, name: str | None = None) -> list[BackedUp]:
    return list(program.copies.backups().backup(destination, name, _quietly))


def _quietly(_folder: Folder) -> AbstractContextManager[Told]:
    return nullcontext(lambda done, of: None)


def _kept(folder: Folder) -> list[str]:
    """The memories of a folder, which is sound."""
    database = Database.open(folder.path)
    try:
        with database.snapshot() as view:
            assert list(check.problems(view)) == []
            rows = view.rows("SELECT payload ->> '$.content' FROM memories ORDER BY rowid")
        return [row[0] for row in rows]
    finally:
        database.close()


def test_each_folder_goes_into_a_file_of_its_own(geniuz: Geniuz, shelf: Path) -> None:
    first = _backed_up(geniuz, shelf)
    again = _backed_up(geniuz, shelf)
    assert [one.folder.name for one in first] == ["My memory", "Lumen"]
    assert len({one.path for one in first + again}) == 4
    assert sorted(os.listdir(shelf)) == sorted(one.path.name for one in first + again)
    assert all(one.path.stat().st_mode & 0o777 == 0o600 for one in first)
    assert all(one.bytes == one.path.stat().st_size for one in first)


def test_one_folder_goes_into_a_file_of_any_name_that_is_free(geniuz: Geniuz, shelf: Path) -> None:
    (one,) = _backed_up(geniuz, shelf / "x", "lumen")
    assert os.listdir(shelf) == ["x"]
    before = one.path.read_bytes()
    with pytest.raises(AlreadyExists):
        _backed_up(geniuz, shelf / "x", "lumen")
    with pytest.raises(UsageError, match="several folders"):
        _backed_up(geniuz, shelf / "y")
    with pytest.raises(NotFound):
        _backed_up(geniuz, shelf / "none" / "y", "lumen")
    with pytest.raises(NotFound):
        _backed_up(geniuz, shelf, "nobody")
    assert (os.listdir(shelf), one.path.read_bytes()) == (["x"], before)


def test_a_folder_that_moves_while_others_are_backed_up_is_backed_up_too(
    geniuz: Geniuz, shelf: Path, tmp_path: Path
) -> None:
    with other_disk(tmp_path) as disk:
        made = geniuz.copies.backups().backup(shelf, None, _quietly)
        assert next(made).folder.name == "My memory"
        lumen = geniuz.arranging.move(geniuz.folder("Lumen"), disk)
        (one,) = made
        assert one.folder == lumen
        restored = geniuz.copies.backups().restore(one.path, None, None)
        assert _kept(restored.folder) == []


def test_what_a_move_is_about_to_leave_is_no_folder_to_copy(geniuz: Geniuz, shelf: Path) -> None:
    folder = geniuz.folder("Lumen")
    database = Database.open(folder.path)
    with database.txn() as txn:
        copying.seal(txn, "/elsewhere")
    database.close()
    with pytest.raises(Moved, match="at /elsewhere now"):
        copying.copy(folder.path, shelf / "x")


def test_a_directory_of_any_name_is_a_place_for_backups_and_hides_no_folder(
    geniuz: Geniuz, tmp_path: Path
) -> None:
    shelf = Path(os.fsdecode(bytes(tmp_path / "shelf") + b" %?\xff"))
    shelf.mkdir()
    for one in _backed_up(geniuz, shelf):
        restored = geniuz.copies.backups().restore(one.path, None, None)
        assert _kept(restored.folder) == _kept(one.folder)
    # SQLite itself opens no folder there.
    shelf = Path(os.fsdecode(bytes(geniuz.config.home) + b"/\xff"))
    shutil.copytree(geniuz.config.home / "Lumen", shelf)
    seen = geniuz.arranging.seen()
    assert len(seen.folders) == 4
    assert [one.path for one in seen.left_out] == [shelf / "memory.db"]


def test_what_can_not_be_backed_up_is_told_when_the_others_are(geniuz: Geniuz, shelf: Path) -> None:
    shutil.copytree(geniuz.config.home / "Lumen", geniuz.config.home / "copy")
    with pytest.raises(FolderError, match=r"not backed up: .*'Lumen' is there twice"):
        _backed_up(geniuz, shelf)
    assert [name.split(" 2")[0] for name in os.listdir(shelf)] == ["My memory"]


def test_a_backup_where_folders_are_looked_for_blocks_no_folder(
    geniuz: Geniuz, tmp_path: Path
) -> None:
    place = geniuz.config.home / "backup"
    place.mkdir()
    (one,) = _backed_up(geniuz, place / "memory.db", "Lumen")
    seen = geniuz.arranging.seen()
    assert [folder.name for folder in seen.folders] == ["My memory", "Lumen"]
    assert seen.blocked == []
    assert "it is a backup" in seen.warnings()[0]
    restored = _program(tmp_path / "other").copies.backups().restore(one.path, None, None)
    assert restored.folder.name == "Lumen"


def test_a_backup_can_be_read_where_nothing_can_be_written(geniuz: Geniuz, shelf: Path) -> None:
    (one,) = _backed_up(geniuz, shelf, "My memory")
    one.path.chmod(0o400)
    shelf.chmod(0o500)
    names = os.listdir(shelf)
    restored = geniuz.copies.backups().restore(one.path, "again", None)
    assert _kept(restored.folder) == ["Tea at four."]
    assert os.listdir(shelf) == names
    shelf.chmod(0o700)


def test_a_folder_that_is_gone_comes_back_as_itself(
    geniuz: Geniuz, shelf: Path, tmp_path: Path
) -> None:
    before = geniuz.folders()
    made = {one.folder.name: one.path for one in _backed_up(geniuz, shelf)}
    other = _program(tmp_path / "other")
    lumen = other.copies.backups().restore(made["Lumen"], None, None)
    memory = other.copies.backups().restore(made["My memory"], None, None)
    assert [folder.identity for folder in other.folders()] == [one.identity for one in before]
    assert memory.folder.path == other.config.home / "memory.db"
    assert lumen.folder.path == other.config.home / "Lumen" / "memory.db"
    assert _kept(memory.folder) == ["Tea at four."]
    other.keep("My memory", "And cake.")  # it is a folder like any other


def test_beside_a_folder_that_is_here_a_backup_becomes_one_of_its_own(
    geniuz: Geniuz, shelf: Path
) -> None:
    (one,) = _backed_up(geniuz, shelf, "My memory")
    geniuz.keep("My memory", "Later.")
    first = geniuz.copies.backups().restore(one.path, None, None)
    second = geniuz.copies.backups().restore(one.path, None, None)
    named = geniuz.copies.backups().restore(one.path, "Then", None)
    names = ["My memory (restored)", "My memory (restored 2)", "Then"]
    assert [each.folder.name for each in (first, second, named)] == names
    assert {each.was.name for each in (first, second, named)} == {"My memory"}
    folders = geniuz.folders()
    assert len({folder.identity.id for folder in folders}) == 5
    assert geniuz.arranging.seen().warnings() == []
    assert _kept(geniuz.folder("Then")) == ["Tea at four."]
    assert _kept(geniuz.folder("My memory")) == ["Tea at four.", "Later."]


def test_a_name_of_another_folder_is_not_taken(geniuz: Geniuz, shelf: Path, tmp_path: Path) -> None:
    (one,) = _backed_up(geniuz, shelf, "My memory")
    other = _program(tmp_path / "other")
    other.keep("My memory", "Mine.")
    with pytest.raises(AlreadyExists):
        other.copies.backups().restore(one.path, "MY MEMORY", None)
    restored = other.copies.backups().restore(one.path, None, None)
    assert restored.folder.name == "My memory (restored)"
    assert restored.folder.identity.id == geniuz.folder("My memory").identity.id
    assert _kept(other.folder("My memory")) == ["Mine."]


def test_it_can_come_into_another_directory_and_is_found_there(
    geniuz: Geniuz, shelf: Path, tmp_path: Path
) -> None:
    (one,) = _backed_up(geniuz, shelf, "Lumen")
    disk = tmp_path / "disk"
    with pytest.raises(NotFound):
        geniuz.copies.backups().restore(one.path, None, disk)
    disk.mkdir()
    restored = geniuz.copies.backups().restore(one.path, "Far", disk)
    assert restored.folder.path == disk / "Far" / "memory.db"
    assert geniuz.folder("Far").path == restored.folder.path


def test_the_first_folder_that_came_back_elsewhere_is_not_hidden_by_a_new_one(
    geniuz: Geniuz, shelf: Path, tmp_path: Path
) -> None:
    (one,) = _backed_up(geniuz, shelf, "My memory")
    other, disk = _program(tmp_path / "other"), tmp_path / "disk"
    disk.mkdir()
    restored = other.copies.backups().restore(one.path, None, disk).folder
    other.begin()
    assert other.folders() == [restored]
    assert other.arranging.meant(None, None) == restored
    assert other.arranging.seen().warnings() == []


def test_the_first_folder_is_not_made_amid_a_restore(geniuz: Geniuz, tmp_path: Path) -> None:
    home = tmp_path / "other"
    home.mkdir()
    begun = threading.Thread(target=_program(home).begin)
    with places.alone(home):
        begun.start()
        inode = f":{(home / '.folders-lock').stat().st_ino} "
        waits = (inode, "-> FLOCK")
        wait_until(
            lambda: (
                not begun.is_alive()
                or any(
                    all(each in line for each in waits)
                    for line in Path("/proc/locks").read_text().splitlines()
                )
            )
        )
        assert not (home / "memory.db").exists()
        copying.copy(geniuz.folder("My memory").path, home / "memory.db")
    begun.join()
    (folder,) = _program(home).folders()
    assert folder.identity == geniuz.folder("My memory").identity
    assert _kept(folder) == ["Tea at four."]


def test_the_log_of_another_database_is_not_taken_for_that_of_a_backup(
    geniuz: Geniuz, shelf: Path
) -> None:
    (one,) = _backed_up(geniuz, shelf, "Lumen")
    held = one.path.read_bytes()
    database = Database.open(geniuz.config.home / "memory.db")
    geniuz.keep("My memory", "Not Lumen's.")
    log = one.path.with_name(f"{one.path.name}-wal")
    shutil.copyfile(database.wal_path, log)
    database.close()
    beside = log.read_bytes()
    assert beside
    restored = geniuz.copies.backups().restore(one.path, None, None)
    assert _kept(restored.folder) == []
    assert (one.path.read_bytes(), log.read_bytes()) == (held, beside)


def test_the_log_of_a_database_that_is_gone_is_not_taken_for_that_of_a_backup(
    geniuz: Geniuz, shelf: Path
) -> None:
    (one,) = _backed_up(geniuz, shelf, "My memory")
    path = geniuz.config.home / "memory.db"
    path.unlink()
    path.with_name("memory.db-wal").write_bytes(b"whatever it was")
    restored = geniuz.copies.backups().restore(one.path, None, None)
    assert restored.folder.path.parent == geniuz.config.home / "My memory"
    assert restored.folder.identity.id == one.folder.identity.id
    path.with_name("memory.db-wal").unlink()


@pytest.mark.parametrize("damage", ["cut", "flipped", "no database", "empty", "a folder"])
def test_what_is_no_sound_backup_is_refused(geniuz: Geniuz, shelf: Path, damage: str) -> None:
    (one,) = _backed_up(geniuz, shelf, "My memory")
    held = one.path.read_bytes()
    if damage == "cut":
        one.path.write_bytes(held[: len(held) // 2])
    elif damage == "flipped":
        middle = len(held) // 4096 // 2 * 4096
        one.path.write_bytes(held[:middle] + bytes(4096) + held[middle + 4096 :])
    elif damage == "no database":
        one.path.write_bytes(b"not a database" * 100)
    elif damage == "empty":
        one.path.write_bytes(b"")
    path = geniuz.config.home / "memory.db" if damage == "a folder" else one.path
    before = sorted(os.listdir(geniuz.config.home))
    with pytest.raises(FolderError if damage == "a folder" else StoreDamaged) as raised:
        geniuz.copies.backups().restore(path, None, None)
    assert str(path) in str(raised.value)
    assert sorted(os.listdir(geniuz.config.home)) == before


def test_a_backup_of_a_newer_version_is_refused(geniuz: Geniuz, shelf: Path) -> None:
    copying.copy(geniuz.config.home / "memory.db", shelf / "x")
    database = Database.open(shelf / "x")
    with database.txn() as txn:
        txn.run(schema.RECORD, (9999, "later"))
    database.close()
    copying.mark(shelf / "x", "now")
    before = sorted(os.listdir(geniuz.config.home))
    with pytest.raises(TooNew):
        geniuz.copies.backups().restore(shelf / "x", None, None)
    assert sorted(os.listdir(geniuz.config.home)) == before


def test_a_full_disk_leaves_nothing_of_a_backup_and_harms_no_folder(
    geniuz: Geniuz, shelf: Path
) -> None:
    database = Database.open(geniuz.config.home / "memory.db")
    with database.txn() as txn:
        txn.run("CREATE TABLE large (bytes)")
        txn.run("INSERT INTO large VALUES (randomblob(4000000))")
    database.close()
    with small_disk(shelf, "1m"):
        with pytest.raises(StoreFull, match="the disk is full"):
            _backed_up(geniuz, shelf, "My memory")
        assert os.listdir(shelf) == []
        _backed_up(geniuz, shelf, "Lumen")
        assert len(os.listdir(shelf)) == 1
    database = Database.open(geniuz.config.home / "memory.db")
    with database.txn() as txn:
        txn.run("DROP TABLE large")
    database.close()
    assert _kept(geniuz.folder("My memory")) == ["Tea at four."]


def test_two_that_write_one_backup_do_not_meet(geniuz: Geniuz, shelf: Path) -> None:
    with durable.staged(shelf / "x") as new:
        with pytest.raises(Busy):
            _backed_up(geniuz, shelf / "x", "Lumen")
        new.write_bytes(b"first")
    assert (shelf / "x").read_bytes() == b"first"


def test_beside_a_backup_that_goes_on_another_gets_a_name_of_its_own(
    geniuz: Geniuz, shelf: Path
) -> None:
    other: list[BackedUp] = []

    def amid(_done: int, _of: int) -> None:
        if not other:
            other.extend(_backed_up(geniuz, shelf, "Lumen"))

    (one,) = geniuz.copies.backups().backup(shelf, "Lumen", lambda _: nullcontext(amid))
    assert sorted(os.listdir(shelf)) == sorted([one.path.name, other[0].path.name])
    for each in (one, *other):
        assert _kept(geniuz.copies.backups().restore(each.path, None, None).folder) == []


def test_what_a_killed_backup_has_left_goes_with_the_next(geniuz: Geniuz, shelf: Path) -> None:
    (shelf / ".Lumen 2026-01-01T00.00.geniuz.new").write_bytes(bytes(1000))
    (shelf / "mine.geniuz.new").write_bytes(b"mine")
    (shelf / ".link.geniuz.new").symlink_to("mine.geniuz.new")
    (one,) = _backed_up(geniuz, shelf, "Lumen")
    names = {one.path.name, "mine.geniuz.new", ".link.geniuz.new"}
    assert {path.name for path in shelf.iterdir()} == names
    assert (shelf / "mine.geniuz.new").read_bytes() == b"mine"


def test_a_restore_that_is_killed_anywhere_leaves_a_whole_folder_or_none(
    geniuz: Geniuz, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = _backed_up(geniuz, shelf, "My memory")
    monkeypatch.setattr("tests.folders.killing.STEPS", {*STEPS, restoring.__file__})
    home = tmp_path / "other"
    appeared = 0

    def restore() -> Restored:
        return _program(home).copies.backups().restore(one.path, None, None)

    for step in range(1, 1000, 7):
        shutil.rmtree(home, ignore_errors=True)
        if not killed_at(step, restore):
            break
        found = _program(home).folders() if home.exists() else []
        assert [_kept(folder) for folder in found] in ([], [["Tea at four."]])
        appeared += bool(found)
        restore()  # what is left is in nobody's way
        assert list(home.glob(".memory.db*")) == []
    assert step > 50
    assert appeared > 0
