"""Folders are moved, on one disk and to another, and are killed at every step of it."""

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from geniuzfs.errors import (
    AlreadyExists,
    Busy,
    FolderError,
    IntoItself,
    NotFound,
    StoreDamaged,
    Unfinished,
)
from geniuzfs.folders import lifecycle, moving, places, registry
from geniuzfs.folders.moving import Move, Step
from geniuzfs.folders.registry import Folder
from geniuzfs.model import ROOT
from geniuzfs.ports import SystemClock
from geniuzfs.store import check, content, tree
from geniuzfs.store.connection import Database
from tests.folders.killing import killed_at, loop_disk, other_disk
from tests.folders.made import made

CLOCK = SystemClock()


class Disks:
    """A data directory with the folder "Lumen", and directories for it to be moved into."""

    def __init__(self, directory: Path, other: Path | None) -> None:
        self.home = directory / "home"
        self.shelf = (other or directory) / "shelf"
        self.is_other = other is not None
        self._kept = directory / "kept"
        registry.begin(self.home, CLOCK)
        lifecycle.new(self.home, CLOCK, (0, 0), "Lumen")
        self.origin, self.target = self.home / "Lumen", self.shelf / "Lumen"
        self._fill()
        self.before = _rows(self.home / "Lumen" / "memory.db")
        shutil.copytree(self.home, self._kept)

    def reset(self) -> None:
        """As it was before anything was moved."""
        shutil.rmtree(self.home)
        shutil.rmtree(self.shelf, ignore_errors=True)
        shutil.copytree(self._kept, self.home)
        self.shelf.mkdir()

    def folder(self) -> Folder:
        return registry.named(registry.look(self.home, CLOCK), "Lumen")

    def move(self) -> Folder:
        return moving.move(self.home, self.folder(), self.shelf)

    def live(self) -> list[Path]:
        """Where the folder can be used: never in two places. No recovery is made."""
        seen = registry.look(self.home, CLOCK)
        assert seen.blocked == []
        return [one.path.parent for one in seen.folders if one.name == "Lumen"]

    def assert_whole(self) -> None:
        """The folder is there once, with all it held, and nothing of a move is left over."""
        assert moving.recover(self.home) == []
        (there,) = self.live()
        assert there in (self.origin, self.target)
        assert _rows(there / "memory.db") == self.before
        assert list((self.home / moving.DIRECTORY).glob("*.json")) == []
        if there == self.origin:
            assert not self.target.exists()
            assert not (self.home / "archive" / "Lumen").exists()
            assert places.read(self.home).added == ()
        elif self.is_other:
            assert os.listdir(self.target) == ["memory.db"]
            original = self.home / "archive" / "Lumen" / "memory.db"
            assert _rows(original) == self.before
            with (
                closing(sqlite3.connect(original)) as plain,
                pytest.raises(sqlite3.IntegrityError, match="somewhere else"),
            ):
                plain.execute("INSERT INTO memories (memory_uuid, payload) VALUES ('x', 'y')")
        else:
            assert not self.origin.exists()

    def _fill(self) -> None:
        """Files and a memory, of which the log has the newest, as a killed writer leaves it."""
        path = self.origin / "memory.db"
        database = Database.open(path)
        for number in range(3):
            with database.txn() as txn:
                made = tree.create(txn, ROOT, b"note %d" % number, tree.New(0o100644, 0, 0), 2)
                piece = {0: b"text %d" % number}
                content.save(txn, made.number, content.Save(6, 3, 3, piece))
                txn.run(
                    "INSERT INTO memories (memory_uuid, payload) VALUES (?, ?)",
                    (f"{number:036}", '{"content":"x","gist":"y"}'),
                )
            if number == 1:
                database.checkpoint(hold_writers=True)
        left = self.origin.with_name("left")
        shutil.copytree(self.origin, left)
        database.close()
        shutil.rmtree(self.origin)
        left.rename(self.origin)
        assert (self.origin / "memory.db-wal").stat().st_size > 0


