"""One folder as the mount holds it: its database, its inode numbers, its room."""

import os
import time
from pathlib import Path

from geniuzfs.errors import StoreFull
from geniuzfs.fs.durability import Durability
from geniuzfs.model import FolderId, InodeNumber
from geniuzfs.store import xattrs
from geniuzfs.store.connection import Database

SLOT_BITS = 36
"""A folder's inode numbers have 36 bits, its slot in the mount 16 above them:
together 52, so that programs that hold inode numbers in doubles can tell files apart.
"""

CAPABILITY = b"security.capability"
LABEL = b"security.selinux"

_MARGIN = 4 * 1024 * 1024
"""Bytes that are left to what needs little: removing files above all."""

_ROOM_SECONDS = 1.0
_TIMES_STORED = 2
"""What is saved goes into the WAL first, and into the database with the next checkpoint."""


class Volume:
    """A mounted folder. `base` + an inode's number is its number in the mount."""

    def __init__(self, name: bytes, slot: int, database: Database, folder: FolderId) -> None:
        self.name = name
        self.folder = folder
        self.base = slot << SLOT_BITS
        self.database = database
        self.view = database.view
        self.durability = Durability(database)
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
        self.learn_asked()

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
            status = os.statvfs(self.path)
            free = status.f_bavail * status.f_frsize + self.database.spare_bytes()
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

    def close(self) -> None:
        self.durability.close()
        self.database.close()
