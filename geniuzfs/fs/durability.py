"""What makes commits last: syncing the WAL for fsync, and checkpoints.

Hides: that commits are not synced one by one. Promises: when sync() returns,
every commit that had returned before the call survives the loss of power; when
it raises, none is claimed to, then or later. Readers wait for neither.
"""

import functools
import logging
import os
from collections.abc import Callable
from typing import TypeVar

import trio

from geniuzfs.errors import Busy, GeniuzError, Moved, NotFound, StoreFault
from geniuzfs.model import InodeNumber
from geniuzfs.store import content, retention
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import Txn

T = TypeVar("T")

CHECKPOINT_PAGES = 4_000
"""WAL pages (16 MiB) that start a checkpoint: at 1,000 a busy saver met one 30 times a second."""

_PRUNE_EVERY = 16

_log = logging.getLogger(__name__)


class Durability:
    """Syncs and checkpoints of one database. The database must stay open longer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._second: Database | None = None
        self._second_free = trio.Lock()
        # The WAL itself, by a descriptor of our own: SQLite's locks are on the
        # database and the -shm, so opening and closing this one loses none.
        self._wal = os.open(database.wal_path, os.O_RDONLY)
        self._begun = 0
        self._done = 0
        self._turn = trio.Lock()
        self._broken = False
        self._checkpoint_due = trio.Event()
        database.when_wal_exceeds(CHECKPOINT_PAGES, self.ask_checkpoint)
        self._own_changes: list[range] = []
        self._ended: GeniuzError | None = None
        _sync_directory(database.path.parent)

    async def sync(self) -> None:
        """Return when all that was committed before the call is on the disk.

        Callers that come while a sync runs share the next one. Raises StoreFault
        when the disk reports a failure, and from then on always: after one, the
        kernel may have dropped the pages and would report success untruly.
        """
        ours = self._begun + 1
        while self._done < ours:
            async with self._turn:
                if self._done >= ours:
                    break
                if self._ended is not None:
                    raise self._ended
                if self._broken:
                    raise StoreFault("an earlier sync failed: check the disk, then mount again")
                self._begun += 1
                try:
                    await trio.to_thread.run_sync(os.fdatasync, self._wal)
                except OSError as error:
                    self._broken = True
                    _log.error("syncing the write-ahead log failed: %s", error)
                    raise StoreFault(str(error)) from error
                self._done = self._begun

    async def save(self, number: InodeNumber, new: content.Save) -> None:
        """A large save, in a thread and through a connection of its own, so that
        nobody else waits for it; other savers do (Busy).
        """
        await self.change(lambda txn: content.save(txn, number, new))

    async def change(self, work: Callable[[Txn], T]) -> T:
        """One transaction, in a thread and through a connection of its own."""
        async with self._second_free:
            database = await self._second_database()
            before, after, done = await trio.to_thread.run_sync(_change, database, work)
        self._own_changes.append(range(before + 1, after + 1))
        if database.wal_pages > CHECKPOINT_PAGES:
            self.ask_checkpoint()
        return done

    def take_own_changes(self) -> list[range]:
        """The `seq` of changes made through the second connection: no news for the mount."""
        taken, self._own_changes = self._own_changes, []
        return taken

    def ask_checkpoint(self) -> None:
        self._checkpoint_due.set()

    async def checkpoints(self) -> None:
        """Copy the WAL into the database whenever it has grown, until cancelled.

        First while savers go on, which takes the bulk of the time; then the few
        pages that came meanwhile while they wait, so that the WAL begins anew.
        """
        count = 0
        while True:
            await self._checkpoint_due.wait()
            limit = CHECKPOINT_PAGES
            try:
                async with self._second_free:
                    database = await self._second_database()
                    for hold in (False, True):
                        await self._checkpoint(database, hold_writers=hold)
                    count += 1
                    if count % _PRUNE_EVERY == 1:
                        await trio.to_thread.run_sync(database.prune_changes)
            except GeniuzError as error:
                if not isinstance(error, Busy):  # Busy: somebody reads an old state
                    _log.error("a checkpoint failed, the write-ahead log keeps growing: %s", error)
                # Trying again at every commit would hold up all savers, and fill the log.
                limit += self._database.wal_pages
            # What the commits meanwhile have asked for is done, or would fail again.
            self._checkpoint_due = trio.Event()
            self._database.when_wal_exceeds(limit, self.ask_checkpoint)

    async def make_room(self) -> bool:
        """On a full disk: copy the WAL into the database, so that it begins anew and the next
        commits fit into the room that it has; and let the oldest versions go, for what is saved now
        counts for more. False when neither was possible, or of use.
        """
        made = await self._empty_log()
        if not await self._shed_versions():
            return made
        await self._empty_log()
        return True

    async def _shed_versions(self) -> bool:
        try:
            least = retention.to_shed(self._database.view)
            before = least
            while least > 0 and (gone := await self.change(retention.shed)):
                least -= gone
        except GeniuzError as error:
            _log.info("no room could be made of old versions: %s", error)
            return False
        if least < before:
            _log.info("the disk is full: %d bytes of old versions went", before - least)
        return least < before

    async def _empty_log(self) -> bool:
        if not self._database.wal_pages:
            return False
        try:
            async with self._second_free:
                database = await self._second_database()
                await self._checkpoint(database, hold_writers=True)
        except GeniuzError as error:
            _log.error("no room could be made in the write-ahead log: %s", error)
            return False
        self._database.wal_pages = 0
        return True

    async def end(self, error: GeniuzError) -> None:
        """Return when nothing here uses the database any more; who comes later gets `error`."""
        self._ended = error
        async with self._second_free, self._turn:
            self.close()

    def close(self) -> None:
        if self._second is not None:
            self._second.close()
            self._second = None
        if self._wal >= 0:
            os.close(self._wal)
            self._wal = -1

    async def _checkpoint(self, database: Database, *, hold_writers: bool) -> None:
        self._database.held = hold_writers
        try:
            checkpoint = functools.partial(database.checkpoint, hold_writers=hold_writers)
            await trio.to_thread.run_sync(checkpoint)
        finally:
            self._database.held = False

    async def _second_database(self) -> Database:
        if self._ended is not None:
            raise self._ended
        if self._second is None:
            path = self._database.path
            try:
                second = await trio.to_thread.run_sync(
                    functools.partial(Database.open, path, wait=10.0)
                )
            except NotFound as error:  # the mount has not noticed yet
                raise Moved(f"{path} was moved") from error
            if second.file != self._database.file:  # another folder is in its place
                second.close()
                raise Moved(f"{path} was moved")
            self._second = second
        return self._second


def _change(database: Database, work: Callable[[Txn], T]) -> tuple[int, int, T]:
    with database.txn() as txn:
        before = database.newest_change()
        done = work(txn)
        return before, database.newest_change(), done


def _sync_directory(path: os.PathLike[str]) -> None:
    """Make the names of a new database and its WAL last."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
