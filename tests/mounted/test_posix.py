"""What POSIX and Linux promise about the bytes of files and about directories."""

import fcntl
import mmap
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from errno import (
    EAGAIN,
    EEXIST,
    EFBIG,
    EINVAL,
    ENODATA,
    ENOENT,
    ENOTEMPTY,
    EOPNOTSUPP,
    EPERM,
    EXDEV,
)
from pathlib import Path

import pytest

from geniuzfs.store.connection import Database
from tests.daemon import Daemon, listed
from tests.mounted.calls import RENAME_EXCHANGE, Directory, errno_of, renameat2

MIB = 1024 * 1024
TIB = 1024**4


def in_processes(count: int, work: Callable[[int], None]) -> None:
    """Run `work(number)` in `count` processes at once; fail when one of them does."""
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            try:
                work(number)
            except BaseException:  # noqa: BLE001 - a child must not go on with the parent's test
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * count


# Bytes


def test_appends_of_several_processes_are_whole_and_none_is_lost(here: Path) -> None:
    log, lines = here / "log", 200

    def append(number: int) -> None:
        with open(log, "ab", buffering=0) as file:
            for line in range(lines):
                file.write(b"%d %d %s\n" % (number, line, b"x" * (50 * number)))

    in_processes(4, append)
    written = log.read_bytes().splitlines()
    expected = {(n, line, b"x" * (50 * n)) for n in range(4) for line in range(lines)}
    found = [line.split(b" ") for line in written]
    assert len(found) == len(expected)
    assert {(int(n), int(line), text) for n, line, text in found} == expected


@pytest.mark.parametrize("flags", [os.O_TRUNC, os.O_TRUNC | os.O_CREAT])
def test_opening_with_truncation_empties_a_file(here: Path, flags: int) -> None:
    path = here / "file"
    path.write_bytes(b"x" * 200_000)
    os.close(os.open(path, os.O_WRONLY | flags))
    assert (path.stat().st_size, path.read_bytes()) == (0, b"")


def test_holes_read_as_zeros_and_cost_nothing(shared: Daemon, here: Path) -> None:
    path = here / "sparse"
    with open(path, "wb") as file:
        for megabyte in (1, 5, 9):
            file.seek(megabyte * MIB)
            file.write(b"island")
        file.truncate(20 * MIB)
    expected = bytearray(20 * MIB)
    for megabyte in (1, 5, 9):
        expected[megabyte * MIB : megabyte * MIB + 6] = b"island"
    assert path.read_bytes() == expected
    assert path.stat().st_blocks <= 3 * 65_536 // 512
    shared.stop()
    shared.start()
    assert path.read_bytes() == expected


def test_what_was_cut_off_does_not_come_back(here: Path) -> None:
    path = here / "file"
    path.write_bytes(b"x" * 150_000)
    os.truncate(path, 70_000)
    os.truncate(path, 150_000)
    assert path.read_bytes() == b"x" * 70_000 + bytes(80_000)