@pytest.fixture(params=["one disk", "another disk", "a loop device"])
def disks(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Disks]:
    if request.param == "one disk":
        made = Disks(tmp_path, None)
        made.shelf.mkdir()
        yield made
        return
    another = loop_disk if request.param == "a loop device" else other_disk
    with another(tmp_path) as other:
        made = Disks(tmp_path, other)
        made.shelf.mkdir()
        yield made


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Disks]:
    """With a shelf on another disk."""
    with other_disk(tmp_path) as other:
        made = Disks(tmp_path, other)
        made.shelf.mkdir()
        yield made


def _rows(path: Path) -> str:
    """A hash of every row of every table, but for the mark of a sealed file."""
    found = hashlib.sha256()
    with closing(sqlite3.connect(path)) as plain:
        plain.text_factory = bytes
        tables = plain.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")
        for (table,) in tables.fetchall():
            rows = plain.execute(f'SELECT * FROM "{table.decode()}"').fetchall()
            kept = sorted(repr(row) for row in rows if row[0] != b"moved_to")
            found.update(repr((table, kept)).encode())
    return found.hexdigest()


def test_a_folder_is_moved_whole_and_found_where_it_is_then(disks: Disks) -> None:
    moved = disks.move()
    assert moved.path == disks.target / "memory.db"
    assert disks.live() == [disks.target]
    disks.assert_whole()
    database = Database.open(moved.path)
    with database.snapshot() as view:
        assert list(check.problems(view)) == []
    database.close()


def test_a_copy_to_another_disk_tells_how_far_it_is(far: Disks) -> None:
    told: list[tuple[int, int]] = []
    moving.move(far.home, far.folder(), far.shelf, lambda done, of: told.append((done, of)))
    assert told[-1][0] == told[-1][1] > 0
    assert told == sorted(told)


def test_a_folder_comes_back_to_where_it_was(disks: Disks) -> None:
    disks.move()
    moving.move(disks.home, disks.folder(), disks.home)
    assert disks.live() == [disks.origin]
    assert places.read(disks.home).added == ()
    assert _rows(disks.origin / "memory.db") == disks.before


@pytest.mark.timeout(600)
def test_killed_at_every_step_it_is_finished_or_undone(disks: Disks) -> None:
    step, ends = 0, set()
    while True:
        step += 1
        disks.reset()
        if not killed_at(step, disks.move):
            break
        assert len(disks.live()) <= 1
        disks.assert_whole()
        ends.update(disks.live())
    assert step > 60
    assert ends == {disks.origin, disks.target}


@pytest.mark.timeout(600)
def test_killed_again_while_that_is_finished_or_undone(disks: Disks) -> None:
    for first in (40, 80, 120, 160, 200):
        second = 0
        while True:
            second += 3
            disks.reset()
            killed_at(first, disks.move)
            if not killed_at(second, lambda: moving.recover(disks.home)):
                break
            assert len(disks.live()) <= 1
            disks.assert_whole()


def test_while_the_original_is_out_of_reach_nothing_is_decided(far: Disks, tmp_path: Path) -> None:
    step = _first_step_at(far, Step.SEALING)
    killed_at(step, far.move)
    away = tmp_path / "unplugged"
    far.origin.rename(away)
    (waiting,) = moving.recover(far.home)
    assert waiting.name == "Lumen"
    seen = registry.look(far.home, CLOCK)._replace(waiting=[waiting])
    with pytest.raises(Unfinished, match=str(far.origin)):
        registry.named(seen, "lumen")
    assert waiting.reason in seen.warnings()
    assert far.live() == []
    away.rename(far.origin)
    far.assert_whole()


def test_a_copy_that_is_known_to_be_final_needs_no_original(far: Disks, tmp_path: Path) -> None:
    step = _first_step_at(far, Step.SEALED)
    far.reset()
    killed_at(step, far.move)
    away = tmp_path / "unplugged"
    far.origin.rename(away)
    (waiting,) = moving.recover(far.home)
    assert str(far.origin) in waiting.reason
    assert far.live() == [far.target]
    assert _rows(far.target / "memory.db") == far.before
    away.rename(far.origin)
    assert far.live() == [far.target]  # the original is sealed
    far.assert_whole()


