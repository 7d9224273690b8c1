"""Live in it: the tools that people use on files, each on the mount.

The mount lies outside /tmp, where vim and emacs would make no backups.
"""

import itertools
import mmap
import os
import select
import shutil
import socket
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import terminals
from tests.daemon import Daemon
from tests.mounted.comparing import differences

TREE_FILES = 1_200
OLD = b"Tea at four.\nAnd cake: \xc3\xa9clair.\n"
NEW = b"Coffee at four.\nAnd cake: \xc3\xa9clair.\n"
TRANSACTIONS = 60
"""For each of the processes that share a database."""


class Home:
    """A mount to live in. What is expected in it is there after a remount as well."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self._expected: dict[Path, bytes] = {}

    def directory(self, name: str) -> Path:
        made = self.daemon.root / name
        made.mkdir()
        return made

    def expect(self, path: Path, text: bytes) -> None:
        """`path` holds `text`, now and after a remount."""
        assert path.read_bytes() == text
        self._expected[path] = text

    def remount(self) -> None:
        assert self.daemon.stop() == 0
        self.daemon.start()
        for path, text in self._expected.items():
            assert path.read_bytes() == text, path


@pytest.fixture(scope="module")
def outside() -> Iterator[Path]:
    """A directory of a native file system outside /tmp."""
    made = Path(tempfile.mkdtemp(prefix="geniuzfs-", dir="/var/tmp"))
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def home(outside: Path) -> Iterator[Home]:
    with Daemon(outside) as daemon:
        lived_in = Home(daemon)
        yield lived_in
        lived_in.remount()


def run(*command: str | Path, cwd: Path | None = None, ok: tuple[int, ...] = (0,)) -> str:
    """Run a tool that must succeed; what it printed."""
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"needs {command[0]}: .ci/test installs it")
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode in ok, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def made(directory: Path) -> Path:
    """A file to be edited."""
    note = directory / "note.md"
    note.write_bytes(OLD)
    note.chmod(0o640)
    return note


# Editors

VIM_SETTINGS = list(
    itertools.product(
        ("backup", "nobackup"), ("writebackup", "nowritebackup"), ("yes", "no", "auto")
    )
)


@pytest.mark.parametrize(("backup", "writebackup", "backupcopy"), VIM_SETTINGS)
def test_vim(home: Home, backup: str, writebackup: str, backupcopy: str) -> None:
    directory = home.directory(f"vim {backup} {writebackup} {backupcopy}")
    note = made(directory)
    settings = f"set {backup} {writebackup} backupcopy={backupcopy} backupskip= swapfile"
    vim = ("vim", "-Nesu", "NONE", "-i", "NONE", "--cmd", settings)
    run(*vim, "-c", "%s/Tea/Coffee/", "-c", "wq", note)
    home.expect(note, NEW)
    assert note.stat().st_mode & 0o777 == 0o640
    run(*vim, "-c", "%s/Coffee/Water/", "-c", "wq", note)
    home.expect(note, NEW.replace(b"Coffee", b"Water"))
    left = {path.name: path.read_bytes() for path in directory.iterdir() if path != note}
    assert left == ({"note.md~": NEW} if backup == "backup" else {})


@pytest.mark.parametrize("options", [(), ("--backup",), ("--locking",)])
def test_nano(home: Home, options: tuple[str, ...]) -> None:
    if shutil.which("nano") is None:
        pytest.skip("needs nano: .ci/test installs it")
    directory = home.directory(f"nano {options}")
    note = made(directory)
    control, terminal = terminals.opened()
    nano = subprocess.Popen(
        ["nano", "--ignorercfiles", *options, note],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"},
    )
    os.close(terminal)
    try:
        shown(control, b"note.md")
        # Delete the first word, type another, save, confirm the name, leave.
        os.write(control, b"\x1b[3~" * 3 + b"Coffee\x0f\r")
        shown(control, b"Wrote 2 lines")
        os.write(control, b"\x18")
        while read_some(control):
            pass
    finally:
        nano.kill()
        nano.wait()
        os.close(control)
    home.expect(note, NEW)
    left = {path.name: path.read_bytes() for path in directory.iterdir() if path != note}
    assert left == ({"note.md~": OLD} if "--backup" in options else {})


def read_some(control: int) -> bytes:
    """What a program has shown next; nothing once it has ended."""
    ready, _, _ = select.select([control], [], [], 30)
    assert ready, "the program is stuck"
    try:
        return os.read(control, 4096)
    except OSError:  # EIO: nobody has the terminal open any more
        return b""


def shown(control: int, text: bytes) -> None:
    """Wait until a program has shown `text`."""
    seen = b""
    while text not in seen:
        some = read_some(control)
        assert some, f"the program ended: {seen!r}"
        seen += some


EMACS_SETTINGS = {
    "backup by renaming": "make-backup-files t backup-by-copying nil",
    "backup by copying": "make-backup-files t backup-by-copying t",
    "precious": "make-backup-files t file-precious-flag t",
    "precious, no backup": "make-backup-files nil file-precious-flag t",
    "no backup": "make-backup-files nil",
}


@pytest.mark.parametrize("name", EMACS_SETTINGS)
def test_emacs(home: Home, name: str) -> None:
    directory = home.directory(f"emacs {name}")
    note = made(directory)
    program = f"""(progn (setq {EMACS_SETTINGS[name]}) (find-file "{note}")
        (while (search-forward "Tea" nil t) (replace-match "Coffee")) (save-buffer)
        (goto-char (point-max)) (insert "More.\n") (save-buffer) (kill-emacs))"""
    run("emacs", "-Q", "--batch", "--eval", program)
    home.expect(note, NEW + b"More.\n")
    assert note.stat().st_mode & 0o777 == 0o640
    left = {path.name: path.read_bytes() for path in directory.iterdir() if path != note}
    assert left == ({} if "no backup" in name else {"note.md~": OLD})


# Programs that edit

COMMANDS = {
    "sed": ["sed", "-i", "s/Tea/Coffee/"],
    "sed with backup": ["sed", "-i~", "s/Tea/Coffee/"],
    "sed copying": ["sed", "-i", "--follow-symlinks", "s/Tea/Coffee/"],
    "perl": ["perl", "-pi", "-e", "s/Tea/Coffee/"],
    "perl with backup": ["perl", "-pi~", "-e", "s/Tea/Coffee/"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_edits_by_command(home: Home, name: str) -> None:
    directory = home.directory(name)
    note = made(directory)
    run(*COMMANDS[name], note)
    home.expect(note, NEW)
    assert note.stat().st_mode & 0o777 == 0o640
    left = {path.name: path.read_bytes() for path in directory.iterdir() if path != note}
    assert left == ({"note.md~": OLD} if "backup" in name else {})


def save_by_renaming(note: Path) -> None:
    """As Python programs do: a new file, synced, renamed over, the directory synced."""
    with tempfile.NamedTemporaryFile(dir=note.parent, delete=False) as new:
        new.write(NEW)
        new.flush()
        os.fsync(new.fileno())
    os.replace(new.name, note)
    directory = os.open(note.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def save_in_place(note: Path) -> None:
    """As VS Code does."""
    descriptor = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        os.write(descriptor, NEW)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def save_by_mapping(note: Path) -> None:
    """As databases do: through a shared mapping."""
    with open(note, "r+b") as file:
        file.truncate(len(NEW))
        with mmap.mmap(file.fileno(), len(NEW)) as mapped:
            mapped[:] = NEW
            mapped.flush()


@pytest.mark.parametrize("save", [save_by_renaming, save_in_place, save_by_mapping])
def test_edits_by_program(home: Home, save: Callable[[Path], None]) -> None:
    directory = home.directory(save.__name__)
    note = made(directory)
    save(note)
    home.expect(note, NEW)
    assert [path.name for path in directory.iterdir()] == ["note.md"]


# A source tree


@pytest.fixture(scope="module")
def source(outside: Path) -> Path:
    """A real source tree: of this Python's standard library, and of the packages beside it
    where that is not enough (Debian's lacks its tests).
    """
    tree = outside / "library"
    wanted = [
        (path, tree / path.relative_to(library))
        for library in (Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib")))
        for path in sorted(library.rglob("*.py*"))
        if path.suffix in (".py", ".pyi") and "site-packages" not in path.relative_to(library).parts
    ]
    assert len(wanted) >= 1_000
    for path, copy in wanted[:TREE_FILES]:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    return tree


@pytest.mark.timeout(300)
def test_a_source_tree_in_git(home: Home, outside: Path, source: Path) -> None:
    directory = home.directory("git")
    archive = outside / "library.tar"
    run("tar", "--format=posix", "-cf", archive, "-C", outside, source.name)
    run("tar", "-xf", archive, "-C", directory)
    tree = directory / source.name
    assert differences(tree, source) == []

    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    run(*git, "init", "-q", cwd=tree)
    run(*git, "add", "-A", "--force", cwd=tree)
    run(*git, "commit", "-qm", "All of it", cwd=tree)
    assert run(*git, "status", "--porcelain", "--ignored", cwd=tree) == ""
    run(*git, "gc", "-q", cwd=tree)
    run(*git, "fsck", "--strict", "--full", cwd=tree)
    assert run(*git, "status", "--porcelain", "--ignored", cwd=tree) == ""

    clone = directory / "clone"
    run(*git, "clone", "-q", tree, clone)
    assert run(*git, "status", "--porcelain", "--ignored", cwd=clone) == ""
    assert differs_in_bytes(clone, source) == []

    (tree / "abc.py").write_bytes(NEW)
    assert run(*git, "status", "--porcelain", cwd=tree) == " M abc.py\n"
    run(*git, "checkout", "-q", "-b", "other", cwd=tree)
    run(*git, "commit", "-qam", "Another", cwd=tree)
    run(*git, "checkout", "-q", "-", cwd=tree)
    run(*git, "merge", "-q", "--no-ff", "-m", "Merged", "other", cwd=tree)
    home.expect(tree / "abc.py", NEW)

    home.daemon.stop()
    home.daemon.start()
    assert run(*git, "status", "--porcelain", "--ignored", cwd=tree) == ""
    run(*git, "fsck", "--full", cwd=tree)
    assert differs_in_bytes(clone, source) == []


def differs_in_bytes(clone: Path, original: Path) -> list[Path]:
    """The files of a clone that are not the original's, and those that are missing."""
    files = [path.relative_to(original) for path in original.rglob("*") if path.is_file()]
    there = {path.relative_to(clone) for path in clone.rglob("*") if path.is_file()}
    missing = [name for name in files if name not in there]
    same = (name for name in files if name in there)
    return missing + [
        name for name in same if (clone / name).read_bytes() != (original / name).read_bytes()
    ]


# Copies


@pytest.fixture(scope="module")
def odd(outside: Path) -> Path:
    """A small native tree with one of everything."""
    root = outside / "odd"
    (root / "folder" / "empty").mkdir(parents=True)
    (root / "folder" / "note.md").write_bytes(OLD)
    (root / "folder" / "large").write_bytes(os.urandom(300_000))
    os.link(root / "folder" / "note.md", root / "second name")
    os.link(root / "folder" / "note.md", root / "folder" / "third name")
    os.symlink("folder/note.md", root / "link")
    os.symlink("/nowhere/at all", root / "dangling")
    os.symlink("../folder", root / "folder" / "up")
    os.mkfifo(root / "fifo", 0o620)
    for name in (
        "n\u00e4me",
        "nam\u0065\u0301",
        "two\nlines",
        "*?[",
        " ",
        "-rf",
        b"\xff".decode("utf-8", "surrogateescape"),
    ):
        (root / name).write_bytes(name.encode("utf-8", "surrogateescape"))
    with open(root / "sparse", "wb") as sparse:
        sparse.write(b"begin")
        sparse.seek(40_000_000)
        sparse.write(b"end")
        sparse.truncate(50_000_000)
    (root / "empty").touch()
    (root / "secret").write_bytes(b"nobody")
    (root / "secret").chmod(0o000)
    (root / "program").write_bytes(b"#!/bin/sh\n")
    (root / "program").chmod(0o6755)
    (root / "shared").mkdir()
    (root / "shared").chmod(0o3777)
    if os.geteuid() == 0:
        os.chown(root / "second name", 12345, 54321)
        os.chown(root / "link", 1234, 4321, follow_symlinks=False)
        os.chown(root / "shared", 0, 4321)
        (root / "shared").chmod(0o3777)
        os.setxattr(root / "link", "trusted.of", b"a link", follow_symlinks=False)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(root / "socket"))
    os.setxattr(root / "folder" / "note.md", "user.author", b"me")
    os.setxattr(root / "folder" / "note.md", "user.bytes", bytes(range(256)))
    os.setxattr(root / "folder", "user.empty", b"")
    for number, path in enumerate(sorted(root.rglob("*"), reverse=True)):
        os.utime(path, ns=(1, 1_600_000_000_123_456_789 + number), follow_symlinks=False)
    os.utime(root, ns=(1, 1_000_000_001))
    return root


