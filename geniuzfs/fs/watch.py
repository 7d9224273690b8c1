"""How the mount learns of what other processes commit.

Hides: inotify, and the moment between the writing of the WAL and the commit
being visible. Promises: a commit of another process shows within 200 ms, in
names, sizes and bytes, through open handles too; an idle mount does nothing but
one look in some seconds. Refuses to invalidate in the two ways that deadlock the
mount: inodes are invalidated from a thread, entries through pyfuse3's own.
"""

import logging
from collections.abc import Callable

import pyfuse3
import trio
from inotify_simple import INotify, flags

from geniuzfs.errors import Stale, StoreError
from geniuzfs.fs.files import Files
from geniuzfs.fs.inodes import Node, Nodes
from geniuzfs.fs.volumes import Volume
from geniuzfs.model import Change
from geniuzfs.store import copying, meta

VISIBLE_SECONDS = 0.002
"""From the WAL's being written to the commit's being visible: without it 2 of 54 were missed."""

BUSY_SECONDS = 0.02
"""The pause while commits, our own above all, come without end."""

RECHECK_SECONDS = 0.05
SAFETY_SECONDS = 10.0

_log = logging.getLogger(__name__)


class Watch:
    """Watches one volume and tells the kernel what it must not believe any more.
    `look_at_folders` is called when the folder has another name or was moved.
    """

    def __init__(
        self, volume: Volume, nodes: Nodes, files: Files, look_at_folders: Callable[[], None]
    ) -> None:
        self._look_at_folders = look_at_folders
        self._volume = volume
        self._nodes = nodes
        self._files = files

    async def run(self) -> None:
        """Until cancelled."""
        with INotify(nonblocking=True) as inotify:
            inotify.add_watch(self._volume.database.wal_path, flags.MODIFY)
            rechecks, pause = 0, VISIBLE_SECONDS
            while True:
                with trio.move_on_after(RECHECK_SECONDS if rechecks else SAFETY_SECONDS) as quiet:
                    await trio.lowlevel.wait_readable(inotify.fd)
                if quiet.cancelled_caught:
                    rechecks, pause = max(rechecks - 1, 0), VISIBLE_SECONDS
                else:
                    await trio.sleep(pause)
                    inotify.read(timeout=0)
                    rechecks, pause = 2, BUSY_SECONDS
                await self.look()

    async def look(self) -> None:
        """Take in what others have committed, if anything."""
        try:
            news = self._volume.database.news()
            if news is None:
                await self.doubt_everything()
            elif news:
                await self._apply(news)
            view, before = self._volume.view, self._volume.identity
            self._volume.identity = meta.identity(view)
            if self._volume.identity != before or copying.moved_to(view) is not None:
                self._look_at_folders()
        except Stale:  # the folder is gone
            pass
        except StoreError as error:
            _log.warning("could not look for the changes of others: %s", error)

    async def _apply(self, news: list[Change]) -> None:
        volume, own = self._volume, self._volume.durability.take_own_changes()
        news = [change for change in news if not any(change.seq in seqs for seqs in own)]
        volume.epoch += 1
        stale: dict[int, Node] = {}
        for change in news:
            node = self._nodes.get(volume.base | change.inode)
            if node is None:
                continue
            if change.name is None:
                stale[node.id] = node
            else:
                node.attributes = None
                pyfuse3.invalidate_entry_async(node.id, change.name, ignore_enoent=True)
        volume.learn_asked()
        await self._refresh(list(stale.values()))

    async def doubt_everything(self) -> None:
        """More has changed than is on record: believe nothing that is cached. Names
        that vanished meanwhile are found out when their time is up (attrs.TIMEOUT).
        """
        _log.info("%s: dropping all that is cached", self._volume.database.path)
        self._volume.epoch += 1
        self._volume.learn_asked()
        await self._refresh([node for node in self._nodes.values() if node.volume is self._volume])

    async def _refresh(self, nodes: list[Node]) -> None:
        for node in nodes:
            self._files.refresh(node)
        if nodes:
            await trio.to_thread.run_sync(invalidate, [node.id for node in nodes])


def invalidate(inodes: list[int]) -> None:
    """Have the kernel ask anew. In a thread."""
    for inode in inodes:
        try:
            pyfuse3.invalidate_inode(inode)
        except OSError as error:  # the kernel has forgotten it meanwhile, or the mount is going
            _log.debug("inode %d was not invalidated: %s", inode, error)
