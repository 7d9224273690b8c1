"""Open directories and what readdir(3) says of them.

Hides: paging, and which attributes are cached. Promises: an entry that is there
from opendir to the end is listed exactly once, whatever others create and
remove meanwhile: the cookie of an entry is its id, which grows within its
directory and never moves.
"""

from collections.abc import Callable

import pyfuse3
from pyfuse3 import ReaddirToken

from geniuzfs.fs.attrs import attributes
from geniuzfs.fs.inodes import Node, Nodes
from geniuzfs.fs.top import COOKIES_BEFORE, Top
from geniuzfs.fs.virtual import list_dots
from geniuzfs.model import ROOT, Entry, Inode, InodeNumber
from geniuzfs.store import tree

PAGE = 256
"""Entries read at once. The kernel takes some 20 to 200 a request."""

ListMore = Callable[[int, int, ReaddirToken], bool]
"""(inode of a top, cookie, token): tell the token what else is there after the cookie, under
cookies 3 to 7. False: the token takes no more.
"""


class _Open:
    """An open directory: its node (None: the top), and the page that was read last."""

    __slots__ = ("entries", "epoch", "inodes", "node", "position")

    def __init__(self, node: Node | None) -> None:
        self.node = node
        self.entries: list[Entry] = []
        self.inodes: dict[InodeNumber, Inode] = {}
        self.position = 0
        self.epoch = -1


class Listings:
    """The open directories of a mount."""

    def __init__(self, nodes: Nodes, top: Top | None, list_more: ListMore) -> None:
        self._nodes = nodes
        self._top = top
        self._list_more = list_more
        self._handles: dict[int, _Open] = {}
        self._next = 1

    def open(self, inode: int) -> int:
        is_top = self._top is not None and inode == pyfuse3.ROOT_INODE
        handle, self._next = self._next, self._next + 1
        self._handles[handle] = _Open(None if is_top else self._nodes[inode])
        return handle

    def node(self, handle: int) -> Node | None:
        """The directory that is open; None for the top."""
        return self._handles[handle].node

    def close(self, handle: int) -> None:
        del self._handles[handle]

    def read(self, handle: int, start: int, token: ReaddirToken) -> None:
        """Tell `token` the entries after cookie `start`, as many as it takes."""
        opened = self._handles[handle]
        node, top = opened.node, self._top
        if node is not None:
            shown, is_top = self._nodes.shown(node), node.number == ROOT
        elif top is not None:
            shown, is_top = top.attributes(), True
        else:
            return
        if not list_dots(token, shown, start):
            return
        asks_more = is_top and start < COOKIES_BEFORE
        if asks_more and not self._list_more(shown.st_ino, start, token):
            return
        if node is not None:
            self._read(opened, node, max(start - COOKIES_BEFORE, 0), token)
        elif top is not None:
            top.list(start, token)

    def _read(self, opened: _Open, directory: Node, after: int, token: ReaddirToken) -> None:
        reply, nodes, volume = pyfuse3.readdir_reply, self._nodes, directory.volume
        while self._page(opened, directory, after):
            for entry in opened.entries[opened.position :]:
                node = nodes.get(volume.base | entry.inode)
                if node is None or node.attributes is None:
                    inode = opened.inodes.get(entry.inode) or tree.inode(volume.view, entry.inode)
                    if inode is None:
                        continue  # another process removed it just now
                    shown = (
                        attributes(volume.base | entry.inode, inode)
                        if node is None
                        else nodes.show(node, inode)
                    )
                else:
                    shown = node.attributes
                if not reply(token, entry.name, shown, entry.id + COOKIES_BEFORE):
                    return
                opened.position += 1
                after = entry.id
                if node is None:
                    node = nodes[shown.st_ino] = Node(volume, entry.inode)
                    node.attributes = shown
                node.lookups += 1

    def _page(self, opened: _Open, directory: Node, after: int) -> bool:
        """Have `opened` stand at the entry after id `after`; False at the end.
        A page that was read before the tree last changed is read again.
        """
        volume, entries, position = directory.volume, opened.entries, opened.position
        previous = entries[position - 1].id if 0 < position <= len(entries) else 0
        if opened.epoch == volume.epoch and previous == after and position < len(entries):
            return True
        opened.entries = tree.listing(volume.view, directory.number, after, PAGE)
        opened.position, opened.epoch, opened.inodes = 0, volume.epoch, {}
        if not opened.entries:
            return False
        known = self._nodes.get
        unknown = [
            e
            for e in opened.entries
            if (n := known(volume.base | e.inode)) is None or n.attributes is None
        ]
        if len(unknown) > 2:  # one look at all of the page: 3 us an inode, where one by one takes 6
            first, last = unknown[0].id, unknown[-1].id
            found = tree.inodes_listed(volume.view, directory.number, first, last)
            opened.inodes = {inode.number: inode for inode in found}
        return True


def lists_all(_top: int, _start: int, _token: ReaddirToken) -> bool:
    """Nothing else is there."""
    return True
