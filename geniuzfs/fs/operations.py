"""The requests of the kernel: each is parsed, carried out by one call, answered.

Hides: pyfuse3's calling conventions. Promises: no request ends the mount
(fs.faults). Permissions are the kernel's (`default_permissions`): no handler
checks them. Locks (flock, POSIX) are the kernel's as well.
"""

import errno
import logging
import os
import stat
from collections.abc import Sequence

import pyfuse3
from pyfuse3 import (
    EntryAttributes,
    FileInfo,
    FUSEError,
    ReaddirToken,
    RequestContext,
    SetattrFields,
    StatvfsData,
)

from geniuzfs.errors import (
    AlreadyExists,
    NameTooLong,
    NoSuchAttribute,
    OtherFolder,
    StoreFull,
    UsageError,
)
from geniuzfs.fs import attrs, xattrs
from geniuzfs.fs.faults import handler
from geniuzfs.fs.files import Files
from geniuzfs.fs.following import Following
from geniuzfs.fs.inodes import Node, Nodes
from geniuzfs.fs.listing import Listings, ListMore, lists_all
from geniuzfs.fs.top import Top, root
from geniuzfs.fs.volumes import CAPABILITY, LABEL, Volume, Volumes
from geniuzfs.model import NAME_MAX, ROOT, Exchange
from geniuzfs.ports import Clock
from geniuzfs.processes import UNKNOWN
from geniuzfs.store import tree

_log = logging.getLogger(__name__)

_RENAMES = {0: Exchange.REPLACE, 1: Exchange.NOREPLACE, 2: Exchange.SWAP}


