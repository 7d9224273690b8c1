"""The requests for generated files: `.recall`, `.find`, `.status` and what is in them.
(Those for `.memories` and `.history` have modules of their own; that they are there is told here.)

Promises: a question is asked by open(2) and opendir(3), by reading from `.recall/ask`, or
by the name of something found, and by nothing else; an open file says the same until its
last close. Refuses: every change.
"""

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

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

from geniuzfs.errors import NoSuchAttribute, NotFound
from geniuzfs.fs import xattrs
from geniuzfs.fs.answers import Answers
from geniuzfs.fs.asking import Asked
from geniuzfs.fs.counted import COUNTERS, Counted
from geniuzfs.fs.faults import handler
from geniuzfs.fs.finding import Hit, is_ranked
from geniuzfs.fs.histories import Histories
from geniuzfs.fs.inodes import Nodes
from geniuzfs.fs.memories import Memories
from geniuzfs.fs.places import FIND, HISTORY, MEMORIES, RECALL, Places
from geniuzfs.fs.probes import is_probe
from geniuzfs.fs.recalling import Recalling
from geniuzfs.fs.unchanging import Unchanging
from geniuzfs.fs.virtual import (
    DOTS,
    VIRTUAL,
    Answer,
    Ask,
    Find,
    Found,
    Link,
    Recall,
    Status,
    Text,
    Virtual,
    Virtuals,
    list_dots,
    shown,
)
from geniuzfs.model import FOLDER_ATTRIBUTE, Scope

STATE = b"user.geniuz.state"
ATTRIBUTES = frozenset((STATE, FOLDER_ATTRIBUTE, os.fsencode(COUNTERS)))
"""Not listed: `cp -a` and `rsync -X` would try to set them on the copy."""

ASK = b"ask"


class _Listed(NamedTuple):
    """An open directory and what it listed when it was opened."""

    directory: Virtual
    hits: list[Hit]


