"""A folder whose file has its earlier name, station.db, is like any other and keeps the name."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.store import check
from geniuzfs.store.connection import Database
from tests.folders.killing import other_disk
from tests.geniuz import NAMINGS, TABLES, as_geniuz_asks, as_geniuz_keeps


def station(directory: Path, naming: str = "clawmark") -> list[str]:
    """Make a file with a thread of two, as it was left; the IDs."""
    directory.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(directory / "station.db")) as plain:
        plain.execute("PRAGMA journal_mode = WAL")
        plain.executescript(TABLES.format(**NAMINGS[naming]))
        root = as_geniuz_keeps(plain, "Who signs?", naming=naming)
        return [root, as_geniuz_keeps(plain, "Priya does.", root, naming)]


def geniuz_of(directory: Path) -> Geniuz:
    return runtime.geniuz(Config.from_environment({"GENIUZ_HOME": str(directory / "home")}))


@pytest.mark.parametrize("naming", NAMINGS)
def test_in_the_data_directory_it_is_my_memory_and_none_is_made_beside_it(
    tmp_path: Path, naming: str
) -> None:
    root, child = station(tmp_path / "home", naming)
    geniuz = geniuz_of(tmp_path)
    held = geniuz.keep(None, "Since May.", parent=child)
    assert [(one.name, one.path.name) for one in geniuz.folders()] == [("My memory", "station.db")]
    assert not (tmp_path / "home" / "memory.db").exists()
    assert geniuz.open_memory(None, root).memory.content == "Who signs?"
    with closing(sqlite3.connect(tmp_path / "home" / "station.db")) as plain:
        plain.executescript(TABLES.format(**NAMINGS["geniuz"]))
        said = as_geniuz_asks(plain, "May", held.memory.id, "2000-01-01 00:00:00")
        mine = as_geniuz_keeps(plain, "By them.", held.memory.id)
    threads = [(root, 0, root), (child, 1, root), (held.memory.id, 2, root)]
    assert said["word"] == [("Since May.",)]
    assert said["id"] == [("Since May.", child)]
    assert said["threads"] == threads
    assert said["lacking"] == [(held.memory.id,)]
    assert geniuz.open_memory(None, mine).memory.content == "By them."
    _sound(tmp_path / "home" / "station.db")


def test_beside_a_memory_db_it_is_left_alone(tmp_path: Path) -> None:
    """As Geniuz does."""
    geniuz = geniuz_of(tmp_path)
    geniuz.begin()
    station(tmp_path / "home")
    before = (tmp_path / "home" / "station.db").read_bytes()
    geniuz.keep(None, "tea")
    assert [one.path.name for one in geniuz.folders()] == ["memory.db"]
    assert (tmp_path / "home" / "station.db").read_bytes() == before


@pytest.mark.parametrize("disk", ["one disk", "another disk"])
def test_it_is_added_moved_archived_and_restored(tmp_path: Path, disk: str) -> None:
    root, _ = station(tmp_path / "clawmark" / "old")
    geniuz = geniuz_of(tmp_path)
    geniuz.begin()
    arranging = geniuz.arranging
    (added,) = arranging.add(tmp_path / "clawmark")
    assert (added.name, added.path.name) == ("old", "station.db")
    with other_disk(tmp_path) as other:
        shelf = tmp_path / "shelf" if disk == "one disk" else other
        shelf.mkdir(exist_ok=True)
        moved = arranging.move(added, shelf)
        assert moved.path == geniuz.folder("old").path
        assert moved.path.parent == shelf / "old"
        assert geniuz.open_memory("old", root).memory.content == "Who signs?"
        put = arranging.archive(geniuz.folder("old"))
        assert [one.name for one in arranging.archived()].count("old") >= 1
        assert os.listdir(put) == [moved.path.name]
        arranging.restore(str(put))
        assert geniuz.keep("old", "Since May.", parent=root).memory.parent == root
        _sound(geniuz.folder("old").path)


def _sound(path: Path) -> None:
    database = Database.open(path)
    try:
        with database.snapshot() as view:
            assert list(check.problems(view)) == []
    finally:
        database.close()