def _first_step_at(disks: Disks, wanted: Step) -> int:
    """The first line before which a move has recorded `wanted`."""
    low, high = 1, 1000  # bisected: a record's step only grows
    order = list(Step)
    while low < high:
        middle = (low + high) // 2
        disks.reset()
        killed = killed_at(middle, disks.move)
        record = disks.home / moving.DIRECTORY
        found = [moving._read(path) for path in record.glob("*.json")]
        reached = not killed or bool(found and order.index(found[0].step) >= order.index(wanted))
        later = killed and not found and disks.live() == [disks.target]
        low, high = (low, middle) if reached or later else (middle + 1, high)
    disks.reset()
    return low


def test_the_first_folder_and_links_are_not_moved(disks: Disks, tmp_path: Path) -> None:
    first = registry.named(registry.look(disks.home, CLOCK), "my memory")
    with pytest.raises(FolderError, match="stays in"):
        moving.move(disks.home, first, disks.shelf)
    link = disks.home / "linked"
    link.symlink_to(disks.origin)
    linked = disks.folder()._replace(path=link / "memory.db")
    with pytest.raises(FolderError, match="link"):
        moving.move(disks.home, linked, disks.shelf)
    assert disks.live() == [disks.origin]


def test_a_place_that_can_not_take_it_changes_nothing(disks: Disks) -> None:
    folder = disks.folder()
    disks.target.mkdir()
    with pytest.raises(AlreadyExists):
        disks.move()
    disks.target.rmdir()
    with pytest.raises(NotFound):
        moving.move(disks.home, folder, disks.shelf / "absent")
    with pytest.raises(AlreadyExists):
        moving.move(disks.home, folder, disks.home)
    (disks.origin / "within").mkdir()
    with pytest.raises(IntoItself):
        moving.move(disks.home, folder, disks.origin / "within")
    (disks.origin / "within").rmdir()
    assert disks.live() == [disks.origin]
    assert places.read(disks.home) == places.Places()


def test_a_writer_that_goes_on_holds_a_move_up_and_nothing_is_changed(
    disks: Disks, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (moving, lifecycle):
        monkeypatch.setattr(module, "_WAIT_SECONDS", 0.05)
    folder = disks.folder()
    writer = Database.open(folder.path)
    with writer.txn(), pytest.raises(Busy):
        moving.move(disks.home, folder, disks.shelf)
    writer.close()
    disks.assert_whole()
    assert disks.live() == [disks.origin]


def test_a_copy_that_is_not_sound_is_thrown_away(far: Disks) -> None:
    """An index of the original is broken: its copy can't be shown to be whole."""
    with closing(sqlite3.connect(far.origin / "memory.db", isolation_level=None)) as plain:
        plain.execute("PRAGMA writable_schema = ON")
        plain.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'created_at DESC', 'parent_uuid')"
            " WHERE name = 'idx_memories_chronological'"
        )
    with pytest.raises(StoreDamaged, match="not sound"):
        far.move()
    assert far.live() == [far.origin]
    assert not far.target.exists()
    assert moving.recover(far.home) == []


def test_a_record_that_makes_no_sense_is_told_and_kept(disks: Disks) -> None:
    record = disks.home / moving.DIRECTORY / "x.json"
    record.parent.mkdir()
    record.write_text("{}")
    (waiting,) = moving.recover(disks.home)
    assert str(record) in waiting.reason
    assert record.exists()


def test_a_move_that_goes_on_is_left_alone(far: Disks) -> None:
    id_ = far.folder().identity.id
    at_work = Move(
        id_, "Lumen", far.origin, far.target, far.home / "archive" / "Lumen", Step.COPYING
    )
    with places.alone(far.home):
        moving._record(far.home, at_work)
        assert moving.recover(far.home) == []
        assert far.live() == [far.origin]
    far.assert_whole()


@pytest.mark.parametrize("below", ["Within", "archive/Within"])
def test_a_directory_that_holds_other_folders_too_stays_where_it_is(
    disks: Disks, below: str
) -> None:
    """They would go along, to where nobody looks."""
    made(disks.origin / below, "Within")
    for away in (disks.move, lambda: lifecycle.archive(disks.home, disks.folder())):
        with pytest.raises(FolderError, match="other folders"):
            away()
    assert disks.live() == [disks.origin]
    assert (disks.origin / below / "memory.db").exists()