class Generated(Unchanging):
    """The generated files of one mount. `seconds`: how long an answer may take."""

    def __init__(
        self,
        nodes: Nodes,
        places: Places,
        memories: Memories,
        past: Histories,
        known: Virtuals,
        answers: Answers,
        seconds: float,
        counted: Counted,
    ) -> None:
        self._nodes = nodes
        self._places = places
        self._memories = memories
        self._past = past
        self._recalling = Recalling(self._places, answers, counted, seconds)
        self._known = known
        self._since_ns = counted.since_ns
        """The time that all of them show."""
        self._files: dict[int, Text | Asked] = {}
        self._directories: dict[int, _Listed] = {}
        self._handles = itertools.count(VIRTUAL)

    def end(self) -> None:
        """Whoever waits for an answer waits no longer: the mount ends."""
        self._recalling.end()

    # In real directories

    @handler
    async def lookup_reserved(
        self, parent_inode: int, name: bytes, ctx: RequestContext
    ) -> EntryAttributes:
        """The generated file of that name in a real directory."""
        scope = self._places.scope(parent_inode)
        if name not in self._places.names(scope):
            raise NotFound("generated at the top alone")
        return self._looked_up(self._within(scope, name))

    def list_reserved(self, parent_inode: int, start: int, token: ReaddirToken) -> bool:
        """Tell `token` the generated files of a top that come after cookie `start`; theirs
        are 3 to 6. False when it takes no more.
        """
        scope = self._places.scope(parent_inode)
        for cookie, name in enumerate(self._places.listed(scope), DOTS + 1):
            if start >= cookie or self._places.is_taken(scope, name):
                continue
            if not self._listed(token, name, self._within(scope, name), cookie):
                return False
        return True

    # Names

    @handler
    async def lookup(self, parent_inode: int, name: bytes, ctx: RequestContext) -> EntryAttributes:
        parent = self._known[parent_inode]
        if isinstance(parent, Found):
            return self._looked_up(await self._hit(parent, name))
        if is_probe(name):
            raise NotFound("this is no question")
        if isinstance(parent, Find):
            return self._looked_up(self._known.called(Found, parent.scope, b"", name))
        if name == ASK:
            return self._looked_up(self._known.called(Ask, parent.scope, RECALL, name))
        return self._looked_up(self._text(Answer, parent.scope, name))

    @handler
    async def readlink(self, inode: int, ctx: RequestContext) -> bytes:
        link = self._known[inode]
        if not isinstance(link, Link):
            raise FUSEError(errno.EINVAL)
        return link.target

    async def forget(self, inode_list: Sequence[tuple[int, int]]) -> None:
        self._known.forget(inode_list)

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
        node = self._known[inode]
        others = (fields.update_mode, fields.update_uid, fields.update_gid)
        times = (fields.update_atime, fields.update_mtime)
        if not isinstance(node, Ask) or any(others) or any(times):
            raise FUSEError(errno.EROFS)
        return self._shown(node)  # a shell's > cuts it before it writes

    @handler
    async def getxattr(self, inode: int, name: bytes, ctx: RequestContext) -> bytes:
        """Of real files as well; and the counters of the mount's own directory."""
        xattrs.check_name(name)
        if name == os.fsencode(COUNTERS) and inode == pyfuse3.ROOT_INODE:
            return self._recalling.counters()
        if name not in (STATE, FOLDER_ATTRIBUTE) or inode >= VIRTUAL or self._places.is_top(inode):
            raise NoSuchAttribute("nothing here")
        node = self._nodes[inode]
        if name == FOLDER_ATTRIBUTE:
            return node.volume.folder.encode()
        if node.gone or not stat.S_ISREG(self._nodes.shown(node).st_mode):
            raise NoSuchAttribute("only a file that has a name is learned")
        return await self._recalling.state(node)

    # Files

    @handler
    async def open(self, inode: int, flags: int, ctx: RequestContext) -> FileInfo:
        node = self._known[inode]
        handle = next(self._handles)
        if isinstance(node, Ask):
            self._files[handle] = self._asked(node.scope)
            return FileInfo(fh=handle, direct_io=True)
        if not isinstance(node, Text) or flags & (os.O_ACCMODE | os.O_TRUNC) != os.O_RDONLY:
            raise FUSEError(errno.EROFS)
        node.opens += 1
        try:
            if await self._recalling.fill(node) and node.text:
                await trio.to_thread.run_sync(_tell_size, inode, node.text)
        except BaseException:
            self._close(node)
            raise
        self._files[handle] = node
        return FileInfo(fh=handle, keep_cache=False)

    @handler
    async def read(self, fh: int, off: int, size: int) -> bytes:
        file = self._files[fh]
        if isinstance(file, Asked):
            return await file.read(off, size)
        return (file.text or b"")[off : off + size]

    @handler
    async def write(self, fh: int, off: int, buf: bytes) -> int:
        file = self._files[fh]
        if not isinstance(file, Asked):
            raise FUSEError(errno.EBADF)
        return file.write(off, buf)

    @handler
    async def release(self, fh: int) -> None:
        file = self._files.pop(fh)
        if isinstance(file, Text):
            self._close(file)

    # Directories

    @handler
    async def opendir(self, inode: int, ctx: RequestContext) -> int:
        node = self._known[inode]
        hits = await self._recalling.listed(node) if isinstance(node, Found) else []
        handle = next(self._handles)
        self._directories[handle] = _Listed(node, hits)
        return handle

    @handler
    async def readdir(self, fh: int, start_id: int, token: ReaddirToken) -> None:
        directory, hits = self._directories[fh]
        own = self._shown(directory)
        if not list_dots(token, own, start_id):
            return
        first = max(start_id - DOTS, 0)
        for cookie, hit in enumerate(hits[first:], first + DOTS + 1):
            if not self._listed(token, hit.name, self._link(directory, hit), cookie):
                return

    @handler
    async def releasedir(self, fh: int) -> None:
        del self._directories[fh]

    # What several requests share

    def _within(self, scope: Scope, name: bytes) -> Virtual:
        if name == RECALL:
            return self._known.called(Recall, scope, b"", name)
        if name == FIND:
            return self._known.called(Find, scope, b"", name)
        if name == MEMORIES:
            return self._memories.directory(scope)
        if name == HISTORY:
            return self._past.directory(scope)
        return self._text(Status, scope, name)

    def _text(self, kind: type[Text], scope: Scope, name: bytes) -> Text:
        """The file of that name. While somebody has one open whose text must not be given to
        others any more, they get another: all who have one file open share what it says.
        """
        node = self._known.called(kind, scope, b"", name)
        if self._recalling.may_share(node):
            return node
        return self._known.renewed(kind, scope, b"", name)

    async def _hit(self, found: Found, name: bytes) -> Link:
        hit = await self._recalling.hit(found, name) if is_ranked(name) else None
        if hit is None:
            raise NotFound("nothing was found under this name")
        return self._link(found, hit)

    def _link(self, found: Virtual, hit: Hit) -> Link:
        link = self._known.called(Link, found.scope, found.name, hit.name)
        if link.target and link.target != hit.target:  # the kernel keeps where a link points
            link = self._known.renewed(Link, found.scope, found.name, hit.name)
        link.target = hit.target
        return link

    def _asked(self, scope: Scope) -> Asked:
        async def answer(question: bytes) -> bytes:
            return await self._recalling.answer(scope, question)

        return Asked(answer)

    def _shown(self, node: Virtual) -> EntryAttributes:
        return shown(node, self._places.owner(node.scope), node.time_ns or self._since_ns)

    def _looked_up(self, node: Virtual) -> EntryAttributes:
        attributes = self._shown(node)
        node.lookups += 1
        return attributes

    def _listed(self, token: ReaddirToken, name: bytes, node: Virtual, cookie: int) -> bool:
        taken = pyfuse3.readdir_reply(token, name, self._shown(node), cookie)
        node.lookups += taken
        self._known.let_go(node)
        return taken

    def _close(self, node: Text) -> None:
        node.opens -= 1
        if not node.opens:
            node.close()
            self._known.let_go(node)


def _tell_size(inode: int, text: bytes) -> None:
    """Let the kernel know at once how long `text` is, for programs that read by sendfile,
    splice or copy_file_range without a stat after open(2): busybox cat read it as empty. In a
    thread, like all that locks pages. open(2) drops what is stored when it is answered.
    """
    with contextlib.suppress(OSError):  # those programs then see an empty file
        pyfuse3.notify_store(inode, len(text) - 1, text[-1:])
