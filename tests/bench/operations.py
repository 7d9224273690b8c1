"""What a client does: each operation prepares its own files, then returns the step to repeat.

A client's working directory is its own, and names are relative to it, so that a step looks up one
path component and no more. Every save differs from the one before: SQLite writes nothing at all
for an UPDATE with the same bytes. "uncached" means that the request reaches the server whatever
the kernel's caches hold; on the native directory it means a read from the disk.
"""

import ctypes
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SMALL_BYTES = 2048
LARGE_BYTES = 2 << 20
CHUNK_BYTES = 128 << 10
OWN_FILES = 16
FORGET_S = 0.3

AT_EMPTY_PATH = 0x1000
AT_STATX_FORCE_SYNC = 0x2000
STATX_BASIC_STATS = 0x7FF
STATX_BYTES = 256
DROP_CACHES = Path("/proc/sys/vm/drop_caches")

LINE = b"The quick brown fox jumps over the lazy dog, and nobody minds.\n"

Step = Callable[[int], object]


@dataclass(frozen=True)
class Many:
    """The directory of many empty files that all clients of a target read, and their number."""

    path: str
    entries: int


@dataclass(frozen=True)
class Operation:
    """`prepare` runs untimed in the client's own directory; `once`: one step is all of a round."""

    name: str
    prepare: Callable[[Many], Step]
    once: bool = False


def text(size: int) -> bytes:
    return (LINE * (size // len(LINE) + 1))[:size]


def marked(number: int, body: bytes) -> bytes:
    """The body with its first eight bytes replaced by the number."""
    return b"%08d" % (number % 10**8) + body[8:]


def save(name: str, flags: int, chunks: list[bytes], sync: bool = False) -> None:
    fd = os.open(name, os.O_WRONLY | flags, 0o644)
    try:
        for chunk in chunks:
            os.write(fd, chunk)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def fetch(name: str, size: int, uncached: bool) -> None:
    """Open, read up to `size` bytes by chunks, close."""
    fd = os.open(name, os.O_RDONLY)
    try:
        if uncached:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        for _ in range(0, size, CHUNK_BYTES):
            os.read(fd, CHUNK_BYTES)
    finally:
        os.close(fd)


def own_files(size: int, count: int) -> list[str]:
    """New files of `size` bytes; synced, since only clean pages can be dropped."""
    names = [f"own-{number}" for number in range(count)]
    for name in names:
        save(name, os.O_CREAT, [text(size)], sync=True)
    return names


def stat_cached(_: Many) -> Step:
    """One stat by name: a LOOKUP where the kernel may not cache, no request where it may."""
    [name] = own_files(SMALL_BYTES, 1)
    return lambda _: os.stat(name)


def stat_uncached(_: Many) -> Step:
    """One statx of an open file with AT_STATX_FORCE_SYNC: one GETATTR, everywhere."""
    [name] = own_files(SMALL_BYTES, 1)
    fd = os.open(name, os.O_RDONLY)
    statx = ctypes.CDLL(None, use_errno=True).statx
    buffer = ctypes.create_string_buffer(STATX_BYTES)
    flags = AT_EMPTY_PATH | AT_STATX_FORCE_SYNC

    def step(_: int) -> None:
        if statx(fd, b"", flags, STATX_BASIC_STATS, buffer):
            raise OSError(ctypes.get_errno(), "statx")

    return step


def missing(_: Many) -> Step:
    """One name that is not there, again and again: a negative entry where those are cached."""
    return lambda _: os.access("missing", os.F_OK)


def missing_new(_: Many) -> Step:
    """A name that is not there and was never asked for: one LOOKUP, everywhere."""
    return lambda number: os.access(f"missing-{number}", os.F_OK)


def reader(size: int, count: int, uncached: bool) -> Callable[[Many], Step]:
    def prepare(_: Many) -> Step:
        names = own_files(size, count)
        return lambda number: fetch(names[number % count], size, uncached)

    return prepare


def creator(sync: bool) -> Callable[[Many], Step]:
    def prepare(_: Many) -> Step:
        body, flags = text(SMALL_BYTES), os.O_CREAT | os.O_EXCL
        # Names that were never there: to make a removed file anew brings its history back.
        first = time.time_ns()
        return lambda number: save(f"new-{first + number}", flags, [marked(number, body)], sync)

    return prepare


def overwriter(size: int, count: int, sync: bool) -> Callable[[Many], Step]:
    def prepare(_: Many) -> Step:
        names, body = own_files(size, count), text(min(size, CHUNK_BYTES))
        rest = [body] * ((size - 1) // CHUNK_BYTES)

        def step(number: int) -> None:
            save(names[number % count], os.O_TRUNC, [marked(number, body), *rest], sync)

        return step

    return prepare


def rename(_: Many) -> Step:
    """One file to and fro between two names of its directory."""
    names = [*own_files(SMALL_BYTES, 1), "other"]
    return lambda number: os.rename(names[number % 2], names[1 - number % 2])


def readdir(many: Many) -> Step:
    """One listing of all names; a listing of another length is an error."""

    def step(_: int) -> None:
        found = len(os.listdir(many.path))
        if found != many.entries:
            raise RuntimeError(f"{found} names listed of {many.entries}")

    return step


def list_long(many: Many) -> Step:
    env = {**os.environ, "LC_ALL": "C"}

    def step(_: int) -> None:
        subprocess.run(["ls", "-l", many.path], check=True, stdout=subprocess.DEVNULL, env=env)

    return step


def list_long_again(many: Many) -> Step:
    """One `ls -l`, process included, after another one."""
    step = list_long(many)
    step(0)
    return step


def list_long_first(many: Many) -> Step:
    """One `ls -l` once the kernel has forgotten every name and inode (root only).

    The servers get a moment to take in the FORGETs that this sends to all of them.
    """
    DROP_CACHES.write_text("2")
    time.sleep(FORGET_S)
    return list_long(many)


READ = Operation("read", reader(SMALL_BYTES, OWN_FILES, uncached=False))
SAVE = Operation("save", overwriter(SMALL_BYTES, OWN_FILES, sync=True))

OPERATIONS = (
    Operation("stat", stat_cached),
    Operation("stat-uncached", stat_uncached),
    Operation("missing", missing),
    Operation("missing-new", missing_new),
    READ,
    Operation("read-uncached", reader(SMALL_BYTES, OWN_FILES, uncached=True)),
    Operation("create", creator(sync=False)),
    Operation("overwrite", overwriter(SMALL_BYTES, OWN_FILES, sync=False)),
    Operation("create-fsync", creator(sync=True)),
    Operation("rename", rename),
    Operation("readdir", readdir),
    Operation("ls-first", list_long_first, once=True),
    Operation("ls-again", list_long_again),
    Operation("seqread", reader(LARGE_BYTES, 2, uncached=False)),
    Operation("seqread-uncached", reader(LARGE_BYTES, 2, uncached=True)),
    Operation("seqwrite", overwriter(LARGE_BYTES, 2, sync=False)),
)
