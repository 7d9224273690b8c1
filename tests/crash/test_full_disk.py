"""A disk that is full, or has become read-only: the old text stays, and is still read."""

import errno
import functools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.disks import Ext4, enlarge, small_disk
from tests.crash.driving import stored
from tests.daemon import Daemon, listed, wait_until

KIB = 1024
REFUSED = (errno.EROFS, errno.EIO)
REPORTED = " ERROR geniuzfs.fs."
"""The daemon may say that it could not save."""


def save(path: Path, text: bytes, *, flags: int = os.O_TRUNC, sync: bool = False) -> int:
    """Save as an editor does; the first error that the kernel gives, or 0."""
    failed = 0
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
        try:
            view = memoryview(text)
            while view:
                view = view[os.write(descriptor, view) :]
            if sync:
                os.fsync(descriptor)
        except OSError as error:
            failed = error.errno or -1
        finally:
            os.close(descriptor)
    except OSError as error:
        return failed or error.errno or -1
    return failed


def fill(root: Path, size: int) -> list[Path]:
    """New files of `size` until one can't be saved; those that were."""
    saved: list[Path] = []
    while True:
        path = root / f"fill {size} {len(saved)}"
        failed = save(path, os.urandom(size), sync=len(saved) % 2 == 0)
        if failed:
            assert failed == errno.ENOSPC
            return saved
        saved.append(path)
        assert len(saved) < 2000, "the disk does not fill"


def error_of(act: Callable[[], object]) -> int:
    """The error that the kernel answers with, or 0."""
    try:
        act()
    except OSError as error:
        return error.errno or -1
    return 0


