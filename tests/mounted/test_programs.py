"""A program that calls, beside a mount of the same folder: each sees what the other has done."""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from geniuzfs import NotFoundError
from geniuzfs.api import Geniuz
from geniuzfs.api.opened import Opened
from geniuzfs.config import Config
from geniuzfs.ports import SystemClock
from tests.daemon import Daemon, listed, wait_until
from tests.embed.fake import FakeEmbedder

ROOT = Path(__file__).parents[2]
PROCESSES = 4
EDITS = 200

COUNT = f"""
import geniuzfs
conflicts = 0
with geniuzfs.open() as mem:
    print("ready", flush=True)
    input()
    for _ in range({EDITS}):
        while True:
            read = mem.files.get("/count")
            try:
                mem.files.put("/count", str(int(read.text) + 1), if_version=read.version)
                break
            except geniuzfs.ConflictError:
                conflicts += 1
print(conflicts)
"""

APPEND = f"""
import os, geniuzfs
with geniuzfs.open() as mem:
    print("ready", flush=True)
    input()
    for number in range({EDITS}):
        mem.files.edit("/lines", lambda text: f"{{text}}{{os.getpid()}} {{number}}\\n")
"""


@pytest.fixture
def mem(mount: Daemon) -> Iterator[Opened]:
    """The mount's folder, held open beside it."""
    environment = {"HOME": str(mount.home), "GENIUZ_HOME": str(mount.home)}
    geniuz = Geniuz(Config.from_environment(environment), SystemClock(), FakeEmbedder())
    with geniuz.opened(None) as opened:
        yield opened
    geniuz.close()


def at_once(mount: Daemon, code: str) -> list[str]:
    """What PROCESSES programs print that all begin when the last one is ready."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "GENIUZ_HOME": str(mount.home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    try:
        for each in running:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        with ThreadPoolExecutor(PROCESSES) as pool:
            printed = list(pool.map(lambda each: each.communicate("go\n")[0], running))
        assert [each.returncode for each in running] == [0] * PROCESSES
        return printed
    finally:
        for each in running:
            each.kill()
            each.wait()


def text_of(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def test_the_mount_shows_what_a_program_does(mount: Daemon, mem: Opened) -> None:
    shown = mount.root / "drafts" / "plan.md"
    assert text_of(shown) is None
    assert listed(mount.root) == []
    mem.files.put("/drafts/plan.md", "one", {"channel": "claude"})
    wait_until(lambda: text_of(shown) == "one")
    assert os.getxattr(shown, "user.geniuz.label.channel") == b"claude"
    with shown.open() as opened:
        mem.files.put("/drafts/plan.md", "two, longer")
        wait_until(lambda: os.pread(opened.fileno(), 100, 0) == b"two, longer")
    mem.files.move("/drafts/", "/done/")
    wait_until(lambda: listed(mount.root) == ["done"])
    assert (mount.root / "done" / "plan.md").read_text() == "two, longer"
    mem.files.delete("/done/plan.md")
    wait_until(lambda: listed(mount.root) == [])


def test_a_program_sees_at_once_what_is_done_in_the_mount(mount: Daemon, mem: Opened) -> None:
    for number in range(20):
        (mount.root / "note.md").write_text(f"This is version{number}.")
        assert mem.files.get("/note.md").text == f"This is version{number}."
        assert [hit.path for hit in mem.recall(f"version{number}", mode="grep")] == ["/note.md"]
    version = mem.files.get("/note.md").version
    os.setxattr(mount.root / "note.md", "user.geniuz.label.by", b"me")
    assert mem.files.get("/note.md").labels == {"by": "me"}
    assert mem.files.get("/note.md").version == version
    (mount.root / "note.md").rename(mount.root / "other.md")
    with pytest.raises(NotFoundError):
        mem.files.get("/note.md")
    (mount.root / "other.md").unlink()
    assert mem.files.list().total == 0


def test_names_and_bytes_that_only_a_mount_makes(mount: Daemon, mem: Opened) -> None:
    (mount.root / "picture").write_bytes(b"\xff\xd8\0")
    with open(os.fsencode(mount.root) + b"/\xff.md", "w") as odd:
        odd.write("text")
    (mount.root / "a\\b").write_text("text")
    with (mount.root / "sparse").open("wb") as sparse:
        sparse.truncate(2**40)
    page = mem.files.list()
    assert [(file.path, file.size) for file in page.files] == [
        ("/picture", None),
        ("/sparse", None),
    ]
    assert (page.total, page.unlisted) == (2, 2)
    assert mem.files.get("/picture").bytes == b"\xff\xd8\0"


def test_four_programs_count_beside_a_mount_and_no_count_is_lost(
    mount: Daemon, mem: Opened
) -> None:
    mem.files.put("/count", "0")
    conflicts = list(map(int, at_once(mount, COUNT)))
    assert mem.files.get("/count").text == str(PROCESSES * EDITS)
    assert sum(conflicts) > 0  # or they did not meet at all
    wait_until(lambda: text_of(mount.root / "count") == str(PROCESSES * EDITS))


def test_four_programs_edit_one_file_beside_a_mount_and_every_line_is_there(
    mount: Daemon, mem: Opened
) -> None:
    mem.files.put("/lines", "")
    at_once(mount, APPEND)
    lines = [line.split() for line in mem.files.get("/lines").text.splitlines()]
    by_program: dict[str, list[int]] = {}
    for who, number in lines:
        by_program.setdefault(who, []).append(int(number))
    assert list(by_program.values()) == [list(range(EDITS))] * PROCESSES
