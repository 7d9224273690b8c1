"""What is answered about files and sources. Frozen; how versions and times are written is here."""

import builtins
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import NamedTuple

from geniuzfs.errors import FileTooLarge, NotText
from geniuzfs.model import Inode, Memory
from geniuzfs.store.memories import kept_ns
from geniuzfs.store.versions import Version

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Source(NamedTuple):
    """Where something that is learned comes from: a file, or a kept memory."""

    id: str
    """A file's number, which stays with it over edits and moves and is never given to another; a
    memory's UUID.
    """
    kind: str
    """`note` or `memory`."""
    title: str
    """A file's name without its ending, a memory's gist."""
    labels: Mapping[str, str]
    external_id: str
    """`file:/drafts/plan.md`, `memory:<UUID>`."""
    updated_at: datetime


class File(NamedTuple):
    """A file as it is listed."""

    path: str
    size: int | None
    """Characters; None where it is not text."""
    updated_at: datetime
    """When its bytes were written, UTC."""
    labels: Mapping[str, str]
    version: str
    """Of its bytes: see `version`."""
    source: Source


@dataclass(frozen=True, slots=True)
class Read:
    """A file that was read. `bytes_` are those up to the last that is stored."""

    path: str
    updated_at: datetime
    labels: Mapping[str, str]
    version: str
    source: Source
    length: int
    """Bytes, holes among them."""
    stored: builtins.bytes
    most: int
    """Bytes that are made of it at most: it may end in a hole of any length."""

    @property
    def size(self) -> int | None:
        """Characters; None where it is not text."""
        return characters(self.stored, self.length)

    @property
    def text(self) -> str:
        """All of it, byte order mark and line ends as they are. Raises NotText."""
        if characters(self.stored, self.length) is None:
            raise NotText(f"{self.path} is not text: it has bytes that are no UTF-8, or NULs")
        return self.stored.decode()

    @property
    def bytes(self) -> builtins.bytes:
        """All of it. Raises FileTooLarge for a file that is one large hole."""
        if self.length > self.most:
            raise FileTooLarge(f"{self.path} has {self.length:,} bytes, nearly all of them a hole")
        return self.stored.ljust(self.length, b"\0")


class Put(NamedTuple):
    """What was put."""

    path: str
    size: int
    """Characters."""
    updated_at: datetime
    created: bool
    """There was no file before."""
    version: str
    source: Source


class Earlier(NamedTuple):
    """A version of a file: what a save replaced, or a removal."""

    name: str
    """As in `.history/`: sorted, the oldest first."""
    replaced_at: datetime
    updated_at: datetime
    """When its bytes were written."""
    length: int
    """Bytes."""
    by: str
    """Who wrote it, as far as is known: `vim (1234)`."""
    conflict: bool
    """It was replaced by one who had not read it."""

    @classmethod
    def of(cls, name: str, one: Version) -> "Earlier":
        """What the history knows of it."""
        replaced, written = moment(one.replaced_ns), moment(one.mtime_ns)
        return cls(name, replaced, written, one.size, one.writer, bool(one.blind))


class Page(NamedTuple):
    """Some of the files that were asked for, in the order of their paths' bytes (UTF-8)."""

    files: tuple[File, ...]
    total: int
    """All whose paths begin so."""
    next: str | None
    """The cursor of the next page; None after the last."""
    unlisted: int
    """Files beneath whose paths can't be asked for (no UTF-8, a backslash, too long): a mount
    shows them.
    """


class Sources(NamedTuple):
    """Some of the sources, in the order of their external ids."""

    sources: tuple[Source, ...]
    total: int
    next: str | None


def version(stored: bytes, length: int) -> str:
    """Names the bytes of a file: 32 characters. Equal bytes have equal versions, so an edit is
    refused when, and only when, what it was based on is not there any more: not because of a touch,
    a label or a rename, and not depending on a clock.
    """
    held = blake2b(length.to_bytes(8, "big"), digest_size=16)
    held.update(stored.rstrip(b"\0"))  # a hole and zeros are the same bytes
    return held.hexdigest()


def characters(stored: bytes, length: int) -> int | None:
    """How many; None where it is not text (a NUL, no UTF-8), as learning sees it."""
    if len(stored) < length or b"\0" in stored:
        return None
    try:
        return len(stored.decode())
    except UnicodeDecodeError:
        return None


def moment(ns: int) -> datetime:
    """Nanoseconds since 1970 as a moment, to the microsecond below."""
    return _EPOCH + timedelta(microseconds=ns // 1_000)


def file_source(path: str, found: Inode, labels: Mapping[str, str]) -> Source:
    """The source that a file is."""
    name = path.rpartition("/")[2]
    title = name.rpartition(".")[0] or name
    return Source(str(found.number), "note", title, labels, f"file:{path}", moment(found.mtime_ns))


def memory_source(memory: Memory) -> Source:
    """The source that a kept memory is."""
    kept = moment(kept_ns(memory.created_at))
    return Source(memory.id, "memory", memory.gist, {}, f"memory:{memory.id}", kept)
