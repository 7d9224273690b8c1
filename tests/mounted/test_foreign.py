"""What other processes commit to the database shows in the mount, soon and everywhere."""

import contextlib
import mmap
import os
import stat
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from errno import ESTALE
from pathlib import Path

import pytest

from tests.daemon import Daemon, wait_until
from tests.mounted.calls import errno_of
from tests.mounted.foreign import VISIBLE_SECONDS, Foreign, Shell, Store, seconds_until

ROUNDS = 5


class Latencies:
    """How long changes took to show: printed at the end (pytest -s, or where a test fails)."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._seconds: list[float] = []

    def measure(self, true: Callable[..., object], *values: object) -> None:
        self._seconds.append(seconds_until(true, *values))

    def tell(self) -> None:
        median, longest = statistics.median(self._seconds), max(self._seconds)
        sys.stdout.write(
            f"{self._what}: visible after {median * 1000:.1f} ms (median),"
            f" {longest * 1000:.1f} ms (longest of {len(self._seconds)})\n"
        )


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("foreign")) as mount:
        yield mount


@pytest.fixture(params=[Shell, Store], ids=["shell", "store"])
def foreign(request: pytest.FixtureRequest, daemon: Daemon) -> Iterator[Foreign]:
    with request.param(daemon.database_path) as process:
        yield process


@pytest.fixture
def latencies(request: pytest.FixtureRequest) -> Iterator[Latencies]:
    measured = Latencies(request.node.name)
    yield measured
    measured.tell()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return str(request.node.name)


def reads(path: Path, text: str) -> bool:
    try:
        return path.read_text() == text
    except FileNotFoundError:
        return False


def is_missing(path: Path) -> bool:
    return not path.exists()


def has_mode(path: Path, mode: int) -> bool:
    return stat.S_IMODE(path.stat().st_mode) == mode


def begins(mapping: mmap.mmap, text: bytes) -> bool:
    return mapping[: len(text)] == text


def handle_reads(handle: int, text: str) -> bool:
    return os.pread(handle, 1_000_000, 0) == text.encode()


def has_xattr(path: Path, value: str) -> bool:
    return "user.note" in os.listxattr(path) and os.getxattr(path, "user.note") == value.encode()


def test_new_names_show(daemon: Daemon, foreign: Foreign, name: str, latencies: Latencies) -> None:
    for number in range(ROUNDS):
        path = daemon.root / f"{name}-{number}"
        foreign.make(path.name, "made elsewhere")
        latencies.measure(reads, path, "made elsewhere")
        assert path.name in os.listdir(daemon.root)


def test_names_known_as_missing_show(
    daemon: Daemon, foreign: Foreign, name: str, latencies: Latencies
) -> None:
    for number in range(ROUNDS):
        path = daemon.root / f"{name}-{number}"
        assert not path.exists()
        foreign.make(path.name, "made elsewhere")
        latencies.measure(path.exists)
        assert path.read_text() == "made elsewhere"


def test_removed_names_go(
    daemon: Daemon, foreign: Foreign, name: str, latencies: Latencies
) -> None:
    for number in range(ROUNDS):
        path = daemon.root / f"{name}-{number}"
        path.write_bytes(b"made here")
        foreign.remove(path.name)
        latencies.measure(is_missing, path)
        assert path.name not in os.listdir(daemon.root)
        path.write_bytes(b"again")  # the name is free
        assert path.read_bytes() == b"again"


def test_renamed_files_move(
    daemon: Daemon, foreign: Foreign, name: str, latencies: Latencies
) -> None:
    for number in range(ROUNDS):
        old, new = daemon.root / f"{name}-{number}", daemon.root / f"{name}-{number}-new"
        old.write_bytes(b"text")
        assert not new.exists()
        inode = old.stat().st_ino
        foreign.rename(old.name, new.name)
        latencies.measure(new.exists)
        latencies.measure(is_missing, old)
        assert (new.stat().st_ino, new.read_bytes()) == (inode, b"text")


def test_changed_bytes_and_sizes_show(
    daemon: Daemon, foreign: Foreign, name: str, latencies: Latencies
) -> None:
    path = daemon.root / name
    path.write_text("before")
    for number in range(ROUNDS):
        text = f"changed {number} " * (number + 1)
        foreign.write(name, text)
        latencies.measure(reads, path, text)
        assert path.stat().st_size == len(text)


def test_changed_bytes_show_through_an_open_handle(
    daemon: Daemon, foreign: Foreign, name: str, latencies: Latencies
) -> None:
    path = daemon.root / name
    path.write_text("before")
    with open(path, "rb") as file:
        handle = file.fileno()
        assert os.pread(handle, 100, 0) == b"before"
        for number in range(ROUNDS):
            text = f"changed {number} " * (number + 1)
            foreign.write(name, text)
            latencies.measure(handle_reads, handle, text)
            assert os.fstat(handle).st_size == len(text)


def test_changed_bytes_show_in_a_mapping(
    daemon: Daemon, foreign: Foreign, name: str, latencies: Latencies
) -> None:
    path = daemon.root / name
    path.write_text("text 0" + " " * 10_000)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapping:
        assert mapping[:6] == b"text 0"
        for number in range(1, ROUNDS):
            foreign.write(name, f"text {number}" + " " * 10_000)
            latencies.measure(begins, mapping, b"text %d" % number)


def test_changed_modes_show(
    daemon: Daemon, foreign: Foreign, name: str, latencies: Latencies
) -> None:
    path = daemon.root / name
    path.write_bytes(b"")
    for mode in (0o600, 0o4711, 0o644, 0, 0o755):
        path.stat()
        foreign.chmod(name, mode)
        latencies.measure(has_mode, path, mode)


def test_changed_xattrs_show(
    daemon: Daemon, foreign: Foreign, name: str, latencies: Latencies
) -> None:
    path = daemon.root / name
    path.write_bytes(b"")
    for number in range(ROUNDS):
        value = f"value {number}"
        foreign.setxattr(name, "user.note", value)
        latencies.measure(has_xattr, path, value)


def test_a_file_that_was_removed_elsewhere_is_read_on_while_it_has_unsaved_bytes(
    daemon: Daemon, foreign: Foreign, name: str
) -> None:
    path = daemon.root / name
    path.write_bytes(b"saved")
    with open(path, "r+b", buffering=0) as file:
        os.pwrite(file.fileno(), b" and not", 5)
        foreign.remove(name)
        wait_until(lambda: not path.exists(), VISIBLE_SECONDS)
        assert os.pread(file.fileno(), 100, 0) == b"saved and not"
        assert os.pwrite(file.fileno(), b"!", 13) == 1
        assert os.pread(file.fileno(), 100, 0) == b"saved and not!"
    assert not path.exists()


def test_a_file_that_was_removed_elsewhere_never_reads_as_zeros(
    daemon: Daemon, foreign: Foreign, name: str
) -> None:
    path = daemon.root / name
    path.write_bytes(b"text")
    with open(path, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        foreign.remove(name)
        wait_until(lambda: not path.exists(), VISIBLE_SECONDS)
        assert errno_of(lambda: os.pread(file.fileno(), 100, 0)) == ESTALE


def test_unsaved_bytes_win_over_a_change_elsewhere(
    daemon: Daemon, foreign: Foreign, name: str
) -> None:
    path, witness = daemon.root / name, daemon.root / f"{name}-witness"
    path.write_text("before")
    with open(path, "r+b", buffering=0) as file:
        os.pwrite(file.fileno(), b"mine, whole", 0)
        foreign.write(name, "theirs")
        foreign.make(witness.name, "-")
        wait_until(witness.exists, VISIBLE_SECONDS)  # the mount has seen both
        assert os.pread(file.fileno(), 100, 0) == b"mine, whole"
    assert path.read_bytes() == b"mine, whole"
    assert path.stat().st_size == len(b"mine, whole")


def test_no_change_is_lost_while_four_writers_save(
    daemon: Daemon, foreign: Foreign, name: str, latencies: Latencies
) -> None:
    path, read = daemon.root / name, os.pipe()
    path.write_text("before")
    children = [_start_writer(daemon.root / f"{name}-{number}", read) for number in range(4)]
    os.close(read[0])
    try:
        for number in range(100):
            text = f"change {number}"
            foreign.write(name, text)
            latencies.measure(reads, path, text)
    finally:
        os.close(read[1])  # the writers end
        ends = [os.waitpid(child, 0)[1] for child in children]
    assert ends == [0] * 4
    for number in range(4):
        rounds = int((daemon.root / f"{name}-{number}").read_text().split()[0])
        assert (daemon.root / f"{name}-{number}").read_text() == f"{rounds} " * 100
        assert rounds > 0


def _start_writer(path: Path, alive: tuple[int, int]) -> int:
    """A process that saves `path` again and again and checks what it reads, until the
    other end of the pipe is closed.
    """
    child = os.fork()
    if child:
        return child
    code = 1
    with contextlib.suppress(Exception):
        os.close(alive[1])
        os.set_blocking(alive[0], False)
        rounds = 0
        while _open(alive[0]):
            rounds += 1
            path.write_text(f"{rounds} " * 100)
            assert path.read_text() == f"{rounds} " * 100
        code = 0
    os._exit(code)


def _open(pipe: int) -> bool:
    try:
        return os.read(pipe, 1) != b""
    except BlockingIOError:
        return True


def test_a_foreign_write_lock_holds_up_savers_and_no_reader(daemon: Daemon) -> None:
    # Two directories: the kernel itself lets nobody list, or look up what it does not know, where
    # a name is being made.
    root, making, text = daemon.root, daemon.root / "making", b"read on" * 10_000
    making.mkdir()
    (root / "read").write_bytes(text)
    saved: list[float] = []

    def save(number: int) -> None:
        (root / f"saved-{number}").write_bytes(b"%d" % number)
        (making / f"new-{number}").write_bytes(b"new")
        os.rename(making / f"new-{number}", making / f"renamed-{number}")
        saved.append(time.monotonic())

    for number in range(4):
        (root / f"saved-{number}").write_bytes(b"old")
    longest, count = 0.0, 0
    with Shell(daemon.database_path) as shell, open(root / "read", "rb") as file:
        shell.hold_lock()
        savers = [threading.Thread(target=save, args=(number,)) for number in range(4)]
        for saver in savers:
            saver.start()
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + 1:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert os.pread(file.fileno(), len(text), 0) == text
            read = time.monotonic()
            assert not (root / f"never seen {count}").exists()
            looked = time.monotonic()
            os.listdir(root)
            listed = time.monotonic()
            longest, count = max(longest, read - now, looked - read, listed - looked), count + 3
        assert saved == []
        released = time.monotonic()
        shell.release_lock()
        for saver in savers:
            saver.join()
    sys.stdout.write(
        f"readers beside a foreign lock: longest of {count} {longest * 1000:.1f} ms;"
        f" savers were done {(max(saved) - released) * 1000:.0f} ms after it\n"
    )
    assert longest < VISIBLE_SECONDS
    for number in range(4):
        assert (root / f"saved-{number}").read_bytes() == b"%d" % number
        assert (making / f"renamed-{number}").read_bytes() == b"new"


def test_two_mounts_of_one_folder_show_each_others_changes(
    daemon: Daemon, tmp_path: Path, latencies: Latencies
) -> None:
    second = Daemon(tmp_path, environment={"GENIUZ_HOME": str(daemon.home)})
    second.database_path = daemon.database_path
    with second:
        for number, (here, there) in enumerate(
            [(daemon.root, second.root), (second.root, daemon.root)] * 3
        ):
            name = f"both-{number}"
            assert not (there / name).exists()
            (here / name).write_text("first")
            latencies.measure(reads, there / name, "first")
            with open(there / name, "rb") as file:
                (here / name).write_text("second, longer" * 10_000)
                handle = file.fileno()
                latencies.measure(handle_reads, handle, "second, longer" * 10_000)
                assert os.pread(handle, 200_000, 0) == b"second, longer" * 10_000
            (there / name).chmod(0o600)
            latencies.measure(has_mode, here / name, 0o600)
            (here / name).rename(here / f"{name}-renamed")
            latencies.measure((there / f"{name}-renamed").exists)
            (there / f"{name}-renamed").unlink()
            latencies.measure(is_missing, here / f"{name}-renamed")
            assert is_missing(here / name)
