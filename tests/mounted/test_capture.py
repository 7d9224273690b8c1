"""`geniuzfs capture` beside a mount, and from beneath one."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.daemon import Daemon, listed, wait_until
from tests.mounted.comparing import differences

SHOWN_SECONDS = 1.0


def capture(home: Path, *words: str | Path, exits: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "geniuzfs", "capture", *map(str, words)],
        env={**os.environ, "GENIUZ_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == exits, done.stderr
    return done


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    (path / "sub").mkdir(parents=True)
    for number in range(30):
        (path / "sub" / f"note {number}.md").write_bytes(os.urandom(number * 1_000))
    (path / "link").symlink_to("sub")
    os.link(path / "sub" / "note 3.md", path / "hard")
    (path / "sub" / "note 5.md").chmod(0o640)
    os.utime(path / "sub", ns=(1, 1_111_111_111))
    return path


def test_what_is_brought_in_shows_in_the_mount_as_it_was(mount: Daemon, source: Path) -> None:
    assert listed(mount.root) == []
    told = json.loads(capture(mount.home, source, "--json").stdout)
    assert (told["files"], told["links"], told["directories"]) == (31, 1, 2)
    wait_until(lambda: listed(mount.root) == ["source"], SHOWN_SECONDS)
    assert differences(source, mount.root / "source") == []
    (source / "sub" / "note 1.md").write_text("other")
    assert (mount.root / "source/sub/note 1.md").stat().st_size == 1_000
    assert "--replace" in capture(mount.home, source, exits=3).stderr
    capture(mount.home, source, "--replace")
    wait_until(lambda: (mount.root / "source/sub/note 1.md").read_text() == "other", SHOWN_SECONDS)


def test_what_lies_beneath_a_mount_is_brought_into_another_folder(
    tmp_path: Path, source: Path
) -> None:
    with Daemon(tmp_path, alone=None) as mount:
        first = mount.root / "My memory"
        capture(mount.home, source)
        wait_until(lambda: "source" in os.listdir(first), SHOWN_SECONDS)
        (mount.root / "Work").mkdir()
        told = capture(mount.home, first, "--in", "Work").stdout
        assert "4 reserved name" in told
        wait_until(lambda: "My memory" in os.listdir(mount.root / "Work"), SHOWN_SECONDS)
        assert differences(source, mount.root / "Work" / "My memory" / "source") == []
        # Into the very folder that it is read from.
        capture(mount.home, first / "source", "--into", "again")
        wait_until(lambda: "again" in os.listdir(first), SHOWN_SECONDS)
        assert differences(source, first / "again" / "source") == []


def test_savers_go_on_meanwhile_and_none_is_lost(mount: Daemon, tmp_path: Path) -> None:
    many = tmp_path / "many"
    many.mkdir()
    for number in range(2_000):
        (many / f"{number}.md").write_text(f"Note {number}.\n" * 20)
    slowest, saved, ended = 0.0, 0, threading.Event()

    def save() -> None:
        nonlocal slowest, saved
        while not ended.is_set():
            begun = time.monotonic()
            (mount.root / f"saved {saved}").write_text(str(saved))
            slowest, saved = max(slowest, time.monotonic() - begun), saved + 1

    saver = threading.Thread(target=save)
    saver.start()
    try:
        capture(mount.home, many)
    finally:
        ended.set()
        saver.join()
    assert slowest < SHOWN_SECONDS
    assert {int(p.read_text()) for p in mount.root.glob("saved *")} == set(range(saved))
    assert differences(many, mount.root / "many") == []


def test_a_command_says_what_it_did_and_what_was_left_out(tmp_path: Path) -> None:
    home, source = tmp_path / "home", tmp_path / "source"
    source.mkdir()
    (source / "a.md").write_text("tea")
    (source / "b~").write_text("no")
    (source / "huge").write_bytes(bytes(1))
    done = capture(home, source, "--dry-run")
    assert done.stdout.splitlines() == [
        "would bring in: 2 files, 1 directories (4 bytes)",
        "left out: 1 temporary",
    ]
    assert capture(home, source).stdout.startswith("brought in: 2 files, 1 directories (4 bytes)\n")
    assert capture(home, source).stdout.startswith("brought in: nothing (0 bytes); 3 there already")
    assert capture(home, source, "--as-memories").stdout.startswith("brought in: 1 memories (3 b")
    assert "not there" in capture(home, tmp_path / "nowhere", exits=1).stderr
    capture(home, exits=2)
    capture(home, source, "--as-memories", "--into", "x", exits=2)
    capture(home, source, "--in", "nobody", exits=1)
    (source / "huge").write_bytes(b"x" * 100)
    done = subprocess.run(
        [sys.executable, "-m", "geniuzfs", "capture", str(source), "--into", "new"],
        env={**os.environ, "GENIUZ_HOME": str(home), "GENIUZ_CONTENT_LIMIT": "50"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == f"geniuzfs: left out, too large: {source}/huge\n"