def read_anew(path: Path) -> bytes:
    """The file's bytes from the daemon, not those that the kernel keeps."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        return os.pread(descriptor, 10_000_000, 0)
    finally:
        os.close(descriptor)


def texts(mount: Daemon) -> dict[Path, bytes]:
    return {mount.root / f"old {size}": os.urandom(size) for size in (10, 3 * KIB, 300 * KIB)}


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Daemon]:
    """A mount whose data lies on a disk of 24 MiB."""
    daemon = Daemon(tmp_path, expected_log=REPORTED)
    with small_disk(daemon.home, "24m"), daemon:
        yield daemon


def test_on_a_full_disk_every_file_keeps_its_old_text(small: Daemon) -> None:
    old = texts(small)
    for path, text in old.items():
        assert save(path, text) == 0
    for size in (3000 * KIB, 900 * KIB, 60 * KIB, 2 * KIB):
        fill(small.root, size)
    for path, text in old.items():
        for flags in (os.O_TRUNC, 0, os.O_APPEND):
            for sync in (False, True):
                failed = save(path, os.urandom(400 * KIB), flags=flags, sync=sync)
                assert failed == errno.ENOSPC
                assert path.read_bytes() == text
                assert read_anew(path) == text
                assert path.stat().st_size == len(text)
    assert small.stop() == 0
    found = stored(small.database_path)
    assert all(found[path.name] == text for path, text in old.items())
    small.start()


def test_on_a_full_disk_removing_makes_room_for_saving(small: Daemon) -> None:
    filled = fill(small.root, 300 * KIB)
    fill(small.root, 2 * KIB)
    for path in filled[: len(filled) // 2]:
        path.unlink()
    for path in filled[len(filled) // 2 :]:
        text = os.urandom(200 * KIB)
        assert save(path, text, sync=True) == 0
        assert read_anew(path) == text


def test_names_and_attributes_too_are_refused_whole_when_nothing_is_left(small: Daemon) -> None:
    (small.root / "note").write_bytes(b"text")
    fill(small.root, 60 * KIB)
    value = os.urandom(60 * KIB)

    def make(directory: Path) -> None:
        directory.mkdir()
        os.setxattr(directory, "user.note", value)

    made = (small.root / f"directory {number}" for number in range(2000))
    failed = next(filter(None, (error_of(functools.partial(make, one)) for one in made)))
    assert failed == errno.ENOSPC
    assert read_anew(small.root / "note") == b"text"
    names = set(listed(small.root))
    assert small.stop() == 0
    assert set(stored(small.database_path)) == names
    small.start()


def test_with_room_again_saving_goes_on(small: Daemon) -> None:
    old = texts(small)
    for path, text in old.items():
        assert save(path, text) == 0
    fill(small.root, 900 * KIB)
    fill(small.root, 2 * KIB)
    enlarge(small.home, "64m")
    for path in old:
        text = os.urandom(2000 * KIB)
        assert save(path, text, sync=True) == 0
        assert read_anew(path) == text


def test_a_write_that_found_no_room_can_be_tried_again_through_the_same_handle(
    small: Daemon,
) -> None:
    note = os.open(small.root / "note", os.O_RDWR | os.O_CREAT)
    os.write(note, b"begin ")
    os.fsync(note)
    fill(small.root, 900 * KIB)
    fill(small.root, 2 * KIB)
    text = os.urandom(500 * KIB)
    assert error_of(lambda: os.pwrite(note, text, 6)) == errno.ENOSPC
    os.fsync(note)
    assert read_anew(small.root / "note") == b"begin "
    enlarge(small.home, "64m")
    written = os.pwrite(note, text, 6)
    os.fsync(note)
    os.close(note)
    assert read_anew(small.root / "note") == b"begin " + text[:written]


def test_a_daemon_killed_on_a_full_disk_comes_back_with_every_file(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path, expected_log=REPORTED)
    with small_disk(daemon.home, "24m"), daemon as mount:
        old = texts(mount)
        for path, text in old.items():
            assert save(path, text) == 0
        fill(mount.root, 900 * KIB)
        fill(mount.root, 2 * KIB)
        mount.kill()
        mount.start()
        assert all(read_anew(path) == text for path, text in old.items())


@pytest.fixture
def failing(tmp_path: Path) -> Iterator[tuple[Daemon, Ext4]]:
    """A mount, and the disk beneath it that is about to fail. The disk ends sound again."""
    daemon = Daemon(tmp_path, expected_log=REPORTED)
    with Ext4(tmp_path, daemon.home) as disk, daemon as mount:
        yield mount, disk
        mount.kill()
        disk.power_up()
        mount.start()


def test_after_a_save_has_failed_readers_see_what_was_there_before(
    failing: tuple[Daemon, Ext4],
) -> None:
    """Also where the kernel has been told of the new bytes and time in between."""
    mount, disk = failing
    text = os.urandom(100 * KIB)
    note = mount.root / "note"
    note.write_bytes(text)
    before = note.stat()
    descriptor = os.open(note, os.O_RDWR)
    disk.fail()
    os.write(descriptor, text[::-1])
    assert os.pread(descriptor, len(text), 0) == text[::-1]
    assert os.fstat(descriptor).st_mtime_ns > before.st_mtime_ns
    assert error_of(lambda: os.close(descriptor)) in REFUSED
    assert note.read_bytes() == text
    wait_until(lambda: note.stat().st_mtime_ns == before.st_mtime_ns)


def test_a_truncate_that_fails_leaves_the_text(failing: tuple[Daemon, Ext4]) -> None:
    mount, disk = failing
    text = os.urandom(100 * KIB)
    note = mount.root / "note"
    note.write_bytes(text)
    disk.fail()
    assert error_of(lambda: os.truncate(note, 5)) in REFUSED
    assert read_anew(note) == text
    assert note.stat().st_size == len(text)


def test_on_a_disk_that_became_read_only_nothing_is_lost_and_everything_is_read(
    failing: tuple[Daemon, Ext4],
) -> None:
    mount, disk = failing
    old = texts(mount)
    for path, text in old.items():
        assert save(path, text, sync=True) == 0
    disk.fail()
    for path in old:
        assert save(path, os.urandom(5000), sync=True) in REFUSED
        assert save(path, os.urandom(5000), flags=os.O_APPEND) in REFUSED
        assert error_of(path.unlink) in REFUSED
        assert error_of(functools.partial(path.rename, path.with_name("away"))) in REFUSED
    assert error_of((mount.root / "new").mkdir) in REFUSED
    assert save(mount.root / "new", b"text") in REFUSED
    assert set(listed(mount.root)) == {path.name for path in old}
    assert all(read_anew(path) == text for path, text in old.items())
    mount.kill()
    disk.power_up()
    mount.start()
    assert all(read_anew(path) == text for path, text in old.items())
