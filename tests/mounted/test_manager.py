"""A mount under a service manager: ready when it answers, watched by what its users would see."""

import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from geniuzfs.folders.mounts import mount_at
from geniuzfs.store.connection import Database
from tests.daemon import Daemon, listed
from tests.manager import Manager

WATCHDOG_SECONDS = 1.5
SILENCE_SECONDS = 3.0
"""Twice as long as a manager would wait."""


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with Manager(tmp_path / "notify", WATCHDOG_SECONDS) as made:
        yield made


def break_database(path: Path) -> None:
    """Whoever asks for an extended attribute gets an error: another process drops their table."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE xattrs")


def kill(daemon: Daemon) -> None:
    """For one whose database is not sound any more."""
    daemon.kill()
    daemon.process = None


def test_it_is_ready_when_it_answers_and_tells_when_it_ends(
    tmp_path: Path, manager: Manager
) -> None:
    with Daemon(tmp_path, environment=manager.environment) as daemon:
        assert "STATUS" in (first := manager.hear())
        assert first["STATUS"] == f"1 folder at {daemon.root}"
        assert manager.hear() == {"READY": "1"}
        assert listed(daemon.root) == []
        assert daemon.stop() == 0
        assert manager.wait_for("STOPPING") == "1"
    assert mount_at(daemon.root) is None


def test_a_mount_of_all_folders_is_ready_before_there_is_any_question(
    tmp_path: Path, manager: Manager
) -> None:
    with Daemon(tmp_path, alone=None, environment=manager.environment) as daemon:
        (daemon.root / "Work").mkdir()
        assert manager.wait_for("READY") == "1"
        while manager.wait_for("STATUS") != f"2 folders at {daemon.root}":
            pass


def test_without_a_watchdog_it_says_no_more_than_that_it_is_ready(tmp_path: Path) -> None:
    with (
        Manager(tmp_path / "notify") as manager,
        Daemon(tmp_path, environment=manager.environment),
    ):
        manager.wait_for("READY")
        with pytest.raises(TimeoutError):
            manager.hear(1.0)


def test_the_watchdog_is_fed_by_a_mount_that_lives_and_not_by_one_that_hangs(
    tmp_path: Path, manager: Manager
) -> None:
    with Daemon(tmp_path, environment=manager.environment) as daemon:
        for _ in range(3):
            assert manager.wait_for("WATCHDOG", WATCHDOG_SECONDS) == "1"
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGSTOP)
        manager.forget()
        with pytest.raises(TimeoutError):
            manager.wait_for("WATCHDOG", SILENCE_SECONDS)
        daemon.process.send_signal(signal.SIGCONT)
        assert manager.wait_for("WATCHDOG") == "1"


def test_a_database_that_fails_is_told_and_starves_the_watchdog(
    tmp_path: Path, manager: Manager
) -> None:
    daemon = Daemon(tmp_path, environment=manager.environment)
    try:
        daemon.root.mkdir()
        daemon.start()
        manager.wait_for("WATCHDOG")
        break_database(daemon.database_path)
        while "does not answer" not in manager.wait_for("STATUS"):
            pass
        for _ in range(6):  # a question each, over twice the time
            heard = manager.hear(SILENCE_SECONDS)
            assert "does not answer" in heard["STATUS"]
            assert "WATCHDOG" not in heard
        assert "does not answer" in daemon.log()
    finally:
        kill(daemon)


def test_one_folder_that_fails_does_not_end_the_others(tmp_path: Path, manager: Manager) -> None:
    daemon = Daemon(tmp_path, alone=None, environment=manager.environment)
    try:
        daemon.root.mkdir()
        daemon.start()
        (daemon.root / "Work").mkdir()
        break_database(daemon.home / "Work" / "memory.db")
        while "Work does not answer" not in manager.wait_for("STATUS"):
            pass
        assert manager.wait_for("WATCHDOG") == "1"
        (daemon.root / "My memory" / "note.md").write_text("kept")
    finally:
        kill(daemon)
    with closing(Database.open(daemon.database_path)):
        pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["stop", "logout"])
def test_what_is_open_is_saved_when_it_is_stopped(
    tmp_path: Path, manager: Manager, number: signal.Signals
) -> None:
    with Daemon(tmp_path, environment=manager.environment) as daemon:
        descriptor = os.open(daemon.root / "open.md", os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, b"not closed")
        assert daemon.process is not None
        daemon.process.send_signal(number)
        assert daemon.ended() == 0
        assert manager.wait_for("STOPPING") == "1"
        with pytest.raises(OSError):
            os.write(descriptor, b"too late")
        with pytest.raises(OSError):
            os.close(descriptor)
        daemon.start()
        assert (daemon.root / "open.md").read_bytes() == b"not closed"


def test_it_is_ready_again_over_what_kill_9_left(tmp_path: Path, manager: Manager) -> None:
    with Daemon(tmp_path, environment=manager.environment) as daemon:
        (daemon.root / "note.md").write_text("kept")
        assert daemon.process is not None
        daemon.process.kill()
        daemon.process.wait()
        assert mount_at(daemon.root) is not None
        manager.forget()
        daemon.start()
        assert manager.wait_for("READY") == "1"
        assert (daemon.root / "note.md").read_text() == "kept"
