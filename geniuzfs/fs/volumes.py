"""The folders as a mount holds them: each one's database, its inode numbers, its room.

Promises: a folder that goes and comes back, or that is moved, has the same inode numbers, and files
of it that are open stay so.
"""

import os
import time
import zlib
from pathlib import Path

from geniuzfs.errors import Moved, NotFound, Stale, StoreFull
from geniuzfs.fs.durability import Durability
from geniuzfs.model import FolderId, InodeNumber
from geniuzfs.store import meta, xattrs
from geniuzfs.store.connection import Database

SLOT_BITS = 36
"""A folder's inode numbers have 36 bits, its slot in the mount 16 above them:
together 52, so that programs that hold inode numbers in doubles can tell files apart.
"""

CAPABILITY = b"security.capability"
LABEL = b"security.selinux"

_MARGIN = 4 * 1024 * 1024
"""Bytes that are left to what needs little: removing files above all."""

_SLOTS = 65_535
_ROOM_SECONDS = 1.0
_TIMES_STORED = 2
"""What is saved goes into the WAL first, and into the database with the next checkpoint."""


class Volume:
    """A mounted folder. `base` + an inode's number is its number in the mount."""

    def __init__(self, name: bytes, slot: int, database: Database, folder: FolderId) -> None:
        self.name = name
        self.folder = folder
        self.base = slot << SLOT_BITS
        self.capable: set[InodeNumber] = set()
        """The inodes with file capabilities. The kernel asks before every write(2): for all
        others it is told no without a look into the database.
        """
        self.labelled = False
        """Some file has an SELinux label. While none has, the answer is that labels are not
        supported: `ls -l` then asks once, where it would ask for every file.
        """
        self.epoch = 0
        """Grows with every change of the tree: what was read of it before may be out of date."""
        self.saves = 0
        """Grows with every save: an answer from before may be out of date."""
        self.unsaved = 0
        """Bytes that buffers have taken on and no save has put down."""
        self._room = self._taken = 0
        self._room_known = 0.0
        self.attach(database)

    def attach(self, database: Database) -> None:
        """Go on with `database`, which holds this folder: from the beginning, or since it was
        moved. Who gives the volume another one ends the one before (`durability`).
        """
        self.database = database
        self.view = database.view
        self.durability = Durability(database)
        self.identity = meta.identity(database.view)
        """What the file said of itself when that was last looked at."""
        self.attached = True
        self.epoch += 1
        self._room_known = 0.0
        self.learn_asked()

    async def detach(self) -> None:
        """Let go of the database: the folder is gone. Requests for its files raise Stale."""
        self.attached = False
        self.epoch += 1
        await self.durability.end(Stale("the folder is gone"))
        self.database.close()

    def learn_asked(self) -> None:
        """Look up who has one of the attributes that are asked for without end."""
        self.capable = xattrs.holders(self.view, CAPABILITY)
        self.labelled = bool(xattrs.holders(self.view, LABEL))

    def claim(self, added: int) -> None:
        """Take on `added` bytes. Raises StoreFull when the disk has no room for
        them, so that a program hears of it from write(2) and not from close(2) alone.
        """
        needed = _TIMES_STORED * added
        old = time.monotonic() - self._room_known > _ROOM_SECONDS
        if old or self._taken + needed > self._room:
            try:
                status = os.statvfs(self.path)
                free = status.f_bavail * status.f_frsize + self.database.spare_bytes()
            except FileNotFoundError as error:  # this mount has not noticed yet
                raise Moved(f"{self.path} was moved") from error
            self._room, self._taken = free - _MARGIN, _TIMES_STORED * self.unsaved
            self._room_known = time.monotonic()
        if self._taken + needed > self._room:
            raise StoreFull("the disk is full")
        self._taken += needed
        self.unsaved += added

    @property
    def path(self) -> Path:
        """The directory that the database lies in."""
        return self.database.path.parent

    @property
    def slot(self) -> int:
        return self.base >> SLOT_BITS

    def close(self) -> None:
        if self.attached:
            self.durability.close()
            self.database.close()


class Volumes(dict[FolderId | None, Volume]):
    """Those that the mount shows. `known` holds, besides, those that were shown before: the kernel
    may name their files still.
    """

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[FolderId, Volume] = {}

    def __missing__(self, folder: FolderId | None) -> Volume:
        raise NotFound("the folder is gone")

    def show(self, volume: Volume) -> None:
        self[volume.folder] = self.known[volume.folder] = volume

    def hide(self, volume: Volume) -> None:
        self.pop(volume.folder, None)

    def named(self, name: bytes) -> Volume:
        """Raises NotFound."""
        for volume in self.values():
            if volume.name == name:
                return volume
        raise NotFound("no folder has this name")

    def slot(self, folder: FolderId) -> int:
        """A new folder's place in inode numbers: from its UUID, so that they stay the same over
        mounts; the next free one where two folders meet.
        """
        taken = {volume.slot for volume in self.known.values()}
        slot = zlib.crc32(folder.encode()) % _SLOTS + 1
        while slot in taken:
            slot = slot % _SLOTS + 1
        return slot

    def close(self) -> None:
        for volume in self.known.values():
            volume.close()
