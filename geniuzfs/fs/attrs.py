"""An inode as the kernel wants to see it."""

import os
from pathlib import Path

from pyfuse3 import EntryAttributes, StatvfsData

from geniuzfs.model import NAME_MAX, Inode

TIMEOUT = 300
"""Seconds for which the kernel may keep names and attributes without asking.
Every change by another process is invalidated one by one (fs.watch), so this
only bounds what could be missed; a cached stat is 600,000 a second, an asked one 60,000.
"""

BLOCK = 512
PREFERRED_IO = 65_536


def attributes(number: int, inode: Inode) -> EntryAttributes:
    """`inode` under its number in the mount."""
    shown = EntryAttributes()
    shown.st_ino = number
    shown.entry_timeout = shown.attr_timeout = TIMEOUT
    shown.st_mode = inode.mode
    shown.st_nlink = inode.nlink
    shown.st_uid = inode.uid
    shown.st_gid = inode.gid
    shown.st_rdev = inode.rdev
    shown.st_size = inode.size
    shown.st_blksize = PREFERRED_IO
    shown.st_blocks = blocks(inode.stored)
    shown.st_atime_ns = inode.atime_ns
    shown.st_mtime_ns = inode.mtime_ns
    shown.st_ctime_ns = inode.ctime_ns
    return shown


def missing() -> EntryAttributes:
    """The answer for a name that is not there, which the kernel may keep as well."""
    shown = EntryAttributes()
    shown.st_ino = 0
    shown.entry_timeout = TIMEOUT
    return shown


def blocks(stored: int) -> int:
    """What stat(2) counts: 512-byte units, in pages of 4,096 as the database keeps them."""
    return (stored + 4095) // 4096 * (4096 // BLOCK)


def statfs(path: Path) -> StatvfsData:
    """The room there is: that of the disk which the database at `path` lies on."""
    status, shown = os.statvfs(path), StatvfsData()
    for name in (
        "f_bsize",
        "f_frsize",
        "f_blocks",
        "f_bfree",
        "f_bavail",
        "f_files",
        "f_ffree",
        "f_favail",
    ):
        setattr(shown, name, getattr(status, name))
    shown.f_namemax = NAME_MAX
    return shown
