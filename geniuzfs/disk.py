"""Files on a disk as they are: looked at, listed and read, by names that are bytes.

Hides: the operating system's calls and its errors. Promises: no link is followed; a file's bytes
are those of one moment, with holes told from zeros that were written, or it is Unreadable. Refuses:
whatever would hang or act when it is opened (pipes, sockets, devices) is not opened.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from geniuzfs.errors import FileTooLarge, NotFound, Unreadable
from geniuzfs.model import CHUNK

_ATTEMPTS = 3
"""At a file that is written to meanwhile."""


class Found(NamedTuple):
    """A file, directory, link or anything else, as lstat(2) sees it."""

    path: bytes
    mode: int
    uid: int
    gid: int
    size: int
    allocated: int
    """Bytes on the disk: fewer than `size` where it has holes."""
    nlink: int
    identity: tuple[int, int]
    """Device and inode number: of two names of one file the same."""
    atime_ns: int
    mtime_ns: int


class Content(NamedTuple):
    """What a file holds. `pieces`: CHUNK bytes each, by number; those without are holes."""

    size: int
    mtime_ns: int
    pieces: Mapping[int, bytes]


def look(path: bytes) -> Found:
    """What is at `path`. Raises NotFound and Unreadable."""
    with _translating(path):
        return _found(path, os.lstat(path))


def names(directory: bytes) -> list[bytes]:
    """The names in a directory, sorted. Raises NotFound and Unreadable."""
    with _translating(directory):
        return sorted(os.listdir(directory))


def target(link: bytes) -> bytes:
    """Where a link points. Raises NotFound and Unreadable."""
    with _translating(link):
        return os.readlink(link)


def attributes(path: bytes) -> dict[bytes, bytes]:
    """The extended attributes of users; none where the file system has none."""
    found: dict[bytes, bytes] = {}
    with suppress(OSError):
        for name in os.listxattr(path, follow_symlinks=False):
            if name.startswith("user."):
                with suppress(OSError):  # taken away meanwhile
                    value = os.getxattr(path, name, follow_symlinks=False)
                    found[os.fsencode(name)] = value
    return found


def attribute(path: bytes, name: bytes) -> bytes | None:
    """One of them, listed or not; None where there is none."""
    try:
        return os.getxattr(path, name)
    except OSError:
        return None


def read(path: bytes, limit: int) -> Content:
    """The bytes of the regular file at `path`. Raises FileTooLarge for more than `limit`, holes not
    counted, Unreadable when that is no file or does not hold still, and NotFound.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with _translating(path):
        descriptor = os.open(path, flags)
        try:
            for _ in range(_ATTEMPTS):
                before = os.fstat(descriptor)
                if not stat.S_ISREG(before.st_mode):
                    raise Unreadable(f"{shown(path)} is no file any more")
                pieces = dict(_pieces(descriptor, before.st_size, path, limit))
                after = os.fstat(descriptor)
                if (after.st_mtime_ns, after.st_size) == (before.st_mtime_ns, before.st_size):
                    return Content(before.st_size, before.st_mtime_ns, pieces)
        finally:
            os.close(descriptor)
    raise Unreadable(f"{shown(path)} is being written")


def top_of(given: Path) -> tuple[bytes, bytes | None]:
    """The path of what `given` names, and the name that it has; None where that is none (`.`, `..`,
    `/`): then what is in it is meant.
    """
    path = os.fsencode(given)
    name = os.path.basename(path)
    return path, None if name in (b"", b".", b"..") else name


def shown(path: bytes) -> str:
    """A path for people and for JSON; what is not UTF-8 in it as half characters."""
    return os.fsdecode(path)


def _found(path: bytes, status: os.stat_result) -> Found:
    return Found(
        path,
        status.st_mode,
        status.st_uid,
        status.st_gid,
        status.st_size,
        status.st_blocks * 512,
        status.st_nlink,
        (status.st_dev, status.st_ino),
        status.st_atime_ns,
        status.st_mtime_ns,
    )


def _pieces(descriptor: int, size: int, path: bytes, limit: int) -> Iterator[tuple[int, bytes]]:
    held = offset = 0
    while (offset := _next_data(descriptor, offset)) < size:
        number = offset // CHUNK
        part = os.pread(descriptor, min(CHUNK, size - number * CHUNK), number * CHUNK)
        held += len(part)
        if held > limit:
            raise FileTooLarge(f"{shown(path)} holds more than {limit} bytes")
        if part:
            yield number, part
        offset = (number + 1) * CHUNK


def _next_data(descriptor: int, offset: int) -> int:
    """Where the next bytes are that are no hole; beyond any file when there are none."""
    try:
        return os.lseek(descriptor, offset, os.SEEK_DATA)
    except OSError as error:
        # Some file systems can't tell; there all is data.
        return 2**63 if error.errno == errno.ENXIO else offset


@contextmanager
def _translating(path: bytes) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"{shown(path)} is not there") from error
    except OSError as error:
        raise Unreadable(f"{shown(path)} can't be read: {error.strerror}") from error
