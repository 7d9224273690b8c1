"""Where a question is asked: which folder and directory, whose, and as of which commit.

Hides: that a scope is a volume's inode or the mount's own directory.
"""

from geniuzfs.errors import NotFound
from geniuzfs.fs.inodes import Nodes
from geniuzfs.fs.top import Top
from geniuzfs.fs.volumes import Volume, Volumes
from geniuzfs.model import FIND as FIND
from geniuzfs.model import HISTORY as HISTORY
from geniuzfs.model import MEMORIES as MEMORIES
from geniuzfs.model import RECALL as RECALL
from geniuzfs.model import RESERVED as RESERVED
from geniuzfs.model import ROOT, Scope
from geniuzfs.model import STATUS as STATUS
from geniuzfs.store import tree

_TOP = (RECALL, FIND, STATUS, MEMORIES)
_FOLDER = (*_TOP, HISTORY)

Version = tuple[tuple[int, int], ...]
"""Two of them are the same when this mount has neither made nor noticed a commit in between."""


class Places:
    """The scopes of a mount. `top`: its own directory, where it has several folders."""

    def __init__(self, nodes: Nodes, volumes: Volumes, top: Top | None) -> None:
        self._nodes = nodes
        self._volumes = volumes
        self._top = top

    def is_top(self, inode: int) -> bool:
        """Whether it is the mount's own directory."""
        return self._top is not None and inode == ROOT

    def scope(self, inode: int) -> Scope:
        """The scope of directory `inode`. Raises Stale."""
        if self.is_top(inode):
            return Scope(None)
        node = self._nodes[inode]
        return Scope(node.volume.folder, node.number)

    def names(self, scope: Scope) -> tuple[bytes, ...]:
        """The generated names there."""
        if scope.directory != ROOT:
            return (RECALL, FIND)
        return _TOP if scope.folder is None else _FOLDER

    def listed(self, scope: Scope) -> tuple[bytes, ...]:
        """Those that a listing tells of. Not the history: whoever walks the tree (`grep -r`, rsync)
        is to meet what there is now, and not all that it ever said.
        """
        return tuple(name for name in self.names(scope) if name != HISTORY)

    def volumes(self, scope: Scope) -> list[Volume]:
        """Those that the scope covers."""
        if scope.folder is None:
            return list(self._volumes.values())
        return [self._volumes[scope.folder]]

    def is_taken(self, scope: Scope, name: bytes) -> bool:
        """Whether the name has been given to something real, by another program or before
        it was reserved. What people have kept is not hidden from them.
        """
        if scope.folder is None:
            return any(volume.name == name for volume in self._volumes.values())
        return tree.child(self._volumes[scope.folder].view, scope.directory, name) is not None

    def owner(self, scope: Scope) -> tuple[int, int]:
        """User and group of what is generated there: those of the folder's top."""
        if scope.folder is None and self._top is not None:
            attributes = self._top.attributes()
            return attributes.st_uid, attributes.st_gid
        top = tree.inode(self._volumes[scope.folder].view, ROOT)
        if top is None:
            raise NotFound("the folder has no top directory")
        return top.uid, top.gid

    def version(self, scope: Scope) -> Version:
        """As of which commit the scope is now."""
        return tuple((volume.epoch, volume.saves) for volume in self.volumes(scope))

    def saves(self) -> list[int]:
        """How many each folder has had since the mount began, those too that are gone."""
        return [volume.saves for volume in self._volumes.known.values()]

    def depth(self, scope: Scope) -> int:
        """How many directories the scope lies below its folder's top."""
        depth, number = 0, scope.directory
        while number != ROOT:
            number = tree.parent_of(self._volumes[scope.folder].view, number)
            depth += 1
        return depth
