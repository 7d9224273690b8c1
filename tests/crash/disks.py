"""Disks of a test's own: one that is small, and one whose power can be cut.

They hide how a disk is made and taken away again (tmpfs, ext4 on a loop device).
"""

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from geniuzfs.folders.mounts import mount_at

_EXT4_IOC_SHUTDOWN = 0x8004587D
_NOT_EVEN_THE_JOURNAL = 2


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[None]:
    """A disk of `size` (as tmpfs takes it) at `place`."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to mount a disk")
    place.mkdir(parents=True, exist_ok=True)
    _run("mount", "-t", "tmpfs", "-o", f"size={size}", "geniuzfs-test", str(place))
    try:
        yield
    finally:
        _run("umount", "--lazy", str(place))


def enlarge(place: Path, size: str) -> None:
    """Make the small disk at `place` larger."""
    _run("mount", "-o", f"remount,size={size}", str(place))


class Ext4:
    """An ext4 of its own at `place`, with a journal. `with Ext4(directory, place) as disk`."""

    def __init__(self, directory: Path, place: Path) -> None:
        if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
            pytest.skip("needs root and mkfs.ext4: apt-get install e2fsprogs")
        self._image = directory / "disk.img"
        self._place = place

    def cut_power(self) -> None:
        """From here on nothing reaches the disk: not what was written and not synced, and not
        the journal. Whoever writes gets EIO.
        """
        descriptor = os.open(self._place, os.O_RDONLY)
        try:
            mode = struct.pack("I", _NOT_EVEN_THE_JOURNAL)
            fcntl.ioctl(descriptor, _EXT4_IOC_SHUTDOWN, mode)
        finally:
            os.close(descriptor)

    def fail(self) -> None:
        """Have ext4 find an error, upon which it becomes read-only, as disks do that die."""
        mounted = mount_at(self._place)
        assert mounted is not None
        Path(f"/sys/fs/ext4/{Path(mounted.source).name}/trigger_fs_error").write_text("1")

    def power_up(self) -> None:
        """Mount it anew, after its journal was replayed."""
        _run("umount", str(self._place))
        self._mount()

    def _mount(self) -> None:
        _run("mount", "-o", "loop,errors=remount-ro", str(self._image), str(self._place))

    def __enter__(self) -> "Ext4":
        self._place.mkdir(parents=True, exist_ok=True)
        with open(self._image, "wb") as image:
            image.truncate(256 * 1024 * 1024)
        _run("mkfs.ext4", "-qF", str(self._image))
        try:
            self._mount()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"needs a loop device: {error.stderr.strip()}")
        return self

    def __exit__(self, *_: object) -> None:
        if mount_at(self._place) is not None:
            _run("umount", "--lazy", str(self._place))
        self._image.unlink()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
