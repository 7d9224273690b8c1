"""Programs that save one file over and over, in the ways that programs save.

Run as a process: `python -m tests.crash.savers METHOD`. It reads lines
`go ROOT VERSION` (the version that is there, 0 for none), saves version after
version until the daemon beneath it dies, and tells on standard output what the
kernel has told it: `saved N` once close (or rename) returned, `stopped N` when
save N failed. What each version holds follows from method and number alone.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

KIB = 1024
PIECE = 64 * KIB
RECORDS = 40
"""Records that an appended file grows to before it begins anew."""

SYNCED = 3
"""Every third version is synced before its close; a rename's directory after it."""

PATCHES = (100, 2 * PIECE + 500, 3 * PIECE - 8)
"""Where a patched file is changed: its first piece, its third, and across a border."""


def text(method: str, version: int, size: int) -> bytes:
    """`size` bytes that no other version shares: they begin with the version."""
    seed = hashlib.sha256(f"{method} {version}".encode()).hexdigest().encode()
    return (b"%s %d\n" % (method.encode(), version) + seed * (size // len(seed) + 1))[:size]


def record(version: int) -> bytes:
    return text("record", version, 700 + version % 7 * 100)


def content(method: str, version: int) -> bytes:
    """What the file holds once `version` of it is saved."""
    if method == "append":
        return b"".join(map(record, range(max(1, version - version % RECORDS), version + 1)))
    if method == "patch":
        patched = bytearray(text("patch", 0, 200 * KIB))
        for place in PATCHES:
            patched[place : place + 16] = b"%016d" % version
        return bytes(patched)
    sizes = {"pieces": 200 * KIB, "large": 3 * KIB * KIB}
    return text(method, version, sizes.get(method, 2 * KIB + version % 50 * 100))


def version_of(method: str, found: bytes) -> int | None:
    """The version that `found` is, all of it; None when it is none."""
    try:
        if method == "append":
            version = int(found[found.rindex(b"record ") :].split(b"\n")[0].split()[1])
        elif method == "patch":
            version = int(found[PATCHES[0] : PATCHES[0] + 16])
        else:
            version = int(found[:40].split(b"\n")[0].split()[1])
    except (ValueError, IndexError):
        return None
    return version if content(method, version) == found else None


def write_all(descriptor: int, data: bytes, offset: int = 0) -> None:
    """In pieces of 100,000 bytes, so that a save takes several writes. At the file's own
    offset, or from `offset` on where that is given.
    """
    while data:
        part = data[:100_000]
        count = os.pwrite(descriptor, part, offset) if offset else os.write(descriptor, part)
        data, offset = data[count:], offset + count if offset else 0


def save_in_place(path: Path, version: int, *, sync: bool) -> None:
    _save(path, os.O_TRUNC, [(0, content(path.name, version))], sync)


def save_append(path: Path, version: int, *, sync: bool) -> None:
    flags = os.O_APPEND if version % RECORDS else os.O_TRUNC
    _save(path, flags, [(0, record(version))], sync)


def save_patch(path: Path, version: int, *, sync: bool) -> None:
    if version == 1:
        save_in_place(path, version, sync=sync)
        return
    _save(path, 0, [(place, b"%016d" % version) for place in PATCHES], sync)


def save_renamed(path: Path, version: int, *, sync: bool) -> None:
    new = path.with_name(f".{path.name}.{version}")
    _save(new, os.O_TRUNC, [(0, content(path.name, version))], sync)
    os.rename(new, path)
    if sync:
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def save_renamed_open(path: Path, version: int, *, sync: bool) -> None:
    """Rename while it is still open: its name is the file's when the bytes are not saved yet."""
    new = path.with_name(f".{path.name}.{version}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_all(descriptor, content(path.name, version))
        os.rename(new, path)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


METHODS: dict[str, Callable[..., None]] = {
    "place": save_in_place,
    "append": save_append,
    "rename": save_renamed,
    "rename-open": save_renamed_open,
    "pieces": save_in_place,
    "patch": save_patch,
    "large": save_in_place,
}


def _save(path: Path, flags: int, writes: list[tuple[int, bytes]], sync: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    try:
        for offset, data in writes:
            write_all(descriptor, data, offset)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _commands() -> Iterator[tuple[Path, int]]:
    for line in sys.stdin:
        word, root, version = line.split("\t")
        assert word == "go"
        yield Path(root), int(version)


def run(method: str) -> None:
    """Save until the daemon dies, then wait for the next; end with standard input."""
    for root, version in _commands():
        while True:
            version += 1
            try:
                METHODS[method](root / method, version, sync=version % SYNCED == 0)
            except OSError:
                say(f"stopped {version}")
                break
            say(f"saved {version}")


def say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    run(sys.argv[1])
