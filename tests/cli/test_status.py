"""geniuzfs status: to look at once, to watch, and for Prometheus."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.daemon import Daemon


class Status:
    """The command, as somebody calls it beside `daemon`."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.command = [sys.executable, "-m", "geniuzfs", "status"]
        runtime = daemon.home.with_name("runtime")  # where no helper runs
        self.environment = {
            **os.environ,
            "GENIUZ_HOME": str(daemon.home),
            "XDG_RUNTIME_DIR": str(runtime),
        }

    def run(self, *words: str | Path, code: int = 0) -> str:
        done = subprocess.run(
            [*self.command, *map(str, words)],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    def metrics(self, text: str) -> dict[str, float]:
        """name{its one label} → value."""
        families = text_string_to_metric_families(text)
        return {
            f"{one.name}{''.join(one.labels.values())}": one.value
            for family in families
            for one in family.samples
        }


@pytest.fixture
def status(tmp_path: Path) -> Iterator[Status]:
    with Daemon(tmp_path) as daemon:
        yield Status(daemon)


def test_it_tells_what_the_mount_has_done(status: Status) -> None:
    root = status.daemon.root
    (root / "note.md").write_text("Tea at four.")
    (root / ".recall" / "tea").read_text()
    with pytest.raises(OSError):
        (root / ".recall" / "tea since:never").read_text()
    counted = json.loads(status.run("--json"))["counters"][str(root)]
    assert (counted["saves"], counted["questions"], counted["refused"]) == (1, 2, 1)
    assert (counted["warnings"], counted["errors"], counted["last_problem"]) == (0, 0, None)
    said = "1 saves, 2 questions (1 refused), 0 warnings, 0 errors\n"
    assert said in status.run()
    assert said in (root / ".status").read_text()


def test_it_tells_who_makes_vectors_and_starts_no_helper(status: Status) -> None:
    assert "helper sleeps\n" in status.run()
    assert json.loads(status.run("--json"))["learns"]["helper"] is False
    status.environment["GENIUZ_EMBED_URL"] = "http://127.0.0.1:1#tiny"
    assert "model: Ollama at http://127.0.0.1:1#tiny\n" in status.run()


def test_what_waits_has_an_age(status: Status) -> None:
    assert "waits for" not in status.run()
    (status.daemon.root / "note.md").write_text("Tea at four.")
    assert "My memory: the oldest waits for 0 s\n" in status.run()
    (folder,) = json.loads(status.run("--json"))["folders"]
    assert folder["due"] == 1
    assert 0 <= folder["oldest_waits_seconds"] < 60


def test_a_dead_mount_is_told_and_waited_for_no_longer_than_it_takes(status: Status) -> None:
    daemon = status.daemon
    assert daemon.process is not None
    daemon.process.kill()
    daemon.process.wait()
    assert f"{daemon.root} does not answer\n" in status.run()
    assert status.metrics(status.run("--metrics", "-"))[f"geniuzfs_mount_answers{daemon.root}"] == 0


def test_metrics_are_what_prometheus_reads(status: Status, tmp_path: Path) -> None:
    (status.daemon.root / "note.md").write_text("Tea at four.")
    place = tmp_path / "geniuzfs.prom"
    assert status.run("--metrics", place) == ""
    found = status.metrics(place.read_text())
    assert found["geniuzfs_filesMy memory"] == 1
    assert found["geniuzfs_content_bytesMy memory"] == 12
    assert found["geniuzfs_waiting_filesMy memory"] == 1
    assert found[f"geniuzfs_saves_total{status.daemon.root}"] == 1
    assert found[f"geniuzfs_mount_answers{status.daemon.root}"] == 1
    assert found["geniuzfs_helper_runs"] == 0
    assert found.keys() == status.metrics(status.run("--metrics", "-")).keys()
    assert [path.name for path in tmp_path.glob("geniuzfs.prom*")] == [place.name]


def test_metrics_that_can_not_be_written_are_an_error(status: Status, tmp_path: Path) -> None:
    assert "can't be written" in status.run("--metrics", tmp_path / "none" / "x", code=2)


def test_watching_in_a_pipe_shows_what_changes_until_it_is_interrupted(status: Status) -> None:
    watching = subprocess.Popen(
        [*status.command, "--watch"], env=status.environment, stdout=subprocess.PIPE, text=True
    )
    assert watching.stdout is not None
    lines = iter(watching.stdout.readline, "")
    assert next(line for line in lines if line.startswith("My memory: 0 files"))
    (status.daemon.root / "note.md").write_text("Tea at four.")
    assert next(line for line in lines if line.startswith("My memory: 1 files"))
    watching.send_signal(signal.SIGINT)
    assert watching.wait(20) == 0
    assert "\x1b" not in "".join(lines)
    watching.stdout.close()
