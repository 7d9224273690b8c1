"""`geniuzfs learn`: what it prints and how it ends."""

import os
import subprocess
import sys
from pathlib import Path

from geniuzfs.embed import models
from geniuzfs.folders import registry
from geniuzfs.ports import SystemClock
from geniuzfs.store import tree
from geniuzfs.store.connection import Database
from tests.embed.fake import tiny_model
from tests.notes import taught, write


def learn(home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    runtime = home.parent / "no directory"  # so that there is no helper
    runtime.write_bytes(b"")
    environment = {**os.environ, "GENIUZ_HOME": str(home), "XDG_RUNTIME_DIR": str(runtime)}
    return subprocess.run(
        [sys.executable, "-m", "geniuzfs", "learn", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def begun(home: Path) -> Database:
    """The first folder of a new data directory."""
    registry.begin(home, SystemClock())
    models.use(home, tiny_model(home.parent / "tiny"))
    database = Database.open(home / registry.FILE)
    with database.txn() as txn:
        tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
    return database


def test_nothing_to_learn_is_learned(tmp_path: Path) -> None:
    begun(tmp_path / "home").close()
    done = learn(tmp_path / "home", "--wait")
    assert (done.returncode, done.stdout) == (0, "learned\n")


def test_without_a_model_it_ends_well_and_says_words_only(tmp_path: Path) -> None:
    database = begun(tmp_path / "home")
    write(database, "note.md", "Said.")
    done = learn(tmp_path / "home", "--in", "my memory")
    assert done.returncode == 0
    assert done.stdout.startswith("learned, words only: ")
    assert str(tmp_path / "no directory") in done.stdout
    assert taught(database) == {"Said."}
    database.close()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    begun(tmp_path / "home").close()
    done = learn(tmp_path / "home", "--in", "Nowhere")
    assert done.returncode != 0
    assert "Nowhere" in done.stderr
    assert "Traceback" not in done.stderr


def test_following_ends_when_nobody_holds_its_standard_input(tmp_path: Path) -> None:
    begun(tmp_path / "home").close()
    assert learn(tmp_path / "home", "--follow").returncode == 0
