"""Mounts begin, end and fail as their commands say; whatever ends one, nothing is lost."""

import contextlib
import functools
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from errno import EACCES, EIO, ENOENT, EROFS
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

import geniuzfs
from geniuzfs.folders.mounts import mount_at
from geniuzfs.fs.faults import is_news
from geniuzfs.model import ROOT
from geniuzfs.store import content, tree
from geniuzfs.store.connection import Database
from tests.crash.tracing import Trace
from tests.daemon import Daemon, listed, wait_until
from tests.mounted.calls import NOBODY, errno_of, in_flight
from tests.mounted.foreign import Shell

STOPS = int(os.environ.get("GENIUZ_TEST_STOPS", "5"))
"""How often each kind of stop is tried. A release is tested with 50."""

IDLE_SECONDS = 3.0
IDLE_CPU_SECONDS = 0.02


class Commands:
    """The commands of the program, with a data directory and a mount point of their own."""

    def __init__(self, directory: Path, *, prefix: tuple[str, ...] = (sys.executable,)) -> None:
        self.home = directory / "home"
        self.root = directory / "Memory"
        self.environment = {
            **os.environ,
            "HOME": str(directory),
            "GENIUZ_HOME": str(self.home),
            "GENIUZ_MOUNT": str(self.root),
        }
        self._prefix = prefix

    def run(self, *words: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self._prefix, "-m", "geniuzfs", *map(str, words)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def succeed(self, *words: str | Path) -> str:
        """Standard output of a command that must go well."""
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    def fail(self, code: int, *words: str | Path) -> str:
        """Standard error, one line, of a command that must end with `code`."""
        done = self.run(*words)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        line, *more = done.stderr.splitlines()
        assert (line[:10], more) == ("geniuzfs: ", []), done.stderr
        return line


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    """Nothing is made yet; whatever is mounted at the end is unmounted."""
    made = Commands(tmp_path)
    yield made
    while mount_at(made.root) is not None:
        subprocess.run(["umount", "--lazy", "--no-canonicalize", str(made.root)], check=True)
    wait_until(lambda: not _daemons_of(made.home))


def _daemons_of(home: Path) -> list[int]:
    """The processes that have the database of `home` open."""
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # it has ended meanwhile
            links = [os.readlink(link) for link in (process / "fd").iterdir()]
            if str(home / "memory.db") in links:
                found.append(int(process.name))
    return found


# The commands


def test_mount_goes_to_the_background_and_works_at_once(commands: Commands) -> None:
    said = commands.succeed("mount")
    assert str(commands.root) in said
    assert len(said.splitlines()) == 1
    note = commands.root / "My memory" / "note.md"
    note.write_bytes(b"at once")
    assert commands.succeed("umount") == ""
    assert mount_at(commands.root) is None
    commands.succeed("mount")  # the first daemon may not be quite gone
    assert note.read_bytes() == b"at once"
    commands.succeed("umount")


def test_mount_makes_its_mount_point_and_takes_one_that_is_named(
    commands: Commands, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "some where" / "else"
    said = commands.succeed("mount", "--in", "my MEMORY", elsewhere)
    assert str(elsewhere) in said
    (elsewhere / "note").write_bytes(b"x")
    commands.succeed("umount", elsewhere)
    assert os.listdir(elsewhere) == []


def test_a_place_that_is_mounted_is_not_mounted_again(commands: Commands) -> None:
    commands.succeed("mount")
    assert "mounted already" in commands.fail(7, "mount")
    assert "mounted already" in commands.fail(7, "mount", "--foreground")
    assert (commands.root / "My memory").is_dir()


def test_a_file_is_no_mount_point(commands: Commands) -> None:
    commands.root.write_bytes(b"a file")
    assert str(commands.root) in commands.fail(7, "mount")
    assert commands.root.read_bytes() == b"a file"


def test_a_folder_that_is_missing_is_named_with_those_there_are(commands: Commands) -> None:
    line = commands.fail(1, "mount", "--in", "Wrok")
    assert "'Wrok'" in line
    assert "'My memory'" in line
    assert mount_at(commands.root) is None


@pytest.mark.parametrize("beneath", ["", "deeper", "deeper/still"])
def test_a_mount_may_not_cover_the_data_directory(commands: Commands, beneath: str) -> None:
    commands.home = commands.root / beneath
    commands.environment["GENIUZ_HOME"] = str(commands.home)
    assert str(commands.home) in commands.fail(2, "mount")
    assert mount_at(commands.root) is None


def test_a_mount_may_not_cover_the_data_directory_by_another_name(
    commands: Commands, tmp_path: Path
) -> None:
    commands.root.mkdir()
    (tmp_path / "link").symlink_to(commands.root)
    commands.environment["GENIUZ_HOME"] = str(tmp_path / "link" / "home")
    commands.fail(2, "mount")
    assert mount_at(commands.root) is None


def test_a_data_directory_on_a_fuse_file_system_is_refused(
    commands: Commands, tmp_path: Path
) -> None:
    with Daemon(tmp_path / "outer") as outer:
        commands.environment["GENIUZ_HOME"] = str(outer.root / "home")
        assert "fuse.geniuzfs" in commands.fail(2, "mount")
        (tmp_path / "link").symlink_to(outer.root)
        commands.environment["GENIUZ_HOME"] = str(tmp_path / "link" / "home")
        assert "fuse.geniuzfs" in commands.fail(2, "mount")
        assert listed(outer.root) == []


def test_what_is_not_mounted_is_not_unmounted(commands: Commands) -> None:
    commands.root.mkdir()
    assert "not mounted" in commands.fail(7, "umount")


def test_a_mount_in_use_stays_unless_it_is_unmounted_lazily(mount: Daemon, tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    with open(mount.root / "log", "wb", buffering=0) as file:
        file.write(b"before, ")
        assert "busy" in commands.fail(7, "umount", mount.root)
        file.write(b"between, ")
        commands.succeed("umount", "--lazy", mount.root)
        assert os.listdir(mount.root) == []
        file.write(b"after")
        assert mount.process is not None
        assert mount.process.poll() is None
    assert mount.ended() == 0
    mount.start()
    assert (mount.root / "log").read_bytes() == b"before, between, after"


def test_what_a_killed_daemon_left_is_cleared_at_the_next_start(commands: Commands) -> None:
    commands.succeed("mount")
    note = commands.root / "My memory" / "note.md"
    note.write_bytes(b"saved")
    (daemon,) = _daemons_of(commands.home)
    os.kill(daemon, 9)
    wait_until(lambda: errno_of(lambda: os.statvfs(commands.root)) != 0)
    assert mount_at(commands.root) is not None
    assert str(commands.root) in commands.succeed("status")
    commands.succeed("mount")
    assert note.read_bytes() == b"saved"
    (daemon,) = _daemons_of(commands.home)
    os.kill(daemon, 9)
    wait_until(lambda: errno_of(lambda: os.statvfs(commands.root)) != 0)
    commands.succeed("umount")
    assert mount_at(commands.root) is None


def test_a_read_only_mount_refuses_every_change(tmp_path: Path) -> None:
    with Daemon(tmp_path) as mount:
        (mount.root / "note").write_bytes(b"text")
    with Daemon(tmp_path, "--read-only") as mount:
        note, new = mount.root / "note", mount.root / "new"
        assert note.read_bytes() == b"text"
        calls: list[Callable[[], object]] = [
            lambda: new.write_bytes(b""),
            lambda: note.write_bytes(b""),
            lambda: os.truncate(note, 0),
            lambda: os.mkdir(new),
            lambda: os.symlink("note", new),
            lambda: os.link(note, new),
            lambda: os.rename(note, new),
            lambda: os.unlink(note),
            lambda: os.chmod(note, 0o600),
            lambda: os.utime(note),
            lambda: os.setxattr(note, "user.x", b""),
        ]
        assert [errno_of(call) for call in calls] == [EROFS] * len(calls)
        assert listed(mount.root) == ["note"]


def test_a_data_directory_on_a_read_only_disk_is_told_in_one_line(commands: Commands) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to make a mount read-only")
    commands.succeed("keep", "a memory")
    bind = ["mount", "--bind", str(commands.home), str(commands.home)]
    subprocess.run(bind, check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(commands.home)], check=True)
        assert "Read-only file system" in commands.fail(5, "mount").splitlines()[-1]
        assert mount_at(commands.root) is None
        assert "Read-only file system" in commands.run("keep", "another").stderr
    finally:
        subprocess.run(["umount", "--lazy", str(commands.home)], check=True)
    assert "My memory" in commands.succeed("status")


def test_status_shows_mounts_and_counts(commands: Commands) -> None:
    commands.succeed("mount")
    folder = commands.root / "My memory"
    (folder / "directory").mkdir()
    (folder / "directory" / "note").write_bytes(b"12345")
    told = json.loads(commands.succeed("status", "--json"))
    assert told["mounts"] == [str(commands.root)]
    (shown,) = told["folders"]
    assert shown["name"] == "My memory"
    assert shown["path"] == str(commands.home / "memory.db")
    # The directory counts and so does the top one.
    assert (shown["files"], shown["directories"], shown["bytes"]) == (1, 2, 5)
    assert shown["due"] == 1
    assert shown["database_bytes"] > 0
    lines = commands.succeed("status").splitlines()
    assert lines[0] == f"mounted at {commands.root}"
    assert lines[1].startswith("My memory: 1 files, 2 directories, 5 bytes")
    commands.succeed("umount")
    assert json.loads(commands.succeed("status", "--json"))["mounts"] == []
    assert commands.succeed("status").startswith("nothing is mounted\n")


# An ordinary user


@pytest.fixture
def ordinary() -> Iterator[Commands]:
    """The commands as a user without rights, in a directory of that user's."""
    directory = Path(tempfile.mkdtemp(prefix="geniuz-ordinary-"))
    os.chown(directory, NOBODY, NOBODY)
    made = Commands(directory, prefix=_python_of_an_ordinary_user())
    made.environment["PYTHONPATH"] = os.pathsep.join(_import_paths())
    made.environment["PYTHONDONTWRITEBYTECODE"] = "1"
    yield made
    while mount_at(made.root) is not None:
        subprocess.run(["umount", "--lazy", "--no-canonicalize", str(made.root)], check=True)
    wait_until(lambda: not _daemons_of(made.home))
    shutil.rmtree(directory)


def _import_paths() -> list[str]:
    """Where this process imports the program and what it needs from."""
    return sorted({str(Path(module.__file__ or "").parents[1]) for module in (geniuzfs, apsw)})


def _python_of_an_ordinary_user() -> tuple[str, ...]:
    """The command that begins Python as a user without rights. Skips where there is none."""
    if os.geteuid() != 0:
        return (sys.executable,)
    become = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")
    for missing in [name for name in ("setpriv", "fusermount3") if not shutil.which(name)]:
        pytest.skip(f"{missing} is missing: install util-linux and fuse3")
    if os.stat("/dev/fuse").st_mode & 0o006 != 0o006:
        os.chmod("/dev/fuse", 0o666)  # as udev sets it
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_import_paths()), "HOME": "/"}
    # Not only to be begun: the program begins a daemon with it.
    probe = (
        "import subprocess, sys, geniuzfs.fs.mount, geniuzfs.cli.mount;"
        "subprocess.run([sys.executable, '-c', ''], check=True)"
    )
    reasons = []
    for python in (sys.executable, "/usr/bin/python3"):
        tried = subprocess.run(
            [*become, python, "-Bc", probe],
            env=environment,
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        if tried.returncode == 0:
            return (*become, python)
        reasons.append(f"{python}: {(tried.stderr.strip().splitlines() or ['?'])[-1]}")
    pytest.skip(f"no Python here that an ordinary user can run: {'; '.join(reasons)}")


def test_a_data_directory_that_its_owner_may_not_write_is_told_in_one_line(
    ordinary: Commands,
) -> None:
    ordinary.succeed("keep", "a memory")
    ordinary.home.chmod(0o500)
    try:
        assert "Permission denied" in ordinary.fail(5, "mount")
        assert mount_at(ordinary.root) is None
    finally:
        ordinary.home.chmod(0o700)
    ordinary.succeed("mount")


def test_an_ordinary_user_mounts_works_and_unmounts(ordinary: Commands) -> None:
    ordinary.succeed("mount")
    note = ordinary.root / "My memory" / "note.md"
    work = f"from pathlib import Path; Path({str(note)!r}).write_bytes(b'mine')"
    environment = ordinary.environment
    run = [*ordinary._prefix, "-c", work]
    assert subprocess.run(run, env=environment, check=False, cwd="/").returncode == 0
    if os.geteuid() == 0:  # not even root may look in
        assert errno_of(lambda: os.stat(note)) == EACCES
    assert "mounted already" in ordinary.fail(7, "mount")
    ordinary.succeed("umount")
    assert mount_at(ordinary.root) is None
    ordinary.succeed("mount", "--read-only")
    run[-1] = f"import sys; sys.exit(open({str(note)!r}).read() != 'mine')"
    assert subprocess.run(run, env=environment, check=False, cwd="/").returncode == 0
    ordinary.succeed("umount", "--lazy")
    assert "not found" in ordinary.fail(7, "umount") or mount_at(ordinary.root) is None


# Stopping


class Load(NamedTuple):
    """A process that saves file after file in the mount and tells of each that is closed."""

    process: int
    told: int

    def saved(self) -> int:
        """End it; how many files it saved since it was last asked."""
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        with os.fdopen(self.told, "rb") as told:
            return len(told.read())


def start_load(directory: Path, name: str) -> Load:
    """Begins to save `name`-1, `name`-2, … in `directory`; ends with the mount, or when killed."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(told)
            os.chdir(directory)
            number = 0
            while True:
                number += 1
                Path(f"{name}-{number}").write_bytes(b"%d " % number * 500)
                os.write(tell, b".")
        os._exit(0)
    os.close(tell)
    return Load(child, told)


def content_of(mount: Daemon, name: str) -> bytes | None:
    """What the database has under a name in the top directory."""
    database = Database.open(mount.database_path)
    try:
        found = tree.child(database.view, ROOT, name.encode())
        return None if found is None else content.read(database.view, found.number)
    finally:
        database.close()


def terminate(mount: Daemon) -> None:
    assert mount.process is not None
    mount.process.terminate()


def unmount_lazily(mount: Daemon) -> None:
    subprocess.run(["umount", "--lazy", str(mount.root)], check=True)


HOW = pytest.mark.parametrize(
    "end", [terminate, unmount_lazily], ids=["SIGTERM", "unmounted lazily"]
)


@HOW
def test_it_stops_clean_when_idle(tmp_path: Path, end: Callable[[Daemon], None]) -> None:
    with Daemon(tmp_path) as mount:
        for number in range(STOPS):
            (mount.root / f"note-{number}").write_bytes(b"saved")
            end(mount)
            assert mount.ended() == 0
            assert mount_at(mount.root) is None
            mount.check()
            assert content_of(mount, f"note-{number}") == b"saved"
            mount.start()


@HOW
def test_it_stops_clean_under_load(tmp_path: Path, end: Callable[[Daemon], None]) -> None:
    with Daemon(tmp_path) as mount:
        for turn in range(STOPS):
            loads = [start_load(mount.root, f"{turn}-{number}") for number in range(3)]
            file = os.open(mount.root / f"open-{turn}", os.O_RDWR | os.O_CREAT)
            os.write(file, b"never closed" * 10_000)
            for load in loads:  # each has saved something and goes on
                assert os.read(load.told, 1) == b"."
            end(mount)
            if end is unmount_lazily:  # it serves until the last of them is done
                for load in loads:
                    assert os.read(load.told, 1) == b"."
                os.close(file)
                saved = [load.saved() + 2 for load in loads]
                assert mount.ended() == 0
            else:
                assert mount.ended() == 0
                saved = [load.saved() + 1 for load in loads]
                with contextlib.suppress(OSError):  # there is no mount any more
                    os.close(file)
            assert mount_at(mount.root) is None
            mount.check()
            assert content_of(mount, f"open-{turn}") == b"never closed" * 10_000
            for number, count in enumerate(saved):
                for one in {1, count // 2 or 1, count}:
                    assert content_of(mount, f"{turn}-{number}-{one}") == b"%d " % one * 500
            mount.start()


@HOW
def test_it_stops_clean_with_a_handler_in_flight(
    tmp_path: Path, end: Callable[[Daemon], None]
) -> None:
    with Daemon(tmp_path) as mount:
        for turn in range(STOPS):
            file = os.open(mount.root / f"open-{turn}", os.O_RDWR | os.O_CREAT)
            os.write(file, b"never closed")
            with Shell(mount.database_path) as shell:
                shell.hold_lock()
                load = start_load(mount.root, f"load-{turn}")  # its first file waits for the lock
                wait_until(functools.partial(in_flight, load.process))
                end(mount)
                if end is terminate:
                    wait_until(functools.partial(_told, mount, turn))
                shell.release_lock()
                if end is unmount_lazily:
                    assert os.read(load.told, 1) == b"."
                    os.close(file)
                    saved = load.saved() + 1
                    assert mount.ended() == 0
                else:
                    assert mount.ended() == 0
                    saved = load.saved()
                    with contextlib.suppress(OSError):
                        os.close(file)
            mount.check()
            assert content_of(mount, f"open-{turn}") == b"never closed"
            for one in range(1, saved + 1):
                assert content_of(mount, f"load-{turn}-{one}") == b"%d " % one * 500
            mount.start()


def _told(mount: Daemon, turn: int) -> bool:
    """Whether the daemon has taken notice of its end for the `turn`th time."""
    return mount.log().count("SIGTERM") > turn


def test_further_signals_while_it_saves_do_no_harm(tmp_path: Path) -> None:
    with Daemon(tmp_path) as mount, Shell(mount.database_path) as shell:
        process = mount.process
        assert process is not None
        file = os.open(mount.root / "open", os.O_RDWR | os.O_CREAT)
        os.write(file, b"never closed")
        shell.hold_lock()
        process.terminate()
        wait_until(functools.partial(_told, mount, 0))
        for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP] * 20:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.005)
            process.send_signal(number)
        shell.release_lock()
        assert mount.ended() == 0
        assert mount_at(mount.root) is None
        with contextlib.suppress(OSError):
            os.close(file)
        assert content_of(mount, "open") == b"never closed"


def test_an_answer_that_nobody_waits_for_any_more_is_no_error() -> None:
    # As pyfuse3 logs it: seen twice in 50 lazy unmounts under load.
    said = "fuse_release(): fuse_reply_* failed with %s"
    for code, news in ((ENOENT, False), (EIO, True)):
        record = logging.LogRecord(
            "pyfuse3", logging.ERROR, "", 0, said, (os.strerror(code),), None
        )
        assert is_news(record) is news


def test_an_idle_mount_takes_no_processor_time(mount: Daemon) -> None:
    (mount.root / "note").write_bytes(b"x")
    os.listdir(mount.root)
    process = mount.process
    assert process is not None
    before = _cpu_seconds(process.pid)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(IDLE_SECONDS)
    used = _cpu_seconds(process.pid) - before
    sys.stdout.write(f"idle: {used * 1000:.0f} ms of CPU in {IDLE_SECONDS:.0f} s\n")
    assert used < IDLE_CPU_SECONDS


def _cpu_seconds(process: int) -> float:
    """User and system time, after proc(5): fields 14 and 15, counted behind the name."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_it_ends_in_good_order_when_the_kernel_says_the_connection_is_aborted(
    tmp_path: Path,
) -> None:
    """As it does once in some hundred lazy unmounts under load, where it mostly says ENODEV."""
    with Daemon(tmp_path) as mount:
        assert mount.process is not None
        file = os.open(mount.root / "open", os.O_RDWR | os.O_CREAT)
        os.write(file, b"never closed")
        fault = "read:error=ECONNABORTED:when=1"
        # The device's alone: the file that was made wakes a read of inotify as well.
        with Trace(tmp_path, mount.process.pid, inject=fault, only="/dev/fuse"):
            with contextlib.suppress(OSError):  # it is not answered
                os.stat(mount.root / "missing")
            assert mount.ended() == 0
        with contextlib.suppress(OSError):  # there is no mount any more
            os.close(file)
        assert content_of(mount, "open") == b"never closed"
