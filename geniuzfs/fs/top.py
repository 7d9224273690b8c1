"""The mount's own directory, which lists the folders and holds nothing else."""

import os
import stat

import pyfuse3
from pyfuse3 import EntryAttributes, ReaddirToken

from geniuzfs.errors import StoreDamaged
from geniuzfs.fs.attrs import attributes, missing
from geniuzfs.fs.inodes import Nodes
from geniuzfs.fs.volumes import Volume, Volumes
from geniuzfs.model import ROOT, Inode
from geniuzfs.store import tree

COOKIES_BEFORE = 7
"""Cookies 1 and 2 are `.` and `..`, 3 to 7 what is generated in a top; then come the entries."""


class Top:
    """The directory of `volumes`; `since_ns` is its time (when the mount was made)."""

    def __init__(self, nodes: Nodes, volumes: Volumes, since_ns: int) -> None:
        self._nodes = nodes
        self._volumes = volumes
        self.changed(since_ns)

    def changed(self, now_ns: int) -> None:
        """A folder has come, gone or another name."""
        mode, links = stat.S_IFDIR | 0o755, 2 + len(self._volumes)
        own = Inode(ROOT, mode, os.getuid(), os.getgid(), links, 0, 0, 0, now_ns, now_ns, now_ns)
        self._attributes = attributes(ROOT, own)

    def attributes(self) -> EntryAttributes:
        return self._attributes

    def lookup(self, name: bytes) -> EntryAttributes:
        for volume in self._volumes.values():
            if volume.name == name:
                return self._nodes.remember(volume, root(volume))
        return missing()

    def list(self, start: int, token: ReaddirToken) -> None:
        """Tell `token` the folders after cookie `start`: theirs are their slots, which stay."""
        for volume in sorted(self._volumes.values(), key=lambda volume: volume.slot):
            cookie = COOKIES_BEFORE + volume.slot
            if cookie <= start:
                continue
            shown = self._nodes.remember(volume, root(volume))
            if not pyfuse3.readdir_reply(token, volume.name, shown, cookie):
                self._nodes.forget([(shown.st_ino, 1)])
                return


def root(volume: Volume) -> Inode:
    """The folder's top directory. Raises StoreDamaged where it is missing."""
    found = tree.inode(volume.view, ROOT)
    if found is None:
        raise StoreDamaged(
            f"{volume.database.path} has no top directory: run geniuzfs check --repair"
        )
    return found
