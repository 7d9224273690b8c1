"""Keeping goes on while its folder is arranged, and what GENIUZ_DB names is learned too."""

import subprocess
import sys
from pathlib import Path

import pytest

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.store import memories, passages
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.folders.killing import other_disk
from tests.folders.made import made

MOVER = """
import sys
from pathlib import Path
from geniuzfs import runtime
arranging = runtime.geniuz().arranging
for place in sys.argv[1:] * 15:
    arranging.move(arranging.called("Work"), Path(place))
"""


@pytest.mark.parametrize("disk", ["one disk", "another disk"])
def test_what_is_kept_while_its_folder_is_moved_is_kept(tmp_path: Path, disk: str) -> None:
    home = tmp_path / "home"
    made(home / "Work", "Work")
    geniuz = runtime.geniuz(Config.from_environment({"GENIUZ_HOME": str(home)}))
    with other_disk(tmp_path) as other:
        shelf = tmp_path / "shelf" if disk == "one disk" else other
        shelf.mkdir(exist_ok=True)
        mover = subprocess.Popen(
            [sys.executable, "-c", MOVER, str(shelf), str(home)], env={"GENIUZ_HOME": str(home)}
        )
        kept: list[str] = []
        while mover.poll() is None:
            kept.append(geniuz.keep("Work", f"Note {len(kept)}.").memory.id)
        assert mover.returncode == 0
        assert len(kept) > 5
        database = Database.open(home / "Work" / "memory.db")
        assert [one.memory.id for one in memories.page(database.view, 0, 100_000)] == kept
        database.close()


def test_the_folder_of_geniuz_db_is_learned_wherever_it_lies(tmp_path: Path) -> None:
    made(tmp_path / "elsewhere", "Elsewhere")
    path = tmp_path / "elsewhere" / "memory.db"
    environment = {"GENIUZ_HOME": str(tmp_path / "home"), "GENIUZ_DB": str(path)}
    config = Config.from_environment(environment)
    geniuz = Geniuz(config, runtime.geniuz(config).clock, FakeEmbedder())
    geniuz.keep(None, "Priya signs.")
    with geniuz.learning(None) as learning:
        for _ in learning.until_done():
            pass
    database = Database.open(path)
    assert passages.waiting(database.view) == (0, 0)
    assert database.view.row("SELECT count(*) FROM vectors") == (1,)
    database.close()