class Operations(pyfuse3.Operations):
    """One mount: either one volume as the root, or a top directory of several."""

    def __init__(
        self,
        nodes: Nodes,
        files: Files,
        volumes: Volumes,
        top: Top | None,
        folders: Following,
        clock: Clock,
        list_more: ListMore = lists_all,
    ) -> None:
        super().__init__()
        self._nodes = nodes
        self._files = files
        self._volumes = volumes
        self._top = top
        self._folders = folders
        self._listings = Listings(nodes, top, list_more)
        self._now_ns = clock.now_ns
        self._readers = files.readers
        self._processes = files.readers.processes

    # Names

    @handler
    async def lookup(self, parent_inode: int, name: bytes, ctx: RequestContext) -> EntryAttributes:
        if self._top is not None and parent_inode == ROOT:
            return self._top.lookup(name)
        directory = self._nodes[parent_inode]
        if len(name) > NAME_MAX:
            raise NameTooLong("a name is too long")
        found = tree.child(directory.volume.view, directory.number, name)
        return attrs.missing() if found is None else self._nodes.remember(directory.volume, found)

    @handler
    async def mknod(
        self, parent_inode: int, name: bytes, mode: int, rdev: int, ctx: RequestContext
    ) -> EntryAttributes:
        return self._make(parent_inode, name, tree.New(mode, ctx.uid, ctx.gid, rdev))

    @handler
    async def mkdir(
        self, parent_inode: int, name: bytes, mode: int, ctx: RequestContext
    ) -> EntryAttributes:
        if self._is_top(parent_inode):
            volume = await self._folders.make(name)
            return self._nodes.remember(volume, root(volume))
        return self._make(parent_inode, name, tree.New(mode, ctx.uid, ctx.gid))

    @handler
    async def symlink(
        self, parent_inode: int, name: bytes, target: bytes, ctx: RequestContext
    ) -> EntryAttributes:
        new = tree.New(stat.S_IFLNK | 0o777, ctx.uid, ctx.gid, target=target)
        return self._make(parent_inode, name, new)

    @handler
    async def link(
        self, inode: int, new_parent_inode: int, new_name: bytes, ctx: RequestContext
    ) -> EntryAttributes:
        node, directory = self._nodes[inode], self._nodes[new_parent_inode]
        volume = _same_volume(node, directory)
        with volume.database.txn() as txn:
            linked = tree.link(txn, node.number, directory.number, new_name, self._now_ns())
        self._directories_changed(directory)
        self._nodes.show(node, linked)
        return self._nodes.remember(volume, linked)

    @handler
    async def unlink(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        try:
            self._remove(parent_inode, name, directory=False)
        except StoreFull:  # what is removed to make room needs some itself, to be kept
            await self.make_room()
            try:
                self._remove(parent_inode, name, directory=False)
            except StoreFull:
                _log.info("the disk is full: what is removed is not kept")
                self._remove(parent_inode, name, directory=False, keep=False)

    @handler
    async def rmdir(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        if self._is_top(parent_inode):
            await self._folders.archive(name)
        else:
            self._remove(parent_inode, name, directory=True)

    @handler
    async def rename(
        self,
        parent_inode_old: int,
        name_old: bytes,
        parent_inode_new: int,
        name_new: bytes,
        flags: int,
        ctx: RequestContext,
    ) -> None:
        if flags not in _RENAMES:
            raise UsageError("unknown rename flags")
        if self._is_top(parent_inode_old) and self._is_top(parent_inode_new):
            await self._folders.rename(name_old, name_new, _RENAMES[flags])
            return
        old, new = self._nodes[parent_inode_old], self._nodes[parent_inode_new]
        volume = _same_volume(old, new)
        await self._files.save_moved(old, name_old)
        by = self._processes.of(ctx.pid)
        with volume.database.txn() as txn:
            done = tree.rename(
                txn,
                (old.number, name_old),
                (new.number, name_new),
                _RENAMES[flags],
                self._now_ns(),
                losing=lambda inode: self._files.losing(volume, inode),
                who=lambda inode: self._readers.replacing(volume.base | inode.number, by),
            )
        self._directories_changed(old, new)
        for inode in (done.moved, done.other):
            if inode is not None:
                self._nodes.settle(volume, inode)
        file = volume.base | done.moved.number
        if done.other is None:
            self._readers.moved(file, (parent_inode_old, name_old), (parent_inode_new, name_new))
        elif done.other.nlink == 0:
            self._readers.replaced(file, by)

    @handler
    async def readlink(self, inode: int, ctx: RequestContext) -> bytes:
        node = self._nodes[inode]
        return tree.target(node.volume.view, node.number)

    # Attributes

    @handler
    async def getattr(self, inode: int, ctx: RequestContext) -> EntryAttributes:
        if self._top is not None and inode == ROOT:
            return self._top.attributes()
        return self._nodes.shown(self._nodes[inode])

    @handler
    async def setattr(
        self,
        inode: int,
        attr: EntryAttributes,
        fields: SetattrFields,
        fh: int | None,
        ctx: RequestContext,
    ) -> EntryAttributes:
        node = self._nodes[inode]
        if fields.update_size:
            by = self._processes.of(ctx.pid) if fh is None else self._files.opener(fh)
            await self._files.set_size(node, attr.st_size, by, alone=fh is None)
        wanted = tree.Fields(
            mode=attr.st_mode if fields.update_mode else None,
            uid=attr.st_uid if fields.update_uid else None,
            gid=attr.st_gid if fields.update_gid else None,
            atime_ns=attr.st_atime_ns if fields.update_atime else None,
            mtime_ns=attr.st_mtime_ns if fields.update_mtime else None,
        )
        if any(field is not None for field in wanted):
            self._files.set_fields(node, wanted)
        return self._nodes.shown(node)

    @handler
    async def getxattr(self, inode: int, name: bytes, ctx: RequestContext) -> bytes:
        # The kernel asks this before every write(2): the cheapest answer first.
        if name == CAPABILITY and not self._is_capable(inode):
            raise FUSEError(errno.ENODATA)
        xattrs.check_name(name)
        if self._is_top(inode):
            raise NoSuchAttribute("nothing here")
        node = self._nodes[inode]
        if name == LABEL and not node.volume.labelled:
            raise FUSEError(errno.EOPNOTSUPP)
        return xattrs.get(node, name)

    @handler
    async def setxattr(self, inode: int, name: bytes, value: bytes, ctx: RequestContext) -> None:
        xattrs.check_name(name)
        node = self._nodes[inode]
        xattrs.put(node, name, value, self._now_ns())
        self._xattrs_changed(node, name)

    @handler
    async def removexattr(self, inode: int, name: bytes, ctx: RequestContext) -> None:
        xattrs.check_name(name)
        node = self._nodes[inode]
        xattrs.remove(node, name, self._now_ns())
        self._xattrs_changed(node, name)

    @handler
    async def listxattr(self, inode: int, ctx: RequestContext) -> Sequence[bytes]:
        if self._is_top(inode):
            return []
        names = xattrs.names(self._nodes[inode])
        return (
            names if ctx.uid == 0 else [name for name in names if not name.startswith(b"trusted.")]
        )

    # Files

    @handler
    async def create(
        self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        try:
            shown = self._make(parent_inode, name, tree.New(mode, ctx.uid, ctx.gid))
        except AlreadyExists:  # another process made it since the kernel last looked
            if flags & os.O_EXCL:
                raise
            shown = await self.lookup(parent_inode, name, ctx)
        return await self._open(self._nodes[shown.st_ino], flags, ctx.pid), shown

    @handler
    async def open(self, inode: int, flags: int, ctx: RequestContext) -> FileInfo:
        return await self._open(self._nodes[inode], flags, ctx.pid)

    @handler
    async def read(self, fh: int, off: int, size: int) -> bytes:
        node = self._files.node(fh)
        if node.id in self._readers.fresh:
            self._readers.read(node.id, self._files.opener(fh))
        # pyfuse3 takes any buffer; what it is told is bytes.
        return (node.buffer or self._files.buffer(node)).read(off, size)  # type: ignore[return-value]

    @handler
    async def write(self, fh: int, off: int, buf: bytes) -> int:
        node, by = self._files.node(fh), self._files.opener(fh)
        if node.is_mixed or (node.writer is not by and node.writer is not None):
            await self._files.make_way(node, off, off + len(buf), by)
        return self._files.write(node, off, buf, by)

    @handler
    async def flush(self, fh: int) -> None:
        await self._files.save(self._files.node(fh))

    @handler
    async def fsync(self, fh: int, datasync: bool) -> None:
        node = self._files.node(fh)
        await self._files.save(node)
        await node.volume.durability.sync()

    @handler
    async def release(self, fh: int) -> None:
        await self._files.release(fh)

    async def forget(self, inode_list: Sequence[tuple[int, int]]) -> None:
        self._nodes.forget(inode_list)

    # Directories

    @handler
    async def opendir(self, inode: int, ctx: RequestContext) -> int:
        return self._listings.open(inode)

    @handler
    async def readdir(self, fh: int, start_id: int, token: ReaddirToken) -> None:
        self._listings.read(fh, start_id, token)

    @handler
    async def releasedir(self, fh: int) -> None:
        self._listings.close(fh)

    @handler
    async def fsyncdir(self, fh: int, datasync: bool) -> None:
        node = self._listings.node(fh)
        if node is not None:
            await node.volume.durability.sync()

    @handler
    async def statfs(self, ctx: RequestContext) -> StatvfsData:
        there = (v.path for v in self._volumes.values() if v.path.exists())
        return attrs.statfs(next(there, self._folders.home))

    # What several requests share

    async def make_room(self) -> bool:
        """On a full disk: whether some could be made. Not in memory, the kernel asks for that."""
        return any([await volume.durability.make_room() for volume in self._volumes.values()])

    def _is_top(self, inode: int) -> bool:
        return self._top is not None and inode == ROOT

    def _is_capable(self, inode: int) -> bool:
        node = self._nodes.get(inode)
        return node is not None and node.number in node.volume.capable

    def _make(self, parent: int, name: bytes, new: tree.New) -> EntryAttributes:
        directory = self._nodes[parent]
        within = self._nodes.shown(directory)
        if within.st_mode & stat.S_ISGID:
            inherited = stat.S_ISGID if stat.S_ISDIR(new.mode) else 0
            new = new._replace(gid=within.st_gid, mode=new.mode | inherited)
        with directory.volume.database.txn() as txn:
            inode = tree.create(txn, directory.number, name, new, self._now_ns())
        self._directories_changed(directory)
        self._readers.came((parent, name), directory.volume.base | inode.number)
        return self._nodes.remember(directory.volume, inode)

    def _remove(self, parent: int, name: bytes, *, directory: bool, keep: bool = True) -> None:
        within = self._nodes[parent]
        volume = within.volume
        with volume.database.txn() as txn:
            left = tree.remove(
                txn,
                within.number,
                name,
                self._now_ns(),
                directory=directory,
                losing=lambda inode: self._files.losing(volume, inode),
                keep=keep,
            )
        self._directories_changed(within)
        self._nodes.settle(volume, left)
        if left.nlink == 0:
            self._readers.left((parent, name), volume.base | left.number)

    def _directories_changed(self, *directories: Node) -> None:
        for directory in directories:
            directory.attributes = None
            directory.volume.epoch += 1

    async def _open(self, node: Node, flags: int, pid: int) -> FileInfo:
        by, is_fresh = UNKNOWN, node.id in self._readers.fresh
        if is_fresh or flags & os.O_ACCMODE != os.O_RDONLY:
            by = self._processes.of(pid)
        if flags & os.O_TRUNC:
            await self._files.set_size(node, 0, by, alone=False)
        elif is_fresh and flags & os.O_ACCMODE != os.O_WRONLY:
            self._readers.read(node.id, by)
        if flags & os.O_DIRECT:
            node.direct = True
        return FileInfo(fh=self._files.open(node, by), keep_cache=self._files.kept(node))

    def _xattrs_changed(self, node: Node, name: bytes) -> None:
        if node.gone:
            return
        node.attributes = None
        node.volume.epoch += 1
        if name in (CAPABILITY, LABEL):
            node.volume.learn_asked()


def _same_volume(one: Node, two: Node) -> Volume:
    if one.volume is not two.volume:
        raise OtherFolder("files are moved from one folder to another by copying")
    return one.volume