def test_a_sparse_file_of_a_tebibyte_costs_nothing(shared: Daemon, here: Path) -> None:
    path, database = here / "huge", shared.database_path
    held = database.stat().st_size
    with open(path, "wb") as file:
        file.truncate(TIB)
        file.seek(TIB // 2)
        file.write(b"middle")
    assert path.stat().st_size == TIB
    assert path.stat().st_blocks <= 65_536 // 512
    assert database.stat().st_size - held < MIB
    assert database.with_name("memory.db-wal").stat().st_size < 64 * MIB
    with open(path, "rb") as file:
        file.seek(TIB // 2 - 3)
        assert file.read(12) == bytes(3) + b"middle" + bytes(3)
        file.seek(TIB - 5)
        assert file.read() == bytes(5)


def test_a_shared_mapping_is_the_file(here: Path) -> None:
    path = here / "mapped"
    path.write_bytes(b"." * 100_000)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[70_000:70_005] = b"hello"
        mapping.flush()
        assert os.pread(file.fileno(), 7, 69_999) == b".hello."
        os.pwrite(file.fileno(), b"HELLO", 70_000)
        assert mapping[69_999:70_006] == b".HELLO."


def test_what_a_mapping_held_after_close_is_saved(shared: Daemon, here: Path) -> None:
    path = here / "mapped"
    path.write_bytes(b"." * 10_000)
    with open(path, "r+b") as file:
        mapping = mmap.mmap(file.fileno(), 0)
    mapping[5_000:5_005] = b"hello"
    mapping.close()
    expected = b"." * 5_000 + b"hello" + b"." * 4_995
    assert path.read_bytes() == expected
    shared.stop()
    shared.start()
    assert path.read_bytes() == expected


def test_fsync_of_files_and_directories(here: Path) -> None:
    with open(here / "file", "wb") as file:
        file.write(b"x")
        file.flush()
        os.fsync(file.fileno())
        os.fdatasync(file.fileno())
    descriptor = os.open(here, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


# Files without a name


@pytest.mark.parametrize("size", [10, 3 * MIB + 17], ids=["small", "many chunks"])
def test_an_open_file_outlives_its_name(here: Path, size: int) -> None:
    path = here / "file"
    content = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    path.write_bytes(content)
    file = os.open(path, os.O_RDWR)
    other = os.open(path, os.O_RDONLY)
    os.unlink(path)
    path.write_bytes(b"another")
    assert os.pread(other, size + 1, 0) == content
    assert os.pwrite(file, b"!", size + 100) == 1
    assert os.pread(other, size + 200, 0) == content + bytes(100) + b"!"
    os.ftruncate(file, 5)
    os.fsync(file)
    assert os.pread(other, 100, 0) == content[:5]
    assert os.fstat(file).st_nlink == 0
    os.close(other)
    os.close(file)
    assert path.read_bytes() == b"another"


def test_a_file_without_a_name_keeps_and_takes_attributes(here: Path) -> None:
    path = here / "file"
    path.write_bytes(b"x")
    os.setxattr(path, "user.before", b"1")
    file = os.open(path, os.O_RDWR)
    os.unlink(path)
    assert os.getxattr(file, "user.before") == b"1"
    os.setxattr(file, "user.after", b"2")
    assert sorted(os.listxattr(file)) == ["user.after", "user.before"]
    os.removexattr(file, "user.before")
    assert errno_of(lambda: os.getxattr(file, "user.before")) == ENODATA
    os.fchmod(file, 0o640)
    owner = (1, 2) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    os.fchown(file, *owner)
    os.utime(file, ns=(3, 4))
    status = os.fstat(file)
    assert stat.S_IMODE(status.st_mode) == 0o640
    assert (status.st_uid, status.st_gid) == owner
    assert (status.st_atime_ns, status.st_mtime_ns) == (3, 4)
    os.close(file)


def test_hard_links_are_one_file(here: Path) -> None:
    (here / "a").write_bytes(b"one")
    os.link(here / "a", here / "b")
    assert os.path.samefile(here / "a", here / "b")
    assert os.stat(here / "a").st_nlink == 2
    (here / "b").write_bytes(b"changed")
    assert (here / "a").read_bytes() == b"changed"
    os.unlink(here / "a")
    assert ((here / "b").read_bytes(), os.stat(here / "b").st_nlink) == (b"changed", 1)
    (here / "d").mkdir()
    assert errno_of(lambda: os.link(here / "d", here / "e")) == EPERM


# Locks


@pytest.mark.parametrize("lock", [fcntl.flock, fcntl.lockf], ids=lambda lock: str(lock.__name__))
def test_locks_keep_other_processes_out(here: Path, lock: Callable[[int, int], None]) -> None:
    path = here / "file"
    path.write_bytes(b"x")

    def try_lock(number: int) -> None:
        with open(path, "r+b") as file:
            assert errno_of(lambda: lock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)) == EAGAIN

    def take_lock(number: int) -> None:
        with open(path, "r+b") as file:
            lock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)

    with open(path, "r+b") as file:
        lock(file.fileno(), fcntl.LOCK_EX)
        in_processes(2, try_lock)
        lock(file.fileno(), fcntl.LOCK_UN)
        in_processes(1, take_lock)


def test_posix_locks_are_of_bytes(here: Path) -> None:
    path = here / "file"
    path.write_bytes(b"x" * 10)

    def try_both(number: int) -> None:
        with open(path, "r+b") as file:
            flags = fcntl.LOCK_EX | fcntl.LOCK_NB
            assert errno_of(lambda: fcntl.lockf(file, flags, 5, 0)) == EAGAIN
            fcntl.lockf(file, flags, 5, 5)

    with open(path, "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 5, 0)
        in_processes(1, try_both)


# Directories


def test_a_listing_is_complete_while_others_create_and_remove(here: Path) -> None:
    count = 20_000
    names = {f"stays-{number}" for number in range(count)}
    descriptor = os.open(here, os.O_RDONLY)
    for name in names:
        os.mknod(name, stat.S_IFREG | 0o600, dir_fd=descriptor)
    churn = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, sys\n"
            "os.chdir(sys.argv[1])\n"
            "print('begun', flush=True)\n"
            "round = 0\n"
            "while True:\n"
            "    for n in range(50):\n"
            "        os.mknod(f'comes-{round}-{n}')\n"
            "    for n in range(50):\n"
            "        os.unlink(f'comes-{round}-{n}')\n"
            "    round += 1\n",
            str(here),
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert churn.stdout is not None
        assert churn.stdout.readline() == b"begun\n"
        for _ in range(3):
            listed = os.listdir(here)
            assert len(listed) == len(set(listed))
            assert names - set(listed) == set()
            assert all(name.startswith("comes-") for name in set(listed) - names)
    finally:
        churn.kill()
        churn.communicate()
        os.close(descriptor)
    assert errno_of(lambda: os.rmdir(here)) == ENOTEMPTY


def test_a_position_in_a_directory_can_be_told_and_sought(here: Path) -> None:
    for number in range(1_000):
        os.mknod(here / str(number))
    directory = Directory(here)
    before = [directory.read() for _ in range(500)]
    position = directory.tell()
    after = [directory.read() for _ in range(502)]
    assert directory.read() is None
    os.unlink(here / os.fsdecode(before[-1] or b""))
    directory.seek(position)
    assert [directory.read() for _ in range(502)] == after
    assert directory.read() is None
    directory.seek(0)
    again = [directory.read() for _ in range(1_001)]
    assert again == before[:-1] + after
    directory.close()
    assert len(set(before + after)) == 1_002


def test_a_removed_directory_that_is_open_lists_nothing(here: Path) -> None:
    (here / "directory").mkdir()
    descriptor = os.open(here / "directory", os.O_RDONLY)
    os.rmdir(here / "directory")
    assert os.listdir(descriptor) == []
    assert os.fstat(descriptor).st_nlink == 0
    assert errno_of(lambda: os.mkdir("x", dir_fd=descriptor)) == ENOENT
    os.close(descriptor)


def test_statfs_tells_of_the_disk_beneath(shared: Daemon, here: Path) -> None:
    shown, beneath = os.statvfs(here), os.statvfs(shared.home)
    assert shown.f_namemax == 255
    assert (shown.f_blocks, shown.f_frsize) == (beneath.f_blocks, beneath.f_frsize)
    assert 0 < shown.f_bavail <= shown.f_bfree <= shown.f_blocks


# Extended attributes


def test_xattrs_are_made_and_replaced_as_asked(here: Path) -> None:
    path = here / "file"
    path.write_bytes(b"")
    replace = os.XATTR_REPLACE
    assert errno_of(lambda: os.setxattr(path, "user.x", b"1", replace)) == ENODATA
    os.setxattr(path, "user.x", b"1", os.XATTR_CREATE)
    assert errno_of(lambda: os.setxattr(path, "user.x", b"2", os.XATTR_CREATE)) == EEXIST
    os.setxattr(path, "user.x", b"3", replace)
    assert os.getxattr(path, "user.x") == b"3"
    os.removexattr(path, "user.x")
    assert errno_of(lambda: os.getxattr(path, "user.x")) == ENODATA
    assert errno_of(lambda: os.removexattr(path, "user.x")) == ENODATA
    assert errno_of(lambda: os.setxattr(path, "user.", b"")) == EINVAL


@pytest.mark.parametrize("name", ["system.posix_acl_access", "system.posix_acl_default", "other.x"])
def test_lists_that_would_not_be_in_force_are_refused(here: Path, name: str) -> None:
    assert errno_of(lambda: os.getxattr(here, name)) == EOPNOTSUPP
    entry = b"\x02\x00\x00\x00\x01\x00\x07\x00\xff\xff\xff\xff"
    mask = b"\x04\x00\x05\x00\xff\xff\xff\xff\x20\x00\x05\x00\xff\xff\xff\xff"
    assert errno_of(lambda: os.setxattr(here, name, entry + mask)) == EOPNOTSUPP
    assert os.listxattr(here) == []


# Sizes and times


def test_more_content_than_a_file_may_hold_is_refused_whole(tmp_path: Path) -> None:
    # Amid a page: a write over two pages may come as two requests, of which one goes well.
    limit = MIB + 100
    with Daemon(tmp_path, environment={"GENIUZ_CONTENT_LIMIT": str(limit)}) as mount:
        path = mount.root / "file"
        path.write_bytes(b"x" * limit)
        with open(path, "r+b", buffering=0) as file:
            before = os.fstat(file.fileno())
            assert errno_of(lambda: os.pwrite(file.fileno(), b"y" * 10, limit - 5)) == EFBIG
            assert errno_of(lambda: os.pwrite(file.fileno(), b"y", limit)) == EFBIG
            after = os.fstat(file.fileno())
            assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
            assert os.pwrite(file.fileno(), b"z", 0) == 1
        assert path.read_bytes() == b"z" + b"x" * (limit - 1)
        sparse = mount.root / "sparse"
        with open(sparse, "wb", buffering=0) as file:
            file.truncate(1024 * MIB)
            os.pwrite(file.fileno(), b"end", 1024 * MIB - 3)
        assert sparse.stat().st_size == 1024 * MIB
        mount.stop()
        mount.start()
        assert path.read_bytes() == b"z" + b"x" * (limit - 1)
        assert sparse.stat().st_size == 1024 * MIB


def test_times_are_kept_to_the_nanosecond(shared: Daemon, here: Path) -> None:
    path = here / "file"
    path.write_bytes(b"")
    for times in (
        (1, 999_999_999),
        (1_234_567_890_123_456_789, 1_700_000_000_000_000_001),
        (0, 0),
        (-1_500_000_001, -1),
        (9_000_000_000_000_000_001, 9_000_000_000_000_000_002),
    ):
        os.utime(path, ns=times)
        assert (path.stat().st_atime_ns, path.stat().st_mtime_ns) == times
        shared.stop()
        shared.start()
        assert (path.stat().st_atime_ns, path.stat().st_mtime_ns) == times


def test_reading_moves_no_time(here: Path) -> None:
    path = here / "file"
    path.write_bytes(b"text")
    os.utime(path, ns=(1, 2))
    os.utime(here, ns=(3, 4))
    before = [(s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns) for s in (path.stat(), here.stat())]
    path.read_bytes()
    os.listdir(here)
    after = [(s.st_atime_ns, s.st_mtime_ns, s.st_ctime_ns) for s in (path.stat(), here.stat())]
    assert after == before


def test_a_time_set_after_the_last_write_stays(shared: Daemon, here: Path) -> None:
    path = here / "file"
    with open(path, "wb", buffering=0) as file:
        file.write(b"text")
        os.utime(file.fileno(), ns=(1, 2))
    assert path.stat().st_mtime_ns == 2
    shared.stop()
    shared.start()
    assert path.stat().st_mtime_ns == 2


def test_inode_numbers_stay_over_a_remount(shared: Daemon, here: Path) -> None:
    (here / "directory").mkdir()
    (here / "directory" / "file").write_bytes(b"")
    paths = [here, here / "directory", here / "directory" / "file"]
    before = [os.stat(path).st_ino for path in paths]
    shared.stop()
    shared.start()
    assert [os.stat(path).st_ino for path in paths] == before


# Several folders


@pytest.fixture
def two(tmp_path: Path) -> Daemon:
    """A mount, not yet begun, of two folders."""
    (tmp_path / "home" / "Work").mkdir(parents=True)
    Database.open(tmp_path / "home" / "Work" / "memory.db", create=True).close()
    return Daemon(tmp_path, alone=None)


def test_nothing_crosses_from_one_folder_to_another(two: Daemon) -> None:
    with two as mount:
        one, other = mount.root / "My memory", mount.root / "Work"
        assert listed(mount.root) == ["My memory", "Work"]
        (one / "file").write_bytes(b"x")
        (other / "file").write_bytes(b"y")
        assert errno_of(lambda: os.rename(one / "file", other / "moved")) == EXDEV
        assert errno_of(lambda: os.link(one / "file", other / "moved")) == EXDEV
        swap = errno_of(lambda: renameat2(one / "file", other / "file", RENAME_EXCHANGE))
        assert swap == EXDEV
        assert ((one / "file").read_bytes(), (other / "file").read_bytes()) == (b"x", b"y")


def test_files_of_two_folders_with_one_number_are_told_apart(two: Daemon) -> None:
    with two as mount:
        for name in ("My memory", "Work"):
            (mount.root / name / "file").write_text(name)
        numbers = [os.stat(mount.root / name / "file").st_ino for name in ("My memory", "Work")]
        assert numbers[0] != numbers[1]
        assert numbers[0] % 2**36 == numbers[1] % 2**36
        assert max(numbers) < 2**53
        mount.stop()
        mount.start()
        for name, number in zip(("My memory", "Work"), numbers, strict=True):
            assert (mount.root / name / "file").read_text() == name
            assert os.stat(mount.root / name / "file").st_ino == number


def test_the_directory_of_folders_holds_nothing_else(two: Daemon) -> None:
    with two as mount:
        root = mount.root
        (root / "Work" / "file").write_bytes(b"")
        for refused in (
            lambda: (root / "new").write_bytes(b""),
            lambda: os.mknod(root / "new"),
            lambda: os.symlink("Work", root / "new"),
            lambda: os.rename(root / "Work", root / "My memory" / "Work"),
            lambda: os.rename(root / "Work" / "file", root / "file"),
            lambda: os.link(root / "Work" / "file", root / "file"),
            lambda: os.chmod(root, 0o777),
            lambda: os.setxattr(root, "user.x", b""),
        ):
            assert errno_of(refused) == EPERM
        assert errno_of(lambda: os.unlink(root / "new")) == ENOENT
        assert listed(root) == ["My memory", "Work"]
        descriptor = os.open(root, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
