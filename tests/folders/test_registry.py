"""Which folders are found, and under which names."""

import logging
import shutil
from pathlib import Path

import pytest

from geniuzfs.errors import NotFound
from geniuzfs.folders import registry
from geniuzfs.ports import SystemClock
from geniuzfs.store import meta
from geniuzfs.store.connection import Database

CLOCK = SystemClock()


def _folder(directory: Path, name: str | None = None) -> None:
    directory.mkdir(parents=True)
    database = Database.open(directory / registry.FILE, create=True)
    if name is not None:
        with database.txn() as txn:
            known = meta.identify(txn, registry._fresh(name, CLOCK))
        assert known.name == name
    database.close()


def _names(home: Path) -> list[str]:
    return [folder.name for folder in registry.found(home, CLOCK)]


def test_the_first_use_makes_my_memory_and_the_second_changes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "data" / "geniuz"
    registry.begin(home, CLOCK)
    first = registry.found(home, CLOCK)
    registry.begin(home, CLOCK)
    assert registry.found(home, CLOCK) == first
    assert [folder.name for folder in first] == ["My memory"]
    assert first[0].path == home / "memory.db"
    assert home.stat().st_mode & 0o777 == 0o700


def test_folders_are_looked_for_one_level_down_and_listed_after_the_first(tmp_path: Path) -> None:
    registry.begin(tmp_path, CLOCK)
    _folder(tmp_path / "zebra")
    _folder(tmp_path / "work", "Alpha project")
    _folder(tmp_path / "archive" / "old")
    assert _names(tmp_path) == ["My memory", "Alpha project", "zebra"]


def test_a_folder_that_is_renamed_by_hand_stays_the_same_folder(tmp_path: Path) -> None:
    _folder(tmp_path / "one", "Lumen")
    before = registry.found(tmp_path, CLOCK)[0].identity
    (tmp_path / "one").rename(tmp_path / "two")
    assert registry.found(tmp_path, CLOCK)[0].identity == before


def test_a_copy_is_left_out_and_said_to_be(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _folder(tmp_path / "one", "Lumen")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    with caplog.at_level(logging.WARNING):
        assert _names(tmp_path) == ["Lumen"]
    assert "left out" in caplog.text


def test_a_name_is_found_ignoring_case_and_never_guessed(tmp_path: Path) -> None:
    _folder(tmp_path / "one", "Lumen")
    folders = registry.found(tmp_path, CLOCK)
    assert registry.named(folders, "lumen") == folders[0]
    with pytest.raises(NotFound, match="'Lumen'"):
        registry.named(folders, "Lume")


def test_what_is_no_database_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    registry.begin(tmp_path, CLOCK)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "memory.db").write_bytes(b"no database at all, but some bytes" * 100)
    with caplog.at_level(logging.WARNING):
        assert _names(tmp_path) == ["My memory"]
    assert "bad" in caplog.text


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
def test_a_name_that_no_directory_can_have_is_replaced_by_the_directorys(
    tmp_path: Path, name: str
) -> None:
    _folder(tmp_path / "plain", name)
    assert _names(tmp_path) == ["plain"]
