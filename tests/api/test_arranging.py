"""Which folder a command means."""

import dataclasses
from pathlib import Path

import pytest

from geniuzfs.api.arranging import HERE, Arranging
from geniuzfs.config import Config
from geniuzfs.errors import NotFound, TwoCopies, UsageError
from geniuzfs.folders import places, registry
from geniuzfs.ports import SystemClock
from geniuzfs.store.connection import Database
from tests.folders.made import made

CLOCK = SystemClock()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A data directory with "My memory" and the folders a to e."""
    config = Config.from_environment({"GENIUZ_HOME": str(tmp_path / "home")})
    registry.begin(config.home, CLOCK)
    for name in "abcde":
        made(config.home / name)
    return config


def _means(config: Config, name: str | None, here: Path) -> str:
    return Arranging(config, CLOCK).meant(name, here).name


def _use(config: Config, name: str) -> None:
    id_ = registry.named(registry.look(config.home, CLOCK), name).identity.id
    places.change(config.home, lambda known: known._replace(used=id_))


def test_the_first_that_applies_says_which_folder_is_meant(config: Config, tmp_path: Path) -> None:
    here = tmp_path / "work" / "deeper"
    here.mkdir(parents=True)
    given = dataclasses.replace(config, database=config.home / "b" / "memory.db")
    assert _means(config, None, here) == "My memory"
    _use(config, "d")
    assert _means(config, None, here) == "d"
    (tmp_path / HERE).write_text("c\n")
    assert _means(config, None, here) == "c"
    (tmp_path / "work" / HERE).write_text(" E ")
    assert _means(config, None, here) == "e"
    assert _means(given, None, here) == "b"
    assert _means(given, "A", here) == "a"


def test_a_name_that_matches_nothing_is_an_error_and_no_fallback(
    config: Config, tmp_path: Path
) -> None:
    with pytest.raises(NotFound, match="'f'"):
        _means(config, "f", tmp_path)
    absent = dataclasses.replace(config, database=tmp_path / "absent.db")
    with pytest.raises(NotFound, match=r"absent\.db"):
        _means(absent, None, tmp_path)
    _use(config, "d")
    (config.home / "d").rename(tmp_path / "d")
    with pytest.raises(NotFound, match="folder use"):
        _means(config, None, tmp_path)
    (tmp_path / HERE).write_text("f")
    with pytest.raises(NotFound, match=HERE):
        _means(config, None, tmp_path)


@pytest.mark.parametrize("text", [b"", b"\n", b"a\nb\n", b"\xff"])
def test_a_file_that_names_no_folder_is_an_error(
    config: Config, tmp_path: Path, text: bytes
) -> None:
    (tmp_path / HERE).write_bytes(text)
    with pytest.raises(UsageError, match=HERE):
        _means(config, None, tmp_path)


def test_a_database_beside_all_places_can_be_meant_by_its_path(
    config: Config, tmp_path: Path
) -> None:
    Database.open(tmp_path / "other.db", create=True).close()
    given = dataclasses.replace(config, database=tmp_path / "other.db")
    assert Arranging(given, CLOCK).meant(None, tmp_path).path == tmp_path / "other.db"


def test_a_folder_that_is_there_twice_is_meant_by_nothing(config: Config, tmp_path: Path) -> None:
    _use(config, "a")
    (config.home / "copy").mkdir()
    copy = config.home / "copy" / "memory.db"
    copy.write_bytes((config.home / "a" / "memory.db").read_bytes())
    (tmp_path / "by file").mkdir()
    (tmp_path / "by file" / HERE).write_text("a")
    given = dataclasses.replace(config, database=copy)
    for configured, name, here in (
        (config, "a", tmp_path),
        (config, None, tmp_path),
        (config, None, tmp_path / "by file"),
        (given, None, tmp_path),
    ):
        with pytest.raises(TwoCopies, match="copy"):
            _means(configured, name, here)


@pytest.mark.parametrize("name", ["memory.db-wal", "station.db", "mount.log", "folders.json"])
def test_a_folder_called_as_a_file_of_another_is_not_in_its_way(config: Config, name: str) -> None:
    arranging = Arranging(config, CLOCK)
    assert not (config.home / name).exists()
    folder = arranging.new(name)
    assert (folder.name, folder.path.parent.name) == (name, f"{name}~2")
    Database.open(arranging.meant("My memory", None).path).close()
    assert arranging.seen().warnings() == []
