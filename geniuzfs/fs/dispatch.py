"""Which requests are for real files and which for generated ones.

Hides: that there are several kinds. Their numbers and those of their handles tell them apart, and
a look at the name tells the few that are reserved, so a request for a real file pays 0.04 us
of some 10. Refuses: making or renaming anything to a reserved name
(EPERM) and any change beneath a generated directory (EROFS; of memories and versions, which are
kept as they are, EPERM), but for a new file in `.memories`.
"""

import contextlib
import errno
from collections.abc import Coroutine, Iterator, Sequence
from typing import Any, TypeVar

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

from geniuzfs.fs.generated import ATTRIBUTES, Generated
from geniuzfs.fs.histories import PAST, Histories
from geniuzfs.fs.memories import KEPT, Memories
from geniuzfs.fs.operations import Operations
from geniuzfs.fs.places import RESERVED
from geniuzfs.fs.virtual import VIRTUAL

_R = TypeVar("_R")
_Reply = Coroutine[Any, Any, _R]


class Dispatch(pyfuse3.Operations):
    """One mount: `real` files and those that are `generated`."""

    def __init__(
        self, real: Operations, generated: Generated, memories: Memories, past: Histories
    ) -> None:
        super().__init__()
        self._real = real
        self._generated = generated
        self._memories = memories
        self._past = past

    def _other(self, number: int) -> Generated | Memories | Histories:
        if number >= KEPT:
            return self._memories
        return self._past if number >= PAST else self._generated

    # pyfuse3 awaits what it is given, so what only passes a request on need not be async. Each is
    # written out: a common one with *args and **kwargs cost 0.2 us.

    # Names

    def lookup(
        self, parent_inode: int, name: bytes, ctx: RequestContext
    ) -> _Reply[EntryAttributes]:
        if parent_inode >= VIRTUAL:
            return self._other(parent_inode).lookup(parent_inode, name, ctx)
        if name in RESERVED:
            return self._lookup_reserved(parent_inode, name, ctx)
        return self._real.lookup(parent_inode, name, ctx)

    async def _lookup_reserved(
        self, parent_inode: int, name: bytes, ctx: RequestContext
    ) -> EntryAttributes:
        shown = await self._real.lookup(parent_inode, name, ctx)
        if shown.st_ino:  # made by another program: what people have kept is not hidden
            return shown
        return await self._generated.lookup_reserved(parent_inode, name, ctx)

    def mknod(
        self, parent_inode: int, name: bytes, mode: int, rdev: int, ctx: RequestContext
    ) -> _Reply[EntryAttributes]:
        _check_new(parent_inode, name)
        return self._real.mknod(parent_inode, name, mode, rdev, ctx)

    def mkdir(
        self, parent_inode: int, name: bytes, mode: int, ctx: RequestContext
    ) -> _Reply[EntryAttributes]:
        _check_new(parent_inode, name)
        return self._real.mkdir(parent_inode, name, mode, ctx)

    def symlink(
        self, parent_inode: int, name: bytes, target: bytes, ctx: RequestContext
    ) -> _Reply[EntryAttributes]:
        _check_new(parent_inode, name)
        return self._real.symlink(parent_inode, name, target, ctx)

    def create(
        self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: RequestContext
    ) -> _Reply[tuple[FileInfo, EntryAttributes]]:
        if parent_inode >= KEPT:
            return self._memories.create(parent_inode, name, mode, flags, ctx)
        _check_new(parent_inode, name)
        return self._real.create(parent_inode, name, mode, flags, ctx)

    def link(
        self, inode: int, new_parent_inode: int, new_name: bytes, ctx: RequestContext
    ) -> _Reply[EntryAttributes]:
        _check_new(new_parent_inode, new_name)
        if inode >= VIRTUAL:
            raise FUSEError(errno.EPERM)
        return self._real.link(inode, new_parent_inode, new_name, ctx)

    async def unlink(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        _check_there(parent_inode)
        with _refusing(name):
            await self._real.unlink(parent_inode, name, ctx)

    async def rmdir(self, parent_inode: int, name: bytes, ctx: RequestContext) -> None:
        _check_there(parent_inode)
        with _refusing(name):
            await self._real.rmdir(parent_inode, name, ctx)

    async def rename(
        self,
        parent_inode_old: int,
        name_old: bytes,
        parent_inode_new: int,
        name_new: bytes,
        flags: int,
        ctx: RequestContext,
    ) -> None:
        _check_there(parent_inode_old)
        _check_new(parent_inode_new, name_new)
        with _refusing(name_old):
            await self._real.rename(
                parent_inode_old, name_old, parent_inode_new, name_new, flags, ctx
            )

    async def forget(self, inode_list: Sequence[tuple[int, int]]) -> None:
        await self._real.forget(inode_list)
        await self._generated.forget(inode_list)

    def readlink(self, inode: int, ctx: RequestContext) -> _Reply[bytes]:
        chosen = self._real if inode < VIRTUAL else self._other(inode)
        return chosen.readlink(inode, ctx)

    # Attributes

    def getattr(self, inode: int, ctx: RequestContext) -> _Reply[EntryAttributes]:
        chosen = self._real if inode < VIRTUAL else self._other(inode)
        return chosen.getattr(inode, ctx)

    def setattr(
        self,
        inode: int,
        attr: EntryAttributes,
        fields: SetattrFields,
        fh: int | None,
        ctx: RequestContext,
    ) -> _Reply[EntryAttributes]:
        chosen = self._real if inode < VIRTUAL else self._other(inode)
        return chosen.setattr(inode, attr, fields, fh, ctx)

    def getxattr(self, inode: int, name: bytes, ctx: RequestContext) -> _Reply[bytes]:
        chosen = self._real if inode < VIRTUAL and name not in ATTRIBUTES else self._other(inode)
        return chosen.getxattr(inode, name, ctx)

    def setxattr(self, inode: int, name: bytes, value: bytes, ctx: RequestContext) -> _Reply[None]:
        chosen = self._real if inode < VIRTUAL and name not in ATTRIBUTES else self._other(inode)
        return chosen.setxattr(inode, name, value, ctx)

    def removexattr(self, inode: int, name: bytes, ctx: RequestContext) -> _Reply[None]:
        chosen = self._real if inode < VIRTUAL and name not in ATTRIBUTES else self._other(inode)
        return chosen.removexattr(inode, name, ctx)

    def listxattr(self, inode: int, ctx: RequestContext) -> _Reply[Sequence[bytes]]:
        chosen = self._real if inode < VIRTUAL else self._other(inode)
        return chosen.listxattr(inode, ctx)

    # Files

    def open(self, inode: int, flags: int, ctx: RequestContext) -> _Reply[FileInfo]:
        chosen = self._real if inode < VIRTUAL else self._other(inode)
        return chosen.open(inode, flags, ctx)

    def read(self, fh: int, off: int, size: int) -> _Reply[bytes]:
        chosen = self._real if fh < VIRTUAL else self._other(fh)
        return chosen.read(fh, off, size)

    def write(self, fh: int, off: int, buf: bytes) -> _Reply[int]:
        chosen = self._real if fh < VIRTUAL else self._other(fh)
        return chosen.write(fh, off, buf)

    def flush(self, fh: int) -> _Reply[None]:
        chosen = self._real if fh < VIRTUAL else self._other(fh)
        return chosen.flush(fh)

    def fsync(self, fh: int, datasync: bool) -> _Reply[None]:
        chosen = self._real if fh < VIRTUAL else self._other(fh)
        return chosen.fsync(fh, datasync)

    def release(self, fh: int) -> _Reply[None]:
        chosen = self._real if fh < VIRTUAL else self._other(fh)
        return chosen.release(fh)

    # Directories

    def opendir(self, inode: int, ctx: RequestContext) -> _Reply[int]:
        chosen = self._real if inode < VIRTUAL else self._other(inode)
        return chosen.opendir(inode, ctx)

    def readdir(self, fh: int, start_id: int, token: ReaddirToken) -> _Reply[None]:
        chosen = self._real if fh < VIRTUAL else self._other(fh)
        return chosen.readdir(fh, start_id, token)

    def releasedir(self, fh: int) -> _Reply[None]:
        chosen = self._real if fh < VIRTUAL else self._other(fh)
        return chosen.releasedir(fh)

    def fsyncdir(self, fh: int, datasync: bool) -> _Reply[None]:
        chosen = self._real if fh < VIRTUAL else self._other(fh)
        return chosen.fsyncdir(fh, datasync)

    def statfs(self, ctx: RequestContext) -> _Reply[StatvfsData]:
        return self._real.statfs(ctx)


def _check_there(parent_inode: int) -> None:
    if parent_inode >= PAST:
        raise FUSEError(errno.EPERM)
    if parent_inode >= VIRTUAL:
        raise FUSEError(errno.EROFS)


def _check_new(parent_inode: int, name: bytes) -> None:
    _check_there(parent_inode)
    if name in RESERVED:
        raise FUSEError(errno.EPERM)


@contextlib.contextmanager
def _refusing(name: bytes) -> Iterator[None]:
    """That a reserved name has nothing real means that what is there is generated: EPERM."""
    try:
        yield
    except FUSEError as error:
        if name in RESERVED and error.errno == errno.ENOENT:
            raise FUSEError(errno.EPERM) from None
        raise
