"""Open files: who has what open, and how what they write is saved.

Hides: when bytes go from buffers into the database, and on which connection.
Promises: all openers of a file share one buffer; a save is one transaction with
bytes, size and times, and the mark that learning is due; a save that fails leaves the old text in
the database and the new in the buffer. Refuses: content above the limit
(FileTooLarge) and writes that the disk has no room for (StoreFull). What one process has not saved
is saved before another cuts it or writes over it: then both texts are versions.
"""

import contextlib
import functools
import logging
import stat
from collections.abc import Callable

import pyfuse3
import trio

from geniuzfs.errors import Busy, GeniuzError, Stale, StoreFull
from geniuzfs.fs import xattrs
from geniuzfs.fs.attrs import blocks
from geniuzfs.fs.buffers import Buffer
from geniuzfs.fs.inodes import Node, Nodes
from geniuzfs.fs.readers import Readers
from geniuzfs.fs.volumes import Volume
from geniuzfs.model import CHUNK, NOBODY, Inode
from geniuzfs.processes import UNKNOWN, Process, Processes
from geniuzfs.store import content, tree

INLINE_BYTES = 1024 * 1024
"""Saves up to here are committed on the loop (2 ms for 1 MiB, 30 us for 2 KiB, where a
thread costs 100); larger ones in a thread, so that nobody's read waits for them.
"""

_EVER = 1 << 63

_log = logging.getLogger(__name__)


