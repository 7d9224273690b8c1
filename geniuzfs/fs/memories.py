"""The requests for `.memories/`: kept memories as files, and new ones by creating a file.

Promises: a memory is listed and read as any file, its size is right, its time is when it was kept.
What is written to a new file is kept whole by its last close (or by fsync, which then takes no
more), or not at all. Refuses: every other change (EPERM), and text that can't be kept (EINVAL at
close, when whoever wrote it still hears of it, as of a folder that is gone: ENOENT).

Not by flush, which each close of a shared descriptor sends: of `(date; date) > .memories/now` the
first `date` would be kept for good, and the shell itself closes one before it writes.
"""

import errno
import itertools
import logging
import os
import stat
from collections.abc import Iterator

import pyfuse3
import trio
from pyfuse3 import (
    EntryAttributes,
    FileInfo,
    FUSEError,
    ReaddirToken,
    RequestContext,
    SetattrFields,
)

from geniuzfs.errors import (
    Busy,
    GeniuzError,
    NameTooLong,
    NotFound,
    Stale,
    UsageError,
)
from geniuzfs.fs import gists
from geniuzfs.fs.faults import handler
from geniuzfs.fs.places import MEMORIES, Places
from geniuzfs.fs.unchanging import Unchanging
from geniuzfs.fs.virtual import DOTS, VIRTUAL, Directory, Virtual, Virtuals, list_dots, shown
from geniuzfs.fs.volumes import Volume
from geniuzfs.model import NAME_MAX, Memory, MemoryId, Scope
from geniuzfs.names import is_short_lived, is_temporary
from geniuzfs.ports import Clock
from geniuzfs.store import memories

KEPT = VIRTUAL + (1 << 51)
"""Their numbers, and those of their handles, start here: all in the 53 bits of a double."""

KEPT_SECONDS = 1.0
"""How long the kernel may believe that a memory is there."""

DRAFT_MAX = 4 * memories.CONTENT_MAX
"""Bytes of a new memory: more can't be as many characters as are kept."""

PAGE = 64
"""Memories read at once for a listing. The kernel takes some 20 to 60 a request."""

_PAUSE_MAX = 0.5

_log = logging.getLogger(__name__)


class Listed(Directory):
    """`.memories`. The owner's alone, as all that quotes what is in a folder."""

    first = KEPT
    mode = stat.S_IFDIR | 0o700
    __slots__ = ()


class File(Virtual):
    """A kept memory. `within`: its ID."""

    first = KEPT
    mode = stat.S_IFREG | 0o400
    __slots__ = ("length",)

    def __init__(self, scope: Scope, within: bytes, name: bytes) -> None:
        super().__init__(scope, within, name)
        self.length = 0

    @property
    def size(self) -> int:
        return self.length


class Draft(Virtual):
    """A memory that is being written. No name leads to it: each who creates one has its own."""

    first = KEPT
    mode = stat.S_IFREG | 0o600
    __slots__ = ("claimed", "kept", "text", "volume", "whole")

    def __init__(self, scope: Scope, within: bytes, name: bytes) -> None:
        super().__init__(scope, within, name)
        self.text = bytearray()
        self.claimed = 0
        """Bytes of room that it has claimed of `volume`, which may be gone before it is."""
        self.volume: Volume | None = None
        self.kept = False
        self.whole = True
        """Every write so far was taken."""

    @property
    def size(self) -> int:
        return len(self.text)


