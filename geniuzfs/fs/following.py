"""How the folders of a mount come and go, and what mkdir, rename and rmdir at its top do.

Hides: inotify on the directories that hold folders, and the tasks of each folder. Promises: what
another process makes, names, moves, archives or copies shows within a second; a folder that is
moved keeps its inode numbers and its open files; one that goes is saved first. Refuses: to tell the
kernel of what it has asked for itself (a shell that stands in a new folder would be thrown out).
"""

import logging
import os
from contextlib import suppress
from pathlib import Path

import pyfuse3
import trio
from inotify_simple import INotify, flags

from geniuzfs.api import Folder, Geniuz
from geniuzfs.errors import DirectoryNotEmpty, GeniuzError, Moved, UsageError
from geniuzfs.fs.files import Files
from geniuzfs.fs.inodes import Nodes
from geniuzfs.fs.top import Top
from geniuzfs.fs.volumes import Volume, Volumes
from geniuzfs.fs.watch import Watch, invalidate
from geniuzfs.model import ROOT, Exchange, FolderId
from geniuzfs.store import counts, tree
from geniuzfs.store.connection import Database

SETTLE_SECONDS = 0.1
"""From an event to the look: making or moving a folder is several events."""

AGAIN_SECONDS = 0.2
"""A folder that is on its way may be seen nowhere for a moment: it is looked for once more."""

SAFETY_SECONDS = 10.0

_EVENTS = flags.CREATE | flags.DELETE | flags.MOVED_FROM | flags.MOVED_TO | flags.ONLYDIR
_FILES = ("memory.db", "station.db", "folders.json")
"""Other files beside them come and go with every look at what is left out."""

_log = logging.getLogger(__name__)