class Files:
    """The open files of a mount. `content_limit`: bytes that one may hold."""

    def __init__(
        self,
        nodes: Nodes,
        now_ns: Callable[[], int],
        content_limit: int,
        readers: Readers | None = None,
    ) -> None:
        self._nodes = nodes
        self._now_ns = now_ns
        self._limit = content_limit
        self.readers = readers or Readers(Processes())
        self._handles: dict[int, Node] = {}
        self._openers: dict[int, Process] = {}
        self._next = 1
        self.unsaved: dict[Node, float] = {}
        """Node → trio's time at its first unsaved write."""
        self._some_unsaved = trio.Event()
        self._undone: set[int] = set()
        self._refused: set[Node] = set()
        """Those whose last write found no room: saved now, half a text would replace the old."""

    def open(self, node: Node, opener: Process = UNKNOWN) -> int:
        """A new handle for `node`, opened by this process."""
        handle = self._next
        self._next += 1
        self._handles[handle] = node
        self._openers[handle] = opener
        node.opens += 1
        return handle

    def node(self, handle: int) -> Node:
        return self._handles[handle]

    def opener(self, handle: int) -> Process:
        """Who opened it: whoever writes through a descriptor does it for that one."""
        return self._openers[handle]

    def buffer(self, node: Node) -> Buffer:
        """The buffer that all openers of `node` share."""
        if node.buffer is None:
            if node.gone:  # by another process: what is not in memory is lost, and is no hole
                raise Stale(f"inode {node.number} was removed by another process")
            shown = self._nodes.shown(node)
            view, number, size = node.volume.view, node.number, shown.st_size
            load = functools.partial(_load, node)
            if size > CHUNK:
                node.buffer = Buffer(size, content.lengths(view, number), load, self._limit)
            else:  # one look instead of two: this is nearly every file
                piece = content.piece(view, number, 0)
                node.buffer = Buffer(size, {0: len(piece)} if piece else {}, load, self._limit)
                node.buffer.adopt({0: piece})
        return node.buffer

    async def make_way(self, node: Node, offset: int, end: int, by: Process) -> None:
        """Save what another process than `by` has not saved yet, where a write from `offset` to
        `end` would take it away. Raises as `save` does.
        """
        if node.buffer is not None and node.buffer.disturbs(offset, end, by):
            await self.save(node)

    def write(self, node: Node, offset: int, data: bytes, by: Process = UNKNOWN) -> int:
        """Put bytes into the buffer; saved by flush, fsync or release."""
        buffer = self.buffer(node)
        added = buffer.growth(offset, len(data)) if data else 0
        if added and buffer.stored + added <= self._limit and not node.gone:
            try:
                node.volume.claim(added)
            except StoreFull:
                self._refused.add(node)
                raise
            node.claimed += added
        if buffer.replaces(offset) and by not in node.replacing:
            node.replacing.append(by)
        if node.writer is not by:
            node.is_mixed = node.writer is not None
            node.writer = by
        buffer.write(offset, data, by)
        self._refused.discard(node)
        self._touched(node, buffer)
        return len(data)

    def truncate(self, node: Node, size: int, by: Process = UNKNOWN) -> None:
        """Cut or grow the buffer; saved like a write."""
        buffer = self.buffer(node)
        if buffer.replaces(size) and by not in node.replacing:
            node.replacing.append(by)
        if node.writer is not by:
            node.is_mixed = node.writer is not None
            node.writer = by
        buffer.truncate(size)
        self._refused.discard(node)
        self._touched(node, buffer)

    async def set_size(self, node: Node, size: int, by: Process, *, alone: bool) -> None:
        """ftruncate(2) is part of the save its handle ends with; truncate(2), which comes `alone`,
        is one of its own.
        """
        await self.make_way(node, size, _EVER, by)
        self.truncate(node, size, by)
        if alone:
            try:
                await self.save(node)
            finally:  # what could not be saved was not done
                self.close_unopened(node)

    def losing(self, volume: Volume, inode: Inode) -> None:
        """Bring all of an open file into memory before its row goes."""
        node = self._nodes.get(volume.base | inode.number)
        if node is not None and node.opens and not node.gone:
            self.buffer(node).load_all()
        if node is not None and (node.opens or stat.S_ISDIR(inode.mode)):
            xattrs.keep(node)

    async def save(self, node: Node) -> None:
        """Put down what is unsaved, in one transaction. Raises Busy, StoreFull, StoreFault."""
        while node.saving is not None:  # a large save of this file is on its way
            await node.saving.wait()
        buffer = node.buffer
        if buffer is None or not buffer.changed or node.gone:
            return
        if node in self._refused:
            raise StoreFull("what was to be written is not all there")
        if buffer.unsaved_bytes() > INLINE_BYTES:
            await self._save_in_thread(node, buffer)
        else:
            self._save_inline(node, buffer)

    async def release(self, handle: int) -> None:
        """Close a handle. Saves first: a mapping may have been written to after the last flush."""
        node = self._handles[handle]
        try:
            await self.save(node)
        except Busy:
            raise  # the handle stays, and with it what is unsaved: the request is run again
        except GeniuzError as error:
            _log.error("inode %d could not be saved at its last close: %s", node.number, error)
        del self._handles[handle], self._openers[handle]
        node.opens -= 1
        if not node.opens and self._drop(node):
            # The kernel was told of what is not so: the bytes it keeps, the size, the time.
            self._undone.add(node.id)
            await trio.to_thread.run_sync(_invalidate, node.id)
            self._undone.discard(node.id)

    def kept(self, node: Node) -> bool:
        """Whether the bytes of `node` that the kernel keeps are true."""
        return node.id not in self._undone and not node.direct

    def close_unopened(self, node: Node) -> None:
        """Let go of the buffer of a file that nobody has open."""
        if not node.opens:
            self._drop(node)

    async def save_moved(self, directory: Node, name: bytes) -> None:
        """Put down what a file has unsaved before it is renamed. Else a name whose file is
        replaced by one that is still open would stand for no bytes at all when the daemon is
        killed before the close (ext4's auto_da_alloc is for the same programs).
        """
        if self.unsaved:
            moved = tree.child(directory.volume.view, directory.number, name)
            node = None if moved is None else self._nodes.get(directory.volume.base | moved.number)
            if node is not None:
                await self.save(node)

    def set_fields(self, node: Node, wanted: tree.Fields) -> None:
        """Set attributes. Raises NotFound."""
        if node.gone:
            self._set_gone(node, wanted, self._now_ns())
            return
        if wanted.mtime_ns is not None:
            node.mtime_ns = wanted.mtime_ns  # it holds against the time of an unsaved write
        with node.volume.database.txn() as txn:
            inode = tree.change(txn, node.number, wanted, self._now_ns())
        self._nodes.show(node, inode)

    def _set_gone(self, node: Node, wanted: tree.Fields, now_ns: int) -> None:
        """Of a file that has no row any more and that only its openers see."""
        shown = self._nodes.shown(node)
        for name, value in zip(
            ("st_mode", "st_uid", "st_gid", "st_atime_ns", "st_mtime_ns"), wanted, strict=True
        ):
            if value is not None:
                setattr(shown, name, value)
        shown.st_ctime_ns = now_ns

    async def wait_unsaved(self) -> None:
        """Return when some file has unsaved bytes."""
        if not self.unsaved:
            self._some_unsaved = trio.Event()
            await self._some_unsaved.wait()

    def refresh(self, node: Node) -> None:
        """Another process changed the file: show its bytes, unless there are unsaved ones here."""
        if node.gone:
            return
        inode = tree.inode(node.volume.view, node.number)
        if inode is None:
            node.gone = node.attributes is not None
            if node.attributes is not None:
                node.attributes.st_nlink = 0
            return
        shown, node.attributes = node.attributes, None
        if shown is not None and (shown.st_size, shown.st_mtime_ns) != (inode.size, inode.mtime_ns):
            self.readers.wrote(node.id, None)
        if node.buffer is not None and not node.buffer.changed and node.saving is None:
            node.buffer = None

    def _touched(self, node: Node, buffer: Buffer) -> None:
        now_ns = node.mtime_ns = self._now_ns()
        shown = node.attributes
        if shown is not None:
            shown.st_size = buffer.size
            shown.st_blocks = blocks(buffer.stored)
            shown.st_mtime_ns = shown.st_ctime_ns = now_ns
        if node not in self.unsaved and not node.gone:
            self.unsaved[node] = trio.current_time()
            self._some_unsaved.set()

    def _save_inline(self, node: Node, buffer: Buffer) -> None:
        by = node.writer, node.is_mixed, node.replacing
        new = self._begin(node, buffer)
        saved = False
        try:
            with node.volume.database.txn() as txn:
                content.save(txn, node.number, new)
            saved = True
        finally:
            self._end(node, buffer, saved, *by)

    async def _save_in_thread(self, node: Node, buffer: Buffer) -> None:
        by = node.writer, node.is_mixed, node.replacing
        new = self._begin(node, buffer)
        saved, done = False, trio.Event()
        node.saving = done
        try:
            with trio.CancelScope(shield=True):
                await node.volume.durability.save(node.number, new)
            saved = True
        finally:
            node.saving = None
            self._end(node, buffer, saved, *by)
            done.set()

    def _begin(self, node: Node, buffer: Buffer) -> content.Save:
        ctime_ns = self._nodes.shown(node).st_ctime_ns
        by = NOBODY if node.writer is None else node.writer.writer
        if node.is_mixed:  # a text of several is in nobody's burst
            by = by._replace(pid=0, started=0)
        blind, over = False, NOBODY
        if node.id in self.readers.fresh:
            judged = node.replacing
            if node.id in self.readers.instead and node.writer is not None:
                judged = [node.writer]
            blind = any(self.readers.is_blind(node.id, each) for each in judged)
            over = self.readers.over(node.id)
        node.writer, node.is_mixed, node.replacing = None, False, []
        pieces = buffer.begin_save()
        return content.Save(buffer.size, node.mtime_ns, ctime_ns, pieces, by, over, blind)

    def _end(
        self,
        node: Node,
        buffer: Buffer,
        saved: bool,
        writer: Process | None,
        is_mixed: bool,
        replacing: list[Process],
    ) -> None:
        buffer.end_save(saved=saved)
        if saved:
            self.readers.wrote(node.id, writer or UNKNOWN)
        else:
            node.is_mixed = node.is_mixed or is_mixed or node.writer not in (None, writer)
            node.writer = node.writer or writer
            node.replacing = replacing + node.replacing
        node.volume.saves += 1
        if not buffer.changed:
            self.unsaved.pop(node, None)
            node.volume.unsaved -= node.claimed
            node.claimed = 0

    def _drop(self, node: Node) -> bool:
        """Nobody has it open: let the buffer go. What could not be saved was reported by
        flush, and the old text stands: then True.
        """
        lost = node.buffer is not None and node.buffer.changed and not node.gone
        if lost:
            node.attributes = None
        node.buffer = node.writer = None
        node.replacing = []
        node.volume.unsaved -= node.claimed
        node.claimed = 0
        self.unsaved.pop(node, None)
        self._refused.discard(node)
        self._nodes.let_go(node)
        return lost


def _load(node: Node, number: int, length: int) -> bytes:
    piece = content.piece(node.volume.view, node.number, number)
    if not piece and tree.inode(node.volume.view, node.number) is None:
        raise Stale(f"inode {node.number} was removed by another process")
    return piece


def _invalidate(inode: int) -> None:
    """In a thread: the kernel may wait for pages that it is reading from us."""
    with contextlib.suppress(OSError):  # it has forgotten the file
        pyfuse3.invalidate_inode(inode)
