"""The bare floor: the least pyfuse3 file system that can run the bench, kept in memory.

It shows what pyfuse3 and trio cost by themselves, with pyfuse3's stock wait and no store, and so
what geniuzfs can be compared with. It promises nothing else: no links, owners, xattrs (the first
getxattr is answered ENOSYS, which saves every later write a request) or rename flags.

    python floor.py MOUNTPOINT [--timeout 0|60] [--commit PATH]

--timeout is the kernel's entry, attribute and negative-entry timeout in seconds; above 0 an
opening also keeps the page cache. --commit makes each flush or fsync of changed bytes one
autocommitted UPSERT on the loop (WAL, synchronous NORMAL). fsync never waits for the disk.
Ends, exit status 0, on SIGTERM, SIGINT or when unmounted.
"""

import argparse
import errno
import itertools
import os
import signal
import stat
import time
from collections.abc import AsyncIterator, Sequence

import apsw
import pyfuse3
import trio
from pyfuse3 import EntryAttributes, FileInfo, FUSEError, RequestContext

FLOOR_CAPACITY_BLOCKS = 1 << 20


class Node:
    """One inode: its ready-made attributes, and bytes or children."""

    __slots__ = ("attr", "children", "content", "dirty", "lookups")

    def __init__(self, inode: int, mode: int, timeout_s: float) -> None:
        self.attr = attr = EntryAttributes()
        attr.st_ino, attr.st_mode, attr.st_nlink = inode, mode, 1
        attr.st_uid, attr.st_gid, attr.st_blksize = os.getuid(), os.getgid(), 4096
        attr.entry_timeout = attr.attr_timeout = timeout_s
        attr.st_atime_ns = attr.st_mtime_ns = attr.st_ctime_ns = time.time_ns()
        self.children: dict[bytes, Node] = {}
        self.content = bytearray()
        self.dirty = False
        self.lookups = 0

    def changed(self) -> None:
        self.attr.st_size = len(self.content)
        self.attr.st_mtime_ns = self.attr.st_ctime_ns = time.time_ns()
        self.dirty = True


