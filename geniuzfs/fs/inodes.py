"""The files that the kernel knows at this moment.

Hides: which attributes are cached and when they must be read anew. Promises: a
node lives as long as the kernel may name it (its lookup count) or somebody has
it open; a file without a name keeps its attributes and bytes in memory until then.
"""

from collections.abc import Iterable

import trio
from pyfuse3 import EntryAttributes

from geniuzfs.errors import NotHere, Stale
from geniuzfs.fs.attrs import attributes, blocks
from geniuzfs.fs.buffers import Buffer
from geniuzfs.fs.volumes import Volume
from geniuzfs.model import ROOT, Inode, InodeNumber
from geniuzfs.processes import Process
from geniuzfs.store import tree


class Node:
    """A file or directory that the kernel knows, under its number in the mount."""

    __slots__ = (
        "attributes",
        "buffer",
        "claimed",
        "direct",
        "gone",
        "id",
        "is_mixed",
        "lookups",
        "mtime_ns",
        "number",
        "opens",
        "replacing",
        "saving",
        "volume",
        "writer",
        "xattrs",
    )

    def __init__(self, volume: Volume, number: InodeNumber) -> None:
        self.id = volume.base | number
        self.volume = volume
        self.number = number
        self.attributes: EntryAttributes | None = None
        """What the kernel was told last; None: read it anew."""
        self.lookups = 0
        self.opens = 0
        self.buffer: Buffer | None = None
        self.mtime_ns = 0
        """Of the buffer's last unsaved change."""
        self.direct = False
        """Somebody has opened it with O_DIRECT since the kernel knows it. A page that another was
        reading meanwhile may hold what was there before, so each open drops the kernel's pages.
        """
        self.claimed = 0
        """Bytes of room that the unsaved changes have claimed of the volume."""
        self.saving: trio.Event | None = None
        """Set when the large save that is on its way in a thread has ended."""
        self.writer: Process | None = None
        """Who wrote last of what is unsaved; None where nothing is."""
        self.is_mixed = False
        """Others have written of it too."""
        self.replacing: list[Process] = []
        """Those who in what is unsaved replaced something that was saved."""
        self.gone = False
        """It has no name any more, and no row."""
        self.xattrs: dict[bytes, bytes] = {}
        """Extended attributes once it is gone."""


class Nodes(dict[int, Node]):
    """Number in the mount → node."""

    def __missing__(self, id_: int) -> Node:
        if id_ == ROOT:
            raise NotHere("the mount's own directory holds folders and nothing else")
        raise Stale(f"inode {id_} is not known")

    def remember(self, volume: Volume, inode: Inode) -> EntryAttributes:
        """The attributes of `inode`, which the kernel is told of once more."""
        node = self.get(volume.base | inode.number)
        if node is None:
            node = Node(volume, inode.number)
            self[node.id] = node
        node.lookups += 1
        return node.attributes or self.show(node, inode)

    def shown(self, node: Node) -> EntryAttributes:
        """The attributes of `node`. Raises Stale when another process removed it."""
        if node.attributes is not None:
            return node.attributes
        inode = tree.inode(node.volume.view, node.number)
        if inode is None:
            raise Stale(f"inode {node.number} was removed by another process")
        return self.show(node, inode)

    def show(self, node: Node, inode: Inode) -> EntryAttributes:
        """Cache `inode` as the node's attributes, with what its buffer has not saved yet."""
        shown = node.attributes = attributes(node.id, inode)
        buffer = node.buffer
        if buffer is not None and buffer.changed:
            shown.st_size = buffer.size
            shown.st_blocks = blocks(buffer.stored)
            shown.st_mtime_ns = node.mtime_ns
            shown.st_ctime_ns = max(node.mtime_ns, inode.ctime_ns)
        return shown

    def settle(self, volume: Volume, inode: Inode) -> None:
        """Note what a change has made of `inode`, if the kernel knows it."""
        node = self.get(volume.base | inode.number)
        if node is not None:
            self.show(node, inode)
            node.gone = inode.nlink == 0

    def forget(self, counts: Iterable[tuple[int, int]]) -> None:
        """The kernel gives back lookups: (number in the mount, how many)."""
        for id_, count in counts:
            node = self.get(id_)
            if node is not None:
                node.lookups -= count
                self.let_go(node)

    def let_go(self, node: Node) -> None:
        """Drop a node that nobody can name any more."""
        if node.lookups <= 0 and node.opens <= 0 and node.number != ROOT:
            self.pop(node.id, None)