def copy_by_rsync(origin: Path, copy: Path) -> None:
    run("rsync", "-aHAXS", "--specials", "--devices", f"{origin}/", f"{copy}/")


def copy_by_cp(origin: Path, copy: Path) -> None:
    run("cp", "-a", origin, copy)


def copy_by_tar(origin: Path, copy: Path) -> None:
    copy.mkdir()
    archive = copy.with_name("archive.tar")
    options = ("--xattrs", "--xattrs-include=*", "--sparse", "--format=posix")
    run("tar", *options, "-cf", archive, "-C", origin, ".")
    run("tar", *options, "-xpf", archive, "-C", copy)


@pytest.mark.parametrize("copy", [copy_by_rsync, copy_by_cp, copy_by_tar])
def test_copies_there_and_back_are_the_same(
    home: Home, outside: Path, odd: Path, copy: Callable[[Path, Path], None]
) -> None:
    name = copy.__name__
    there, back = home.directory(name) / "there", outside / name / "back"
    back.parent.mkdir()
    copy(odd, there)
    expected = ["'socket' is in one alone"] if copy is copy_by_tar else []  # tar leaves them out
    assert differences(odd, there) == expected
    sparse = there / "sparse"
    assert sparse.stat().st_blocks * 512 < 1_000_000, "a hole costs nothing"
    copy(there, back)
    assert differences(odd, back) == expected
    home.daemon.stop()
    home.daemon.start()
    assert differences(odd, there) == expected


