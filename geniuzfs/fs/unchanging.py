"""What all that is generated refuses alike: attributes are read and never set, links are none.

Whoever inherits adds what its own files can do.
"""

import errno
from collections.abc import Sequence

from pyfuse3 import FUSEError, RequestContext

from geniuzfs.errors import NoSuchAttribute
from geniuzfs.fs import xattrs
from geniuzfs.fs.faults import handler


class Unchanging:
    """The requests of one kind of generated files; handles are the caller's."""

    @handler
    async def readlink(self, inode: int, ctx: RequestContext) -> bytes:
        raise FUSEError(errno.EINVAL)

    @handler
    async def getxattr(self, inode: int, name: bytes, ctx: RequestContext) -> bytes:
        xattrs.check_name(name)
        raise NoSuchAttribute("nothing here")

    @handler
    async def setxattr(self, inode: int, name: bytes, value: bytes, ctx: RequestContext) -> None:
        xattrs.check_name(name)
        raise FUSEError(errno.EPERM)

    @handler
    async def removexattr(self, inode: int, name: bytes, ctx: RequestContext) -> None:
        xattrs.check_name(name)
        raise FUSEError(errno.EPERM)

    @handler
    async def listxattr(self, inode: int, ctx: RequestContext) -> Sequence[bytes]:
        return []

    @handler
    async def write(self, fh: int, off: int, buf: bytes) -> int:
        raise FUSEError(errno.EBADF)

    @handler
    async def flush(self, fh: int) -> None:
        pass

    @handler
    async def fsync(self, fh: int, datasync: bool) -> None:
        pass

    @handler
    async def fsyncdir(self, fh: int, datasync: bool) -> None:
        pass