class Floor(pyfuse3.Operations):
    """File handles are inode numbers; a directory's opening is a snapshot of its entries."""

    def __init__(self, timeout_s: float, db: apsw.Connection | None) -> None:
        super().__init__()
        self.timeout_s, self.db = timeout_s, db
        root = Node(pyfuse3.ROOT_INODE, stat.S_IFDIR | 0o755, timeout_s)
        self.nodes = {root.attr.st_ino: root}
        self.numbers = itertools.count(root.attr.st_ino + 1)
        self.listings: dict[int, list[tuple[bytes, Node]]] = {}
        self.missing = EntryAttributes()
        self.missing.st_ino, self.missing.entry_timeout = 0, timeout_s

    def _add(self, parent_inode: int, name: bytes, mode: int) -> Node:
        node = Node(next(self.numbers), mode, self.timeout_s)
        node.lookups = 1
        self.nodes[node.attr.st_ino] = self.nodes[parent_inode].children[name] = node
        return node

    def _remove(self, parent_inode: int, name: bytes) -> None:
        node = self.nodes[parent_inode].children.pop(name)
        node.attr.st_nlink = 0
        if not node.lookups:
            del self.nodes[node.attr.st_ino]

    def _put_down(self, inode: int) -> None:
        node = self.nodes[inode]
        if node.dirty and self.db is not None:
            self.db.execute(
                "INSERT INTO contents VALUES (?, ?)"
                " ON CONFLICT (inode) DO UPDATE SET bytes = excluded.bytes",
                (inode, node.content),
            )
        node.dirty = False

    async def lookup(self, parent_inode: int, name: bytes, ctx: RequestContext) -> EntryAttributes:
        node = self.nodes[parent_inode].children.get(name)
        if node is None:
            if self.timeout_s:
                return self.missing
            raise FUSEError(errno.ENOENT)
        node.lookups += 1
        return node.attr

    async def forget(self, inode_list: Sequence[tuple[int, int]]) -> None:
        for inode, lookups in inode_list:
            node = self.nodes[inode]
            node.lookups -= lookups
            if not node.lookups and not node.attr.st_nlink:
                del self.nodes[inode]

    async def getattr(self, inode: int, ctx: RequestContext) -> EntryAttributes:
        return self.nodes[inode].attr

    async def setattr(
        self,
        inode: int,
        attr: EntryAttributes,
        fields: pyfuse3.SetattrFields,
        fh: int | None,
        ctx: RequestContext,
    ) -> EntryAttributes:
        node = self.nodes[inode]
        if fields.update_size:
            del node.content[attr.st_size :]
            node.content.extend(bytes(attr.st_size - len(node.content)))
            node.changed()
        if fields.update_atime:
            node.attr.st_atime_ns = attr.st_atime_ns
        if fields.update_mtime:
            node.attr.st_mtime_ns = attr.st_mtime_ns
        return node.attr

    async def mkdir(
        self, parent_inode: int, name: bytes, mode: int, ctx: RequestContext
    ) -> EntryAttributes:
        return self._add(parent_inode, name, mode).attr

    async def create(
        self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        node = self._add(parent_inode, name, mode)
        return FileInfo(fh=node.attr.st_ino, keep_cache=self.timeout_s > 0), node.attr

    async def unlink(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        self._remove(parent_inode, name)

    async def rmdir(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        if self.nodes[parent_inode].children[name].children:
            raise FUSEError(errno.ENOTEMPTY)
        self._remove(parent_inode, name)

    async def rename(
        self,
        parent_inode_old: int,
        name_old: bytes,
        parent_inode_new: int,
        name_new: bytes,
        flags: int,
        ctx: RequestContext,
    ) -> None:
        if flags:
            raise FUSEError(errno.EINVAL)
        node = self.nodes[parent_inode_old].children.pop(name_old)
        if name_new in self.nodes[parent_inode_new].children:
            self._remove(parent_inode_new, name_new)
        self.nodes[parent_inode_new].children[name_new] = node

    async def open(self, inode: int, flags: int, ctx: RequestContext) -> FileInfo:
        if flags & os.O_TRUNC:
            self.nodes[inode].content.clear()
            self.nodes[inode].changed()
        return FileInfo(fh=inode, keep_cache=self.timeout_s > 0)

    async def read(self, fh: int, off: int, size: int) -> bytes:
        return bytes(memoryview(self.nodes[fh].content)[off : off + size])

    async def write(self, fh: int, off: int, buf: bytes) -> int:
        node = self.nodes[fh]
        if off > len(node.content):
            node.content.extend(bytes(off - len(node.content)))
        node.content[off : off + len(buf)] = buf
        node.changed()
        return len(buf)

    async def flush(self, fh: int) -> None:
        self._put_down(fh)

    async def fsync(self, fh: int, datasync: bool) -> None:
        self._put_down(fh)

    async def release(self, fh: int) -> None:
        pass

    async def opendir(self, inode: int, ctx: RequestContext) -> int:
        fh = next(self.numbers)
        self.listings[fh] = list(self.nodes[inode].children.items())
        return fh

    async def readdir(self, fh: int, start_id: int, token: pyfuse3.ReaddirToken) -> None:
        listing = self.listings[fh]
        for index in range(start_id, len(listing)):
            name, node = listing[index]
            if not pyfuse3.readdir_reply(token, name, node.attr, index + 1):
                return
            node.lookups += 1
            self.nodes[node.attr.st_ino] = node

    async def releasedir(self, fh: int) -> None:
        del self.listings[fh]

    async def statfs(self, ctx: RequestContext) -> pyfuse3.StatvfsData:
        data = pyfuse3.StatvfsData()
        data.f_bsize = data.f_frsize = 4096
        data.f_blocks = data.f_bfree = data.f_bavail = FLOOR_CAPACITY_BLOCKS
        data.f_files = data.f_ffree = data.f_favail = FLOOR_CAPACITY_BLOCKS
        data.f_namemax = 255
        return data


def open_database(path: str) -> apsw.Connection:
    db = apsw.Connection(path)
    for setting in ("journal_mode = WAL", "synchronous = NORMAL"):
        db.execute(f"PRAGMA {setting}").fetchall()  # apsw runs no further than the first row
    db.execute("CREATE TABLE IF NOT EXISTS contents (inode INTEGER PRIMARY KEY, bytes BLOB)")
    return db


async def terminate_on(signals: AsyncIterator[int]) -> None:
    async for _ in signals:
        pyfuse3.terminate()


async def serve() -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(terminate_on, signals)
            await pyfuse3.main()
            nursery.cancel_scope.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description="The bare in-memory pyfuse3 floor.")
    parser.add_argument("mountpoint")
    parser.add_argument("--timeout", type=float, default=0.0, help="kernel cache timeout, seconds")
    parser.add_argument("--commit", metavar="PATH", help="commit changed bytes to this database")
    args = parser.parse_args()
    db = open_database(args.commit) if args.commit else None
    options = set(pyfuse3.default_options) | {"fsname=bench-floor"}
    pyfuse3.init(Floor(args.timeout, db), args.mountpoint, options)
    try:
        trio.run(serve)
    finally:
        pyfuse3.close(unmount=True)


if __name__ == "__main__":
    main()
