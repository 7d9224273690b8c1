"""The requests for `.history/`: earlier versions as read-only files, `.history/<path>/<time>`.

Promises: what is listed is real content with its own size and time, which `cp` brings back; a file
or directory that was removed is listed as long as it has versions; an open version reads on, or
fails with ESTALE once it is kept no longer. Refuses: every change (EPERM). Open to the owner of the
folder alone: what is in it may be from directories that let in nobody else.
"""

import errno
import itertools
import os
import stat
from typing import NamedTuple

import pyfuse3
from pyfuse3 import (
    EntryAttributes,
    FileInfo,
    FUSEError,
    ReaddirToken,
    RequestContext,
    SetattrFields,
)

from geniuzfs.errors import NotFound, Stale
from geniuzfs.fs.attrs import TIMEOUT
from geniuzfs.fs.faults import handler
from geniuzfs.fs.places import HISTORY, Places
from geniuzfs.fs.unchanging import Unchanging
from geniuzfs.fs.virtual import DOTS, VIRTUAL, Directory, Virtual, Virtuals, list_dots, shown
from geniuzfs.fs.volumes import Volume
from geniuzfs.model import CHUNK, FolderId, Scope
from geniuzfs.store import histories, versions
from geniuzfs.store.versions import Version

PAST = VIRTUAL + (1 << 50)
"""Their numbers, and those of their handles, start here, below those of memories."""


class Past(Directory):
    """`.history`, and a directory in it. `within`: the path that it is about."""

    first = PAST
    mode = stat.S_IFDIR | 0o500
    __slots__ = ()


class Former(Virtual):
    """A version. `within`: which one."""

    first = PAST
    mode = stat.S_IFREG | 0o400
    __slots__ = ("version",)
    version: Version | None

    @property
    def size(self) -> int:
        return 0 if self.version is None else self.version.size


class _Listed(NamedTuple):
    """An open directory, and the names in it when it was opened."""

    directory: Virtual
    names: list[bytes]


class _Known(NamedTuple):
    """What a folder's histories were as of one state of the folder."""

    state: tuple[int, int, int, int]
    directories: set[bytes]
    versions: dict[bytes, dict[bytes, Version]]


