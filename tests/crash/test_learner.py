"""kill -9 of whatever learns: nothing is lost, nothing is doubled, and it goes on by itself."""

import os
import random
import signal
import subprocess
from functools import partial
from pathlib import Path

import pytest

from geniuzfs.store.connection import Database
from tests.daemon import wait_until
from tests.mounted.learned import LEARNED_SECONDS, Learned, files

FILES, EACH = 60, 40
PASSAGES = FILES * EACH


def wait_for(database: Database, count: int, process: "subprocess.Popen[str]") -> None:
    """Until so many passages and vectors are there, or the process has ended."""
    wait_until(lambda: progress(database) >= count or process.poll() is not None, LEARNED_SECONDS)


def progress(database: Database) -> int:
    """Passages learned and vectors stored."""
    found: int = database.view.row(
        "SELECT (SELECT count(*) FROM passages WHERE context = 0) + (SELECT count(*) FROM vectors)"
    )[0]
    return found


def assert_all_learned_once(mount: Learned) -> None:
    mount.check()
    said = "SELECT count(*), count(DISTINCT text) FROM passages WHERE context = 0"
    assert mount.rows(said) == [(PASSAGES, PASSAGES)]
    assert mount.rows("SELECT count(*), count(DISTINCT passage) FROM vectors") == [
        (PASSAGES, PASSAGES)
    ]
    assert mount.rows("SELECT count(*) FROM sources WHERE state = 'learned'") == [(FILES,)]
    for number in (0, PASSAGES // 2, PASSAGES - 1):
        text = f"Paragraph {number} speaks of subject{number} alone."
        assert text in [hit[2] for hit in mount.cited(f"subject{number}")]


@pytest.mark.parametrize("seed", range(2))
def test_a_learner_that_is_killed_again_and_again_learns_everything_once(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    with Learned(tmp_path, environment={"GENIUZ_LEARN": "0"}) as mount:
        files(mount.root / "many", FILES, EACH)
        database = Database.open(mount.database_path)
        for _ in range(4):
            enough = progress(database) + dice.randint(1, PASSAGES // 3)
            process = mount.started("learn", "--wait")
            wait_for(database, enough, process)
            process.kill()
            process.communicate()
            mount.check()
        database.close()
        assert mount.cli("learn", "--wait") == "learned\n"
        assert_all_learned_once(mount)


def test_a_helper_that_is_killed_in_mid_batch_comes_back_by_itself(tmp_path: Path) -> None:
    with Learned(tmp_path) as mount:
        files(mount.root / "many", FILES, EACH)
        for share in (1, 5, 9):
            wait_until(partial(_has_embedded, mount, PASSAGES * share // 12), LEARNED_SECONDS)
            mount.end_helper()
        mount.wait_learned()
        assert_all_learned_once(mount)
        assert mount.ask("subject1")["searched"]["meaning"]


def _has_embedded(mount: Learned, count: int) -> bool:
    return mount.embedded() > count


def test_a_killed_learner_of_a_mount_is_started_again(tmp_path: Path) -> None:
    with Learned(tmp_path) as mount:
        files(mount.root / "many", FILES, EACH)
        wait_until(lambda: mount.embedded(), LEARNED_SECONDS)
        first = mount.learner()
        assert first is not None
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: mount.learner() not in (None, first))
        mount.wait_learned()
        assert_all_learned_once(mount)


def test_a_learner_ends_with_its_daemon_and_the_next_goes_on(tmp_path: Path) -> None:
    mount = Learned(tmp_path)
    with mount:
        files(mount.root / "many", FILES, EACH)
        wait_until(lambda: mount.embedded(), LEARNED_SECONDS)
        learner = mount.learner()
        mount.kill()
        wait_until(lambda: not Path(f"/proc/{learner}").exists(), LEARNED_SECONDS)
        mount.start()
        mount.wait_learned()
        assert_all_learned_once(mount)


def test_an_unmount_ends_the_learner(tmp_path: Path) -> None:
    with Learned(tmp_path) as mount:
        (mount.root / "note.md").write_text("Said.\n")
        mount.wait_learned()
        learner = mount.learner()
        assert learner is not None
        subprocess.run(["umount", mount.root], check=True)
        assert mount.ended() == 0
        assert not Path(f"/proc/{learner}").exists()
