"""The record of added directories, pinned folders and the one in use."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from geniuzfs.errors import StoreDamaged
from geniuzfs.folders import places
from geniuzfs.folders.places import Places
from geniuzfs.model import FolderId


def test_what_was_recorded_is_read(tmp_path: Path) -> None:
    assert places.read(tmp_path) == Places()
    kept = Places((tmp_path / "ä b", Path("/x")), (FolderId("B"), FolderId("A")), FolderId("A"))
    places.change(tmp_path, lambda _: kept)
    assert places.read(tmp_path) == kept
    assert (tmp_path / places.FILE).stat().st_mode & 0o777 == 0o600


def test_many_changes_at_once_are_all_kept(tmp_path: Path) -> None:
    def add(number: int) -> None:
        place = Path(f"/{number}")
        places.change(tmp_path, lambda known: known._replace(added=(*known.added, place)))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(add, range(40)))
    assert sorted(places.read(tmp_path).added) == sorted(Path(f"/{n}") for n in range(40))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", json.dumps({"added": [1], "pinned": [], "used": None}), "\x00\x00"],
)
def test_a_record_that_makes_no_sense_is_an_error_and_stays(tmp_path: Path, text: str) -> None:
    (tmp_path / places.FILE).write_text(text)
    with pytest.raises(StoreDamaged, match="mend it or remove it"):
        places.read(tmp_path)
    with pytest.raises(StoreDamaged):
        places.change(tmp_path, lambda known: known)
    assert (tmp_path / places.FILE).read_text() == text
