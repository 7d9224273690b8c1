"""Which folders are found, and under which names."""

import functools
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from geniuzfs.errors import NotFound, TwoCopies
from geniuzfs.folders import places, registry
from geniuzfs.ports import SystemClock
from tests.folders.made import made

CLOCK = SystemClock()


def _aged(directory: Path, created_at: str) -> None:
    with closing(sqlite3.connect(directory / registry.FILE)) as plain, plain:
        plain.execute("UPDATE _meta SET value = ? WHERE key = 'created_at'", (created_at,))


def _names(home: Path) -> list[str]:
    return [folder.name for folder in registry.look(home, CLOCK).folders]


def test_the_first_use_makes_my_memory_and_the_second_changes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "data" / "geniuz"
    registry.begin(home, CLOCK)
    first = registry.look(home, CLOCK).folders
    registry.begin(home, CLOCK)
    assert registry.look(home, CLOCK).folders == first
    assert [folder.name for folder in first] == ["My memory"]
    assert first[0].path == home / "memory.db"
    assert home.stat().st_mode & 0o777 == 0o700


def test_folders_are_looked_for_one_level_down_and_listed_after_the_first(tmp_path: Path) -> None:
    registry.begin(tmp_path, CLOCK)
    made(tmp_path / "zebra")
    made(tmp_path / "work", "Alpha project")
    made(tmp_path / "archive" / "old")
    assert _names(tmp_path) == ["My memory", "Alpha project", "zebra"]


def test_a_folder_that_is_renamed_by_hand_stays_the_samemade(tmp_path: Path) -> None:
    made(tmp_path / "one", "Lumen")
    before = registry.look(tmp_path, CLOCK).folders[0].identity
    (tmp_path / "one").rename(tmp_path / "two")
    assert registry.look(tmp_path, CLOCK).folders[0].identity == before


def test_two_copies_of_a_folder_are_both_blocked_until_one_is_moved_away(tmp_path: Path) -> None:
    registry.begin(tmp_path, CLOCK)
    made(tmp_path / "one", "Lumen")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    seen = registry.look(tmp_path, CLOCK)
    assert [folder.name for folder in seen.folders] == ["My memory"]
    (copies,) = seen.blocked
    assert [copy.path.parent.name for copy in copies] == ["one", "two"]
    by_identity = functools.partial(registry.identified, seen, copies[0].identity.id)
    for ask in (functools.partial(registry.named, seen, "LUMEN"), by_identity):
        with pytest.raises(TwoCopies) as raised:
            ask()
        assert str(tmp_path / "one") in str(raised.value)
        assert str(tmp_path / "two") in str(raised.value)
    (line,) = seen.warnings()
    assert str(tmp_path / "two") in line
    (tmp_path / "two").rename(tmp_path.parent / f"{tmp_path.name}-away")
    assert _names(tmp_path) == ["My memory", "Lumen"]


def test_of_two_folders_with_one_name_the_older_keeps_it(tmp_path: Path) -> None:
    made(tmp_path / "b", "Lumen")
    made(tmp_path / "a", "lumen")
    _aged(tmp_path / "a", "2026-10-02 00:00:00")
    _aged(tmp_path / "b", "2026-10-01 00:00:00")
    seen = registry.look(tmp_path, CLOCK)
    assert [folder.path.parent.name for folder in seen.folders] == ["b"]
    (left_out,) = seen.left_out
    assert left_out.path == tmp_path / "a" / "memory.db"
    assert str(tmp_path / "b" / "memory.db") in left_out.reason


def test_added_directories_are_read_like_the_data_directory(tmp_path: Path) -> None:
    home, other, single = tmp_path / "home", tmp_path / "other", tmp_path / "single"
    registry.begin(home, CLOCK)
    made(other / "beta")
    made(other / "deeper" / "unseen")
    made(single)
    made(single / "below")
    missing = tmp_path / "unplugged"
    places.record(home, places.Places(added=(other, single, missing, home)))
    assert _names(home) == ["My memory", "below", "beta", "single"]


def test_pinned_folders_come_first_in_the_order_of_pinning(tmp_path: Path) -> None:
    registry.begin(tmp_path, CLOCK)
    for name in ("a", "b", "c"):
        made(tmp_path / name)
    ids = {folder.name: folder.identity.id for folder in registry.look(tmp_path, CLOCK).folders}
    places.record(tmp_path, places.Places(pinned=(ids["c"], ids["b"])))
    assert _names(tmp_path) == ["c", "b", "My memory", "a"]


def test_links_are_no_folders(tmp_path: Path) -> None:
    made(tmp_path / "home" / "real")
    made(tmp_path / "elsewhere")
    (tmp_path / "home" / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "home" / "inside").mkdir()
    (tmp_path / "home" / "inside" / "memory.db").symlink_to(tmp_path / "elsewhere" / "memory.db")
    assert _names(tmp_path / "home") == ["real"]


def test_an_identity_is_read_whatever_the_case_of_its_letters(tmp_path: Path) -> None:
    made(tmp_path / "one", "Lumen")
    (before,) = registry.look(tmp_path, CLOCK).folders
    with closing(sqlite3.connect(before.path)) as plain, plain:
        plain.execute("UPDATE _meta SET value = lower(value) WHERE key = 'uuid'")
        plain.execute("UPDATE _meta SET value = CAST('x' AS BLOB) WHERE key = 'version'")
    assert registry.look(tmp_path, CLOCK).folders == [before]


def test_a_name_is_found_ignoring_case_and_never_guessed(tmp_path: Path) -> None:
    made(tmp_path / "one", "Lumen")
    seen = registry.look(tmp_path, CLOCK)
    assert registry.named(seen, "lumen") == seen.folders[0]
    made(tmp_path / "two", "Caf\u00c9")
    assert registry.named(registry.look(tmp_path, CLOCK), "cafe\u0301").name == "Caf\u00c9"
    with pytest.raises(NotFound, match="'Lumen'"):
        registry.named(seen, "Lume")


def test_what_is_no_database_is_left_out_and_said_to_be(tmp_path: Path) -> None:
    registry.begin(tmp_path, CLOCK)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "memory.db").write_bytes(b"no database at all, but some bytes" * 100)
    assert _names(tmp_path) == ["My memory"]
    (line,) = registry.look(tmp_path, CLOCK).warnings()
    assert str(tmp_path / "bad" / "memory.db") in line


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
def test_a_name_that_no_directory_can_have_is_replaced_by_the_directorys(
    tmp_path: Path, name: str
) -> None:
    made(tmp_path / "plain", name)
    assert _names(tmp_path) == ["plain"]


def test_a_folder_that_is_moved_while_it_is_looked_at_is_not_called_unreadable(
    tmp_path: Path,
) -> None:
    made(tmp_path / "one", "Lumen")
    rounds, start = 200, threading.Barrier(2)

    def move() -> None:
        for number in range(rounds):
            old, new = ("one", "two") if number % 2 == 0 else ("two", "one")
            start.wait()
            (tmp_path / old).rename(tmp_path / new)
            start.wait()

    mover = threading.Thread(target=move)
    mover.start()
    seen = []
    for _ in range(rounds):
        start.wait()
        seen.append(registry.look(tmp_path, CLOCK))
        start.wait()
    mover.join()
    assert [one.left_out for one in seen if one.left_out] == []
    assert [one.blocked for one in seen if one.blocked] == []
