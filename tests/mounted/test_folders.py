"""Folders come, go, are named and moved, by the mount's own top and by others; open files stay."""

import functools
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from errno import EEXIST, EINVAL, ENOENT, ENOTEMPTY, EPERM, ESTALE
from pathlib import Path
from typing import Any

import pytest

from geniuzfs.folders import moving, registry
from geniuzfs.model import ROOT
from geniuzfs.ports import SystemClock
from geniuzfs.store import check, content, tree
from geniuzfs.store.connection import Database
from tests.daemon import Daemon, listed, wait_until
from tests.folders.killing import killed_at, loop_disk, other_disk
from tests.folders.made import made
from tests.mounted.calls import RENAME_EXCHANGE, errno_of, renameat2

SHOWN_SECONDS = 1.0
"""What is promised."""


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Daemon]:
    """A mount of all folders: "My memory" and "Work", which holds a file."""
    made(tmp_path / "home" / "Work", "Work")
    with Daemon(tmp_path, alone=None, expected_log="is there twice") as daemon:
        (daemon.root / "Work" / "note").write_bytes(b"text")
        yield daemon
    for path in daemon.home.glob("*/memory.db"):
        _sound(path)


def shown(true: Callable[..., object], *values: object) -> None:
    """Wait until it holds; fails when that takes longer than promised."""
    begun = time.monotonic()
    while not true(*values):
        assert time.monotonic() - begun < SHOWN_SECONDS, "it did not show in time"
        time.sleep(0.002)


def names(mount: Daemon) -> list[str]:
    return listed(mount.root)


def lists(mount: Daemon, *wanted: str) -> None:
    shown(lambda: names(mount) == sorted(wanted))


def folder(mount: Daemon, *words: str | Path) -> dict[str, Any]:
    """What a folder command tells of the first folder, run by another process."""
    done = subprocess.run(
        [sys.executable, "-m", "geniuzfs", "folder", *map(str, words), "--json"],
        env={**os.environ, "GENIUZ_HOME": str(mount.home)},
        capture_output=True,
        text=True,
        check=True,
    )
    first: dict[str, Any] = json.loads(done.stdout)["folders"][0]
    return first


def _draft(mount: Daemon, gist: str) -> int:
    """A new memory of the folder "Work", written and not closed."""
    path = mount.root / "Work" / ".memories" / gist
    draft = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.write(draft, b"Priya signs.")
    return draft


def _gists(mount: Daemon) -> list[str]:
    """The memories of "Work", by what they say in short."""
    directory = mount.root / "Work" / ".memories"
    assert not (directory / "no such name").exists()  # whoever closed one has been heard by now
    return sorted(name.split("~")[0][len("2026-01-01 ") :] for name in os.listdir(directory))


def _sound(path: Path) -> None:
    database = Database.open(path)
    try:
        with database.snapshot() as view:
            assert list(check.problems(view)) == []
            assert tree.inode(view, ROOT) is not None
    finally:
        database.close()


def _holds(path: Path, name: bytes, text: bytes) -> None:
    database = Database.open(path)
    try:
        found = tree.child(database.view, ROOT, name)
        assert found is not None
        assert content.piece(database.view, found.number, 0) == text
    finally:
        database.close()


# At the mount's own top


def test_mkdir_makes_a_folder_that_is_there_for_good(mount: Daemon) -> None:
    os.mkdir(mount.root / "Ideas")
    assert os.stat(mount.root).st_nlink == 5
    before = os.stat(mount.root / "Ideas")
    (mount.root / "Ideas" / "note").write_bytes(b"x")
    assert names(mount) == ["Ideas", "My memory", "Work"]
    assert (mount.home / "Ideas" / "memory.db").exists()
    mount.stop()
    mount.start()
    assert (mount.root / "Ideas" / "note").read_bytes() == b"x"
    assert os.stat(mount.root / "Ideas").st_ino == before.st_ino


