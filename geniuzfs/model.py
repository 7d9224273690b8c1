"""The values that every layer speaks of. Frozen, without I/O, without rules."""

from enum import IntEnum
from typing import NamedTuple, NewType

InodeNumber = NewType("InodeNumber", int)
FolderId = NewType("FolderId", str)
"""A folder's UUID, in upper case: its identity, wherever the file lies."""

PassageId = NewType("PassageId", int)
MemoryId = NewType("MemoryId", str)
"""A kept memory's UUID as the database has it: in upper case but for what other tools chose."""

ModelId = NewType("ModelId", str)
"""An embedding model and its weights' version: vectors of different ids are never compared."""

ROOT = InodeNumber(1)
"""The top directory of a folder."""

CHUNK = 65_536
"""Bytes in a piece of a file: what is stored, loaded and rewritten at once."""

Piece = bytes | bytearray
"""The bytes of such a piece."""

NAME_MAX = 255
"""Bytes in a name."""

RECALL, FIND, STATUS, MEMORIES = b".recall", b".find", b".status", b".memories"
HISTORY = b".history"
RESERVED = frozenset((RECALL, FIND, STATUS, MEMORIES, HISTORY))
"""Names of what is generated: nothing else is given them, in any directory."""

FOLDER_ATTRIBUTE = b"user.geniuz.folder"
"""Of anything in a folder, where it is mounted: the folder's UUID."""


class Inode(NamedTuple):
    """One file as stat(2) sees it. A named tuple since one is made a request:
    0.3 us out of a row, where a frozen dataclass takes 1.5.
    """

    number: InodeNumber
    mode: int
    uid: int
    gid: int
    nlink: int
    rdev: int
    size: int
    stored: int
    """Bytes that are really kept; beyond them, up to `size`, are holes."""
    atime_ns: int
    mtime_ns: int
    ctime_ns: int


class Entry(NamedTuple):
    """A name in a directory. `id` orders the directory and is never moved."""

    id: int
    name: bytes
    inode: InodeNumber


class Change(NamedTuple):
    """What some commit changed: entry `name` of directory `inode`, or, where
    name is None, the attributes or bytes of `inode` itself.
    """

    seq: int
    inode: InodeNumber
    name: bytes | None


class Exchange(IntEnum):
    """What a rename does about its destination: the flags of renameat2(2)."""

    REPLACE = 0
    NOREPLACE = 1
    SWAP = 2


class Identity(NamedTuple):
    """What a folder's file says about itself."""

    id: FolderId
    name: str
    description: str
    created_at: str
    """UTC, `YYYY-MM-DD HH:MM:SS`."""


class Writer(NamedTuple):
    """A process that writes: what it is called, its number, and when it began, in clock ticks
    since the machine's start. Two are the same process when number and beginning are.
    """

    name: str
    pid: int
    started: int

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})" if self.pid else self.name


NOBODY = Writer("", 0, 0)
"""It is not known who."""


class Memory(NamedTuple):
    """What was kept on purpose. It never changes."""

    id: MemoryId
    content: str
    gist: str
    created_at: str
    """UTC, `YYYY-MM-DD HH:MM:SS`."""
    parent: MemoryId
    """What it continues; itself where it begins a thread."""


class Scope(NamedTuple):
    """Where a question looks: beneath `directory` of one folder, or (None) in every folder."""

    folder: FolderId | None
    directory: InodeNumber = ROOT


class Problem(NamedTuple):
    """Something that a check found; `mendable`: a repair will try."""

    rule: str
    detail: str
    mendable: bool


class Finding(NamedTuple):
    """What a look at one part of the machine or the data found, in one line; `mend`: the one
    command that makes it well, "" where nothing is wrong.
    """

    part: str
    detail: str
    mend: str = ""