class Following:
    """The folders of one mount. `alone`: the one that is its root."""

    def __init__(
        self,
        geniuz: Geniuz,
        volumes: Volumes,
        nodes: Nodes,
        files: Files,
        top: Top | None,
        alone: FolderId | None,
    ) -> None:
        self.home = geniuz.config.home
        self._geniuz = geniuz
        self._volumes = volumes
        self._nodes = nodes
        self._files = files
        self._top = top
        self._alone = alone
        self._folders: dict[FolderId, Folder] = {}
        self._scopes: dict[FolderId, trio.CancelScope] = {}
        self._nursery: trio.Nursery | None = None
        self._inotify: INotify | None = None
        self._asked = trio.Event()
        self._turn = trio.Lock()

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Until cancelled."""
        async with trio.open_nursery() as self._nursery:
            with INotify(nonblocking=True) as self._inotify:
                # Nobody is served yet, so nobody waits; from now on nothing is missed.
                self._listen_to(self._geniuz.arranging.directories())
                if self._shown(self._geniuz.folders()) != self._folders:
                    self.look_soon()
                self._nursery.start_soon(self._listen, self._inotify)
                for volume in self._volumes.values():
                    self._begin(volume)
                task_status.started()
                while True:
                    with trio.move_on_after(SAFETY_SECONDS):
                        await self._asked.wait()
                        await trio.sleep(SETTLE_SECONDS)
                    self._asked = trio.Event()
                    try:
                        await self.look()
                    except Exception:  # noqa: BLE001 - a loop: the mount outlives any mistake of ours
                        _log.exception("looking at the folders failed")

    def look_soon(self) -> None:
        """Something about the folders may have changed."""
        self._asked.set()

    async def look(self) -> None:
        """Show the folders that there are now."""
        async with self._turn:
            try:
                there = await self._there()
                if not set(self._volumes) <= set(there):
                    await trio.sleep(AGAIN_SECONDS)
                    there = await self._there()
            except GeniuzError as error:
                _log.info("the folders can't be looked at: %s", error)
                return
            for volume in list(self._volumes.values()):
                if volume.folder not in there:
                    await self._let_go(volume)
                    self._tell(volume.name)
            for folder in there.values():
                try:
                    await self._follow(folder)
                except GeniuzError as error:
                    _log.info("%s is not shown as it is now: %s", folder.path, error)

    # What the kernel asks for at the top

    async def make(self, name: bytes) -> Volume:
        """A new folder. Raises AlreadyExists, and UsageError for a name that no folder has."""
        async with self._turn:
            new = self._geniuz.arranging.new
            folder = await trio.to_thread.run_sync(new, os.fsdecode(name))
            return self.take_in(folder, await self._opened(folder))

    async def rename(self, old: bytes, new: bytes, how: Exchange) -> None:
        """Give a folder another name. Raises NotFound, AlreadyExists and UsageError."""
        if how is Exchange.SWAP:
            raise UsageError("two folders can't swap their names")
        async with self._turn:
            volume = self._volumes.named(old)
            folder = self._folders[volume.folder]
            rename = self._geniuz.arranging.rename
            renamed = await trio.to_thread.run_sync(rename, folder, os.fsdecode(new))
            self._folders[volume.folder] = renamed
            volume.name = new
            self._changed()

    async def archive(self, name: bytes) -> None:
        """Put a folder away that holds no file and no memory. Raises NotFound,
        DirectoryNotEmpty, and FolderError for the first one.
        """
        async with self._turn:
            volume = self._volumes.named(name)
            if tree.listing(volume.view, ROOT, 0, 1) or counts.counts(volume.view).memories:
                raise DirectoryNotEmpty("only an empty folder is archived by rmdir")
            archive = self._geniuz.arranging.archive
            await trio.to_thread.run_sync(archive, self._folders[volume.folder])
            await self._let_go(volume)

    # How a folder comes and goes

    def take_in(self, folder: Folder, database: Database) -> Volume:
        """Show `folder`, which is not shown, from now on."""
        id_, name = folder.identity.id, _encoded(folder)
        volume = self._volumes.known.get(id_)
        if volume is None:
            slot = 0 if self._alone is not None else self._volumes.slot(id_)
            volume = Volume(name, slot, database, id_)
        else:
            volume.attach(database)
            volume.name = name
        self._volumes.show(volume)
        self._folders[id_] = folder
        self._begin(volume)
        self._changed()
        return volume

    async def _follow(self, folder: Folder) -> None:
        """Show `folder` as it is: new, moved, renamed, or as before."""
        id_, name = folder.identity.id, _encoded(folder)
        volume = self._volumes.get(id_)
        if volume is None:
            volume = self.take_in(folder, await self._opened(folder))
            self._tell(name)
            await self._doubt(volume)
            return
        if not volume.database.is_at(folder.path):
            await self._reopen(volume, await self._opened(folder))
        self._folders[id_] = folder
        if volume.name != name:
            before, volume.name = volume.name, name
            self._changed()
            self._tell(before)
            self._tell(name)

    async def _reopen(self, volume: Volume, database: Database) -> None:
        """The folder was moved. What is unsaved is saved there: buffers know no path."""
        before, durability = volume.database, volume.durability
        self._end(volume)
        volume.attach(database)
        await durability.end(Moved("the folder was moved: try again"))
        before.close()
        self._begin(volume)
        await self._doubt(volume)

    async def _let_go(self, volume: Volume) -> None:
        """The folder is gone. It may have been moved away with its database open: what is unsaved
        still goes there.
        """
        self._end(volume)
        self._volumes.hide(volume)
        for node in [node for node in self._files.unsaved if node.volume is volume]:
            try:
                await self._files.save(node)
            except GeniuzError as error:
                _log.warning("%s is gone and could not be saved: %s", volume.path, error)
        await volume.detach()
        for node in self._nodes.values():
            if node.volume is volume:
                node.attributes = None
        self._changed()

    def _begin(self, volume: Volume) -> None:
        """Begin what goes on beside the requests, if the loop runs."""
        if self._nursery is not None:
            scope = self._scopes[volume.folder] = trio.CancelScope()
            self._nursery.start_soon(self._serve, volume, scope)

    def _end(self, volume: Volume) -> None:
        scope = self._scopes.pop(volume.folder, None)
        if scope is not None:
            scope.cancel()

    async def _serve(self, volume: Volume, scope: trio.CancelScope) -> None:
        watch = Watch(volume, self._nodes, self._files, self.look_soon)
        with scope:
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(watch.run)
                    nursery.start_soon(volume.durability.checkpoints)
            except* FileNotFoundError:  # moved at this very moment
                self.look_soon()

    async def _doubt(self, volume: Volume) -> None:
        watch = Watch(volume, self._nodes, self._files, self.look_soon)
        await watch.doubt_everything()

    def _changed(self) -> None:
        if self._top is not None:
            self._top.changed(self._geniuz.clock.now_ns())

    def _tell(self, name: bytes) -> None:
        """Have the kernel look `name` up anew, and the top's attributes."""
        if self._top is not None and self._nursery is not None:
            pyfuse3.invalidate_entry_async(pyfuse3.ROOT_INODE, name, ignore_enoent=True)
            self._nursery.start_soon(trio.to_thread.run_sync, invalidate, [int(ROOT)])

    # Looking

    def _shown(self, folders: list[Folder]) -> dict[FolderId, Folder]:
        """Those that this mount is to show."""
        there = {folder.identity.id: folder for folder in folders}
        return {id_: there[id_] for id_ in there if self._alone in (None, id_)}

    async def _there(self) -> dict[FolderId, Folder]:
        directories = await trio.to_thread.run_sync(self._geniuz.arranging.directories)
        self._listen_to(directories)
        return self._shown(await trio.to_thread.run_sync(self._geniuz.folders))

    async def _opened(self, folder: Folder) -> Database:
        return await trio.to_thread.run_sync(lambda: self._geniuz.open(folder, wait=0))

    def _listen_to(self, directories: list[Path]) -> None:
        """Adding one that is listened to already changes nothing."""
        if self._inotify is not None:
            for directory in directories:
                with suppress(OSError):  # gone meanwhile, or not ours to read
                    self._inotify.add_watch(directory, _EVENTS)

    async def _listen(self, inotify: INotify) -> None:
        while True:
            await trio.lowlevel.wait_readable(inotify.fd)
            events = inotify.read(timeout=0)
            if any(event.mask & flags.ISDIR or event.name in _FILES for event in events):
                self.look_soon()


def _encoded(folder: Folder) -> bytes:
    return folder.name.encode("utf-8", "surrogateescape")