class Memories(Unchanging):
    """The kept memories of one mount. `known` is shared with the other generated files."""

    def __init__(self, known: Virtuals, places: Places, clock: Clock) -> None:
        self._known = known
        self._places = places
        self._now_ns = clock.now_ns
        self._files: dict[int, bytes | Draft] = {}
        self._directories: dict[int, Listed] = {}
        self._handles = itertools.count(KEPT)

    def directory(self, scope: Scope) -> Listed:
        """`.memories` in the top of a folder, or in the mount's own."""
        made = self._known.called(Listed, scope, b"", MEMORIES)
        newest = (memories.newest_ns(volume.view) for volume in self._places.volumes(scope))
        made.time_ns = max(newest, default=0)
        return made

    # Names

    @handler
    async def lookup(self, parent_inode: int, name: bytes, ctx: RequestContext) -> EntryAttributes:
        found = self._found(self._known[parent_inode].scope, name)
        if found is None:
            raise NotFound("no memory has this name")
        file = self._file(*found)
        attributes = self._shown(file)
        file.lookups += 1
        return attributes

    @handler
    async def create(
        self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: RequestContext
    ) -> tuple[FileInfo, EntryAttributes]:
        scope = self._known[parent_inode].scope
        if len(name) > NAME_MAX:
            raise NameTooLong("a name is too long")
        passing = name.startswith(b".") or is_temporary(name) or is_short_lived(name)
        if scope.folder is None or passing or self._found(scope, name) is not None:
            raise FUSEError(errno.EPERM)
        parent = gists.wanted(name).parent
        if parent is not None and memories.one(self._volume(scope).view, parent) is None:
            raise NotFound("there is no such memory to continue")  # before anything is written
        draft = self._known.renewed(Draft, scope, b"", name)
        draft.time_ns = self._now_ns()
        draft.lookups = draft.opens = 1
        handle = next(self._handles)
        self._files[handle] = draft
        return FileInfo(fh=handle, direct_io=True), self._shown(draft)

    # Attributes

    @handler
    async def getattr(self, inode: int, ctx: RequestContext) -> EntryAttributes:
        node = self._known[inode]
        return self._shown(self.directory(node.scope) if isinstance(node, Listed) else node)

    @handler
    async def setattr(
        self,
        inode: int,
        attr: EntryAttributes,
        fields: SetattrFields,
        fh: int | None,
        ctx: RequestContext,
    ) -> EntryAttributes:
        """Of a draft the length. Modes and times, which `cp -p` sets, are those of a memory."""
        draft = self._known[inode]
        if not isinstance(draft, Draft) or (fields.update_size and draft.kept):
            raise FUSEError(errno.EPERM)
        if fields.update_size:
            self._grow(draft, attr.st_size)
            del draft.text[attr.st_size :]
        return self._shown(draft)

    # Files

    @handler
    async def open(self, inode: int, flags: int, ctx: RequestContext) -> FileInfo:
        node = self._known[inode]
        if not isinstance(node, File) or flags & (os.O_ACCMODE | os.O_TRUNC) != os.O_RDONLY:
            raise FUSEError(errno.EPERM)
        found = memories.memory(self._volume(node.scope).view, MemoryId(node.within.decode()))
        if found is None:
            raise Stale("the memory is gone")
        handle = next(self._handles)
        self._files[handle] = _text(found)
        return FileInfo(fh=handle, keep_cache=True)

    @handler
    async def read(self, fh: int, off: int, size: int) -> bytes:
        file = self._files[fh]
        return bytes((file.text if isinstance(file, Draft) else file)[off : off + size])

    @handler
    async def write(self, fh: int, off: int, buf: bytes) -> int:
        draft = self._files[fh]
        if not isinstance(draft, Draft):
            raise FUSEError(errno.EBADF)
        if draft.kept:  # by fsync
            raise FUSEError(errno.EPERM)
        self._grow(draft, off + len(buf))
        draft.text[off : off + len(buf)] = buf
        return len(buf)

    @handler
    async def flush(self, fh: int) -> None:
        draft = self._files[fh]
        if isinstance(draft, Draft) and not draft.kept:
            memories.checked(_decoded(draft))
            self._volume(draft.scope)  # its folder may be gone: then nothing is kept

    @handler
    async def fsync(self, fh: int, datasync: bool) -> None:
        draft = self._files[fh]
        if isinstance(draft, Draft):
            self._keep(draft)
            await self._volume(draft.scope).durability.sync()

    @handler
    async def release(self, fh: int) -> None:
        draft = self._files[fh]
        if isinstance(draft, Draft):
            await self._keep_in_the_end(draft)
            draft.opens -= 1
            self._known.let_go(draft)
        del self._files[fh]

    # Directories

    @handler
    async def opendir(self, inode: int, ctx: RequestContext) -> int:
        directory = self._known[inode]
        if not isinstance(directory, Listed):
            raise FUSEError(errno.ENOTDIR)
        handle = next(self._handles)
        self._directories[handle] = directory
        return handle

    @handler
    async def readdir(self, fh: int, start_id: int, token: ReaddirToken) -> None:
        directory = self._directories[fh]
        own = self._shown(self.directory(directory.scope))
        if not list_dots(token, own, start_id):
            return
        if directory.scope.folder is None:  # each is listed once, in its folder
            return
        volume = self._volume(directory.scope)
        for number, memory in _after(volume, max(start_id - DOTS, 0)):
            file = self._file(volume, memory)
            taken = pyfuse3.readdir_reply(
                token, gists.name(memory), self._shown(file), number + DOTS
            )
            file.lookups += taken
            self._known.let_go(file)
            if not taken:
                return

    @handler
    async def releasedir(self, fh: int) -> None:
        del self._directories[fh]

    @handler
    async def fsyncdir(self, fh: int, datasync: bool) -> None:
        scope = self._directories[fh].scope
        if scope.folder is not None:
            await self._volume(scope).durability.sync()

    # What several requests share

    def _volume(self, scope: Scope) -> Volume:
        return self._places.volumes(scope)[0]

    def _found(self, scope: Scope, name: bytes) -> tuple[Volume, Memory] | None:
        """The one memory of that name: `3487B9B0` means one of this folder, an address any."""
        wanted = gists.named(name)
        if wanted is None:
            return None
        among = self._places.volumes(Scope(None) if wanted.folder else scope)
        found = [
            (volume, memory)
            for volume in among
            if volume.folder.upper().startswith(wanted.folder)
            for memory in memories.by_prefix(volume.view, wanted.memory)
        ]
        exact = [each for each in found if gists.name(each[1]) == name]
        best = exact if exact else found
        return best[0] if len(best) == 1 else None

    def _file(self, volume: Volume, memory: Memory) -> File:
        file = self._known.called(File, Scope(volume.folder), memory.id.encode(), b"")
        file.length, file.time_ns = len(_text(memory)), memories.kept_ns(memory.created_at)
        return file

    def _shown(self, node: Virtual) -> EntryAttributes:
        attributes = shown(node, self._places.owner(node.scope), node.time_ns)
        if isinstance(node, File):  # it never changes, and is gone only when it is forgotten
            attributes.entry_timeout = attributes.attr_timeout = KEPT_SECONDS
        return attributes

    def _grow(self, draft: Draft, size: int) -> None:
        """To `size` at least. Raises FUSEError beyond DRAFT_MAX, and StoreFull: then the text is
        not what was meant, until another write is taken.
        """
        draft.whole = False
        if size > DRAFT_MAX:
            raise FUSEError(errno.EFBIG)
        added = size - len(draft.text)
        if added > 0:
            draft.volume = self._volume(draft.scope)
            draft.volume.claim(added)
            draft.claimed += added
            draft.text += bytes(added)
        draft.whole = True

    def _keep(self, draft: Draft) -> None:
        if draft.kept:
            return
        volume, (gist, parent) = self._volume(draft.scope), gists.wanted(draft.name)
        with volume.database.txn() as txn:
            memories.keep(txn, _decoded(draft), gist, parent, self._now_ns())
        draft.kept = True
        volume.saves += 1  # an answer that is being made does not know of it

    async def _keep_in_the_end(self, draft: Draft) -> None:
        """Keep it however long another process holds the lock: nobody could try again."""
        pause = 0.001
        while draft.text:
            try:
                self._keep(draft)
                break
            except Busy:
                await trio.sleep(pause)
                pause = min(2 * pause, _PAUSE_MAX)
            except GeniuzError as error:
                if error.errno != errno.EINVAL:  # of that flush has told
                    _log.error("a memory could not be kept: %s", error)
                break
        if draft.volume is not None:
            draft.volume.unsaved -= draft.claimed


def _after(volume: Volume, number: int) -> Iterator[memories.Numbered]:
    while page := memories.page(volume.view, number, PAGE):
        yield from page
        number = page[-1].number


def _text(memory: Memory) -> bytes:
    """What its file says: a text ends with a newline, and a memory is kept without."""
    return memory.content.encode("utf-8", "replace") + b"\n"


def _decoded(draft: Draft) -> str:
    if not draft.whole:
        raise UsageError("what was to be kept is not all there")
    return draft.text.decode("utf-8", "surrogateescape")