def test_rsync_finds_nothing_to_do_the_second_time(home: Home, odd: Path) -> None:
    there = home.directory("again") / "there"
    copy_by_rsync(odd, there)
    assert run("rsync", "-aHAXSi", f"{odd}/", f"{there}/") == ""
    (there / "folder" / "note.md").write_bytes(b"changed")
    run("rsync", "-aHAX", "--inplace", f"{odd}/", f"{there}/")
    assert differences(odd, there) == []


# A database beside ours

WORKER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], timeout=50, isolation_level=None)
for turn in range(int(sys.argv[2])):
    database.execute("BEGIN IMMEDIATE")
    database.execute("UPDATE counter SET n = n + 1")
    database.execute("INSERT INTO log VALUES (?, ?)", (turn, bytes(turn * 37)))
    database.execute("COMMIT")
database.close()
"""


@pytest.mark.parametrize("mode", ["delete", "wal", "truncate"])
def test_a_database_that_two_processes_share(home: Home, mode: str) -> None:
    path = home.directory(f"sqlite {mode}") / "other.db"
    database = sqlite3.connect(path, isolation_level=None)
    try:
        assert database.execute(f"PRAGMA journal_mode = {mode}").fetchone() == (mode,)
        database.execute("CREATE TABLE counter (n)")
        database.execute("CREATE TABLE log (turn, bytes)")
        database.execute("INSERT INTO counter VALUES (0)")
        workers = [
            subprocess.Popen([sys.executable, "-c", WORKER, path, str(TRANSACTIONS)])
            for _ in range(2)
        ]
        assert [worker.wait() for worker in workers] == [0, 0]
        assert database.execute("SELECT n FROM counter").fetchone() == (2 * TRANSACTIONS,)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        database.close()
    home.expect(path, path.read_bytes())
    assert [one.name for one in path.parent.iterdir()] == ["other.db"]