def test_a_shell_may_stand_in_a_folder_that_it_has_just_made(mount: Daemon) -> None:
    script = (
        "mkdir New && cd New && echo x >note && sleep 1.2 && pwd -P && mv ../New ../Er && pwd -P"
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=mount.root, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [str(mount.root / "New"), str(mount.root / "Er")]


def test_names_that_no_folder_may_have_are_refused(mount: Daemon) -> None:
    for name, error in (
        ("work", EEXIST),
        ("Work", EEXIST),
        (".Trash-0", EINVAL),
        ("a\nb", EINVAL),
        (".recall", EEXIST),
    ):
        assert errno_of(functools.partial(os.mkdir, mount.root / name)) == error, name
    assert errno_of(lambda: os.mkdir(os.fsencode(mount.root) + b"/\xff")) == EINVAL
    assert names(mount) == ["My memory", "Work"]


def test_rename_names_a_folder_and_its_files_stay_open(mount: Daemon) -> None:
    work, play = mount.root / "Work", mount.root / "Play"
    number = os.stat(work).st_ino
    with open(work / "note", "r+b", buffering=0) as file:
        os.rename(work, play)
        file.write(b"TE")
        assert (play / "note").read_bytes() == b"TExt"
    assert names(mount) == ["My memory", "Play"]
    assert os.stat(play).st_ino == number
    assert errno_of(lambda: os.stat(work)) == ENOENT
    os.rename(play, mount.root / "PLAY")
    os.rename(mount.root / "My memory", mount.root / "Mine")
    assert folder(mount, "list")["name"] == "Mine"
    mount.stop()
    mount.start()
    assert names(mount) == ["Mine", "PLAY"]
    os.rename(mount.root / "Mine", mount.root / "My memory")


def test_a_folder_is_not_renamed_over_another(mount: Daemon) -> None:
    work, first = mount.root / "Work", mount.root / "My memory"
    assert errno_of(lambda: os.rename(work, first)) == EEXIST
    assert errno_of(lambda: renameat2(work, first, RENAME_EXCHANGE)) == EINVAL
    assert errno_of(lambda: os.rename(work, mount.root / ".x")) == EINVAL
    assert names(mount) == ["My memory", "Work"]


def test_rmdir_archives_an_empty_folder_and_nothing_else(mount: Daemon) -> None:
    work = mount.root / "Work"
    assert errno_of(lambda: os.rmdir(work)) == ENOTEMPTY
    (work / "note").unlink()
    assert errno_of(lambda: os.rmdir(mount.root / "My memory")) == EPERM
    os.rmdir(work)
    assert names(mount) == ["My memory"]
    assert (mount.home / "archive" / "Work" / "memory.db").exists()
    folder(mount, "restore", "work")
    lists(mount, "My memory", "Work")


# By others


def test_folders_of_others_come_and_go_by_themselves(mount: Daemon, tmp_path: Path) -> None:
    assert not (mount.root / "new").exists()  # the kernel keeps that it is not there
    made(tmp_path / "new")
    (tmp_path / "new").rename(mount.home / "new")
    lists(mount, "My memory", "Work", "new")
    (mount.root / "new" / "file").write_bytes(b"x")
    made(mount.home / "made in place")
    lists(mount, "My memory", "Work", "made in place", "new")
    (mount.home / "new").rename(tmp_path / "away")
    lists(mount, "My memory", "Work", "made in place")
    shown(lambda: errno_of(lambda: os.stat(mount.root / "new")) == ENOENT)
    (tmp_path / "away").rename(mount.home / "again")
    lists(mount, "My memory", "Work", "made in place", "new")
    assert (mount.root / "new" / "file").read_bytes() == b"x"


def test_a_folder_that_is_renamed_by_hand_or_command_shows_as_it_is(mount: Daemon) -> None:
    number = os.stat(mount.root / "Work").st_ino
    folder(mount, "rename", "work", "Play")
    lists(mount, "My memory", "Play")
    assert os.stat(mount.root / "Play").st_ino == number
    with open(mount.root / "Play" / "note", "ab", buffering=0) as file:
        (mount.home / "Work").rename(mount.home / "Elsewhere")
        time.sleep(0.5)  # nothing shows: the name is in the file
        file.write(b" goes on")
    (mount.root / "Play" / "more").write_bytes(b"y")
    assert (mount.root / "Play" / "note").read_bytes() == b"text goes on"
    assert os.stat(mount.root / "Play").st_ino == number
    database = Database.open(mount.home / "Elsewhere" / "memory.db")
    assert tree.child(database.view, ROOT, b"more") is not None
    database.close()


def test_what_was_archived_is_gone_and_its_open_files_were_saved(mount: Daemon) -> None:
    with open(mount.root / "Work" / "note", "r+b", buffering=0) as file:
        file.write(b"NEW!")
        folder(mount, "archive", "work")
        lists(mount, "My memory")
        shown(lambda: errno_of(lambda: os.stat(mount.root / "Work" / "note")) == ENOENT)
        assert errno_of(lambda: os.fsync(file.fileno())) in (0, ESTALE)
        folder(mount, "restore", "work")
        lists(mount, "My memory", "Work")
        assert (mount.root / "Work" / "note").read_bytes() == b"NEW!"
        file.write(b" and more")
    assert (mount.root / "Work" / "note").read_bytes() == b"NEW! and more"


def test_a_memory_that_is_being_written_when_its_folder_goes_is_refused_at_close(
    tmp_path: Path,
) -> None:
    made(tmp_path / "home" / "Work", "Work")
    said = "a memory could not be kept: the folder is gone"
    with Daemon(tmp_path, alone=None, expected_log=said) as mount:
        drafts = [_draft(mount, "gone"), _draft(mount, "back")]
        folder(mount, "archive", "work")
        lists(mount, "My memory")
        assert errno_of(lambda: os.close(drafts[0])) == ENOENT
        wait_until(lambda: said in mount.log())
        folder(mount, "restore", "work")
        lists(mount, "My memory", "Work")
        os.close(drafts[1])
        assert _gists(mount) == ["back"]
    _sound(mount.home / "Work" / "memory.db")


def test_two_copies_are_not_shown_and_named_until_one_is_moved(
    mount: Daemon, tmp_path: Path
) -> None:
    shutil.copytree(mount.home / "Work", mount.home / "copy")
    lists(mount, "My memory")
    status = (mount.root / ".status").read_text()
    assert str(mount.home / "Work" / "memory.db") in status
    assert str(mount.home / "copy" / "memory.db") in status
    (mount.home / "copy").rename(tmp_path / "copy")
    lists(mount, "My memory", "Work")
    assert (mount.root / "Work" / "note").read_bytes() == b"text"
    now, _, then = (mount.root / ".status").read_text().partition("\nsince ")
    assert "copy" not in now
    assert "copy" in then  # the last problem there was


def test_an_added_directory_shows_and_goes_on_to_be_watched(mount: Daemon, tmp_path: Path) -> None:
    made(tmp_path / "disk" / "far")
    folder(mount, "add", tmp_path / "disk")
    lists(mount, "My memory", "Work", "far")
    made(tmp_path / "disk" / "further")
    lists(mount, "My memory", "Work", "far", "further")


@pytest.fixture(params=["one disk", "another disk"])
def shelf(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    if request.param == "one disk":
        (tmp_path / "shelf").mkdir()
        yield tmp_path / "shelf"
        return
    with other_disk(tmp_path) as other:
        yield other


def test_a_move_shows_and_what_is_open_is_saved_there(mount: Daemon, shelf: Path) -> None:
    number = os.stat(mount.root / "Work").st_ino
    draft = _draft(mount, "on its way")
    with open(mount.root / "Work" / "note", "r+b", buffering=0) as file:
        file.write(b"OPEN")
        moved = folder(mount, "move", "work", shelf)
        assert moved["path"] == str(shelf / "Work" / "memory.db")
        file.write(b" still")
        os.fsync(file.fileno())
    os.close(draft)
    assert _gists(mount) == ["on its way"]
    (mount.root / "Work" / "after").write_bytes(b"z")
    assert (mount.root / "Work" / "note").read_bytes() == b"OPEN still"
    assert os.stat(mount.root / "Work").st_ino == number
    assert names(mount) == ["My memory", "Work"]
    mount.stop()
    mount.start()
    assert (mount.root / "Work" / "note").read_bytes() == b"OPEN still"
    assert (mount.root / "Work" / "after").read_bytes() == b"z"
    _sound(shelf / "Work" / "memory.db")


def test_no_save_is_lost_while_a_folder_is_moved_there_and_back(mount: Daemon, shelf: Path) -> None:
    reported: list[str] = []

    def has(reports: list[str], wanted: int) -> bool:
        return len(reports) >= wanted

    ended = threading.Event()

    def save(writer: int) -> None:
        for number in itertools.count():
            if ended.is_set():
                return
            name = f"{writer}-{number}"
            with open(mount.root / "Work" / name, "w") as file:
                file.write(name)
                os.fsync(file.fileno())
            reported.append(name)

    with ThreadPoolExecutor(3) as threads:
        saving = [threads.submit(save, writer) for writer in range(3)]
        try:
            for into in (shelf, mount.home) * 2:
                wanted = len(reported) + 20
                folder(mount, "move", "work", into)
                wait_until(functools.partial(has, reported, wanted))
        finally:
            ended.set()
        for each in saving:
            each.result()
    mount.stop()
    for name in reported:
        _holds(mount.home / "Work" / "memory.db", name.encode(), name.encode())


@pytest.mark.parametrize(
    ("disk", "step"),
    [*((other_disk, at) for at in range(20, 300, 40)), *((loop_disk, at) for at in (60, 140, 220))],
)
def test_a_move_that_is_killed_is_finished_or_undone_under_the_mount(
    mount: Daemon, tmp_path: Path, disk: Callable[[Path], AbstractContextManager[Path]], step: int
) -> None:
    with disk(tmp_path) as other:
        number = os.stat(mount.root / "Work").st_ino
        (work,) = [
            one for one in registry.look(mount.home, SystemClock()).folders if one.name == "Work"
        ]
        with open(mount.root / "Work" / "note", "r+b", buffering=0) as file:
            file.write(b"OPEN")
            killed_at(step, functools.partial(moving.move, mount.home, work, other))
            file.write(b" still")
            os.fsync(file.fileno())
        shown(lambda: (mount.root / "Work" / "note").read_bytes() == b"OPEN still")
        assert os.stat(mount.root / "Work").st_ino == number
        (path,) = [one["path"] for one in [folder(mount, "describe", "--in", "work")]]
        mount.stop()
        _holds(Path(path), b"note", b"OPEN still")


def test_a_folder_that_is_mounted_alone_is_followed_too(tmp_path: Path, shelf: Path) -> None:
    made(tmp_path / "home" / "Work", "Work")
    with Daemon(tmp_path, alone=None):
        pass
    with Daemon(tmp_path, alone="Work") as mount:
        (mount.root / "before").write_bytes(b"x")
        folder(mount, "move", "work", shelf)
        (mount.root / "after").write_bytes(b"y")
        assert listed(mount.root) == ["after", "before"]
    _sound(shelf / "Work" / "memory.db")