class Histories(Unchanging):
    """The earlier versions in one mount. `known` is shared with the other generated files."""

    def __init__(self, known: Virtuals, places: Places, since_ns: int) -> None:
        self._known = known
        self._places = places
        self._since_ns = since_ns
        self._files: dict[int, Former] = {}
        self._directories: dict[int, _Listed] = {}
        self._handles = itertools.count(PAST)
        self._looked: dict[FolderId | None, _Known] = {}

    def directory(self, scope: Scope) -> Past:
        """`.history` in a folder's top."""
        return self._past(Scope(scope.folder), b"")

    # Names

    @handler
    async def lookup(self, parent_inode: int, name: bytes, ctx: RequestContext) -> EntryAttributes:
        parent = self._known[parent_inode]
        if not isinstance(parent, Past):
            raise FUSEError(errno.ENOTDIR)
        found = self._called(parent, name)
        if found is None:
            raise NotFound("nothing of this name was replaced or removed")
        attributes = self._shown(found)
        found.lookups += 1
        return attributes

    # Attributes

    @handler
    async def getattr(self, inode: int, ctx: RequestContext) -> EntryAttributes:
        return self._shown(self._known[inode])

    @handler
    async def setattr(
        self,
        inode: int,
        attr: EntryAttributes,
        fields: SetattrFields,
        fh: int | None,
        ctx: RequestContext,
    ) -> EntryAttributes:
        raise FUSEError(errno.EPERM)

    # Files

    @handler
    async def open(self, inode: int, flags: int, ctx: RequestContext) -> FileInfo:
        node = self._known[inode]
        if not isinstance(node, Former) or flags & (os.O_ACCMODE | os.O_TRUNC) != os.O_RDONLY:
            raise FUSEError(errno.EPERM)
        self._read(node, 0, 1)
        node.opens += 1
        handle = next(self._handles)
        self._files[handle] = node
        return FileInfo(fh=handle, keep_cache=True)

    @handler
    async def read(self, fh: int, off: int, size: int) -> bytes:
        return self._read(self._files[fh], off, size)

    @handler
    async def release(self, fh: int) -> None:
        node = self._files.pop(fh)
        node.opens -= 1
        self._known.let_go(node)

    # Directories

    @handler
    async def opendir(self, inode: int, ctx: RequestContext) -> int:
        node = self._known[inode]
        if not isinstance(node, Past):
            raise FUSEError(errno.ENOTDIR)
        handle = next(self._handles)
        self._directories[handle] = _Listed(node, self._names(node))
        return handle

    @handler
    async def readdir(self, fh: int, start_id: int, token: ReaddirToken) -> None:
        directory, names = self._directories[fh]
        own = self._shown(directory)
        if not list_dots(token, own, start_id):
            return
        first = max(start_id - DOTS, 0)
        for cookie, name in enumerate(names[first:], first + DOTS + 1):
            found = self._called(directory, name)
            if found is None:  # it is kept no longer
                continue
            taken = pyfuse3.readdir_reply(token, name, self._shown(found), cookie)
            found.lookups += taken
            self._known.let_go(found)
            if not taken:
                return

    @handler
    async def releasedir(self, fh: int) -> None:
        del self._directories[fh]

    # What several requests share

    def _volume(self, scope: Scope) -> Volume:
        return self._places.volumes(scope)[0]

    def _look(self, scope: Scope) -> _Known:
        """What is known of the folder as it is now: to find the directories takes 100 ms where
        100,000 files have versions.
        """
        volume = self._volume(scope)
        known = self._looked.get(scope.folder)
        state = volume.epoch, volume.saves, *versions.oldest_and_newest(volume.view)
        if known is None or known.state != state:
            known = _Known(state, histories.directories(volume.view), {})
            self._looked[scope.folder] = known
        return known

    def _versions(self, scope: Scope, path: bytes) -> dict[bytes, Version]:
        known = self._look(scope).versions
        if path not in known:
            if len(known) > 1_000:
                known.clear()
            known[path] = histories.named(self._volume(scope).view, path) if path else {}
        return known[path]

    def _names(self, directory: Past) -> list[bytes]:
        scope, path = directory.scope, directory.within
        above = path + b"/" if path else b""
        below = {
            one[len(above) :].partition(b"/")[0]
            for one in self._look(scope).directories
            if one.startswith(above) and one != path
        }
        files = histories.names(self._volume(scope).view, path)
        return sorted(below | files) + sorted(self._versions(scope, path))

    def _called(self, directory: Virtual, name: bytes) -> Past | Former | None:
        scope, path = directory.scope, directory.within
        beneath = path + b"/" + name if path else name
        if beneath in self._look(scope).directories or self._versions(scope, beneath):
            return self._past(scope, beneath)
        version = self._versions(scope, path).get(name)
        if version is None or not versions.is_there(self._volume(scope).view, version):
            return None
        return self._former(scope, version)

    def _past(self, scope: Scope, path: bytes) -> Past:
        made = self._known.called(Past, scope, path, HISTORY)
        newest = self._versions(scope, path).values() if path else ()
        made.time_ns = max((one.replaced_ns for one in newest), default=self._since_ns)
        return made

    def _former(self, scope: Scope, version: Version) -> Former:
        within = b"%d %d" % (version.id, version.replaced_ns)  # an id may be used again
        made = self._known.called(Former, scope, within, b"")
        made.version, made.time_ns = version, version.mtime_ns
        return made

    def _shown(self, node: Virtual) -> EntryAttributes:
        attributes = shown(node, self._places.owner(node.scope), node.time_ns)
        if isinstance(node, Former) and node.version is not None:  # it never changes
            attributes.st_mode = stat.S_IFREG | stat.S_IMODE(node.version.mode) & 0o555 | 0o400
            attributes.st_ctime_ns = node.version.replaced_ns
            attributes.entry_timeout = attributes.attr_timeout = TIMEOUT
        return attributes

    def _read(self, node: Former, offset: int, length: int) -> bytes:
        """Raises Stale when the version is kept no longer."""
        version, volume = node.version, self._volume(node.scope)
        if version is None:
            raise Stale("the version is not known")
        end = min(offset + length, version.size)
        with volume.database.snapshot() as view:
            if not versions.is_there(view, version):
                raise Stale("the version is kept no longer")
            if offset >= end:
                return b""
            first, last = offset // CHUNK, (end - 1) // CHUNK
            held = b"".join(versions.read_piece(view, version, n) for n in range(first, last + 1))
        return held[offset - first * CHUNK : end - first * CHUNK]
