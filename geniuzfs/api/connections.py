"""Connections to one folder for any number of threads.

Hides: that a connection is for one thread at a time, that a folder may be moved while it is in use,
and that somebody has to keep the write-ahead log, the record of changes and the history short where
no mount does. Promises: at most MOST are open; those who write take turns, so that nobody polls for
a lock that a neighbour holds.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import BoundedSemaphore, Lock, RLock
from typing import TypeVar

from geniuzfs.api.keeping import wherever
from geniuzfs.errors import Busy, NotFound, StoreError, UsageError
from geniuzfs.folders.registry import Folder
from geniuzfs.store import meta, retention, versions
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import Txn, View

MOST = 4
"""Each has 16 MB of pages at most, and three descriptors."""

LOG_PAGES = 4_000
"""Pages (16 MiB) in the write-ahead log that start a checkpoint, as in the learner."""

T = TypeVar("T")


class Connections:
    """To the folder that is `folder` now. `find` looks where it is, and may raise NotFound; `open_`
    opens it there.
    """

    def __init__(
        self,
        folder: Folder,
        find: Callable[[], Folder],
        open_: Callable[[Folder], Database],
        now_ns: Callable[[], int],
    ) -> None:
        self._folder = folder
        self._find = find
        self.open = open_
        self._now_ns = now_ns
        self._expires_at = -math.inf
        self._free = BoundedSemaphore(MOST)
        self._writing = RLock()  # whoever writes within a write meets Busy, and not itself for ever
        self._lock = Lock()
        self._idle: list[Database] = []
        self._closed = False

    def folder(self) -> Folder:
        """Where it is now; its name is that of when it was looked for last. Raises as `read`."""
        with self._one():
            return self._folder

    def read(self, work: Callable[[View], T]) -> T:
        """What `work` makes of one state of the folder. Raises NotFound when the folder is gone,
        UsageError when this was closed.
        """

        def read(_folder: Folder) -> T:
            with self._one() as database, database.snapshot() as view:
                return work(view)

        return wherever(self._look, read)

    def write(self, work: Callable[[Txn], T], *, overwriting: bool = False) -> T:
        """Do `work` in one transaction, all or nothing. Where the folder was moved meanwhile it is
        done again there, so it must change nothing else. `overwriting`: zeros take the place of
        what it deletes. Raises Busy, and as `read`.
        """
        with self._writing:
            return wherever(self._look, lambda _: self._write(work, overwriting))

    def close(self) -> None:
        """Close all of them; those that are in use when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for database in idle:
            database.close()

    def _write(self, work: Callable[[Txn], T], overwriting: bool) -> T:
        with self._one() as database:
            if overwriting:
                database.overwrite_deleted()
            with database.txn() as txn:
                done = work(txn)
            self._expire(database)
            if database.wal_pages > LOG_PAGES:
                with suppress(Busy):  # the next one will
                    database.prune_changes()
                    database.checkpoint(hold_writers=False)
            return done

    def _expire(self, database: Database) -> None:
        """Remove some versions that are kept no longer; the next write goes on where there are
        more, so that none takes long.
        """
        if time.monotonic() < self._expires_at or not any(
            versions.oldest_and_newest(database.view)
        ):
            return
        with suppress(StoreError), database.txn() as txn:  # the next one will
            if retention.expire(txn, self._now_ns()):
                return
        self._expires_at = time.monotonic() + retention.CHECK_SECONDS

    @contextmanager
    def _one(self) -> Iterator[Database]:
        with self._free:
            database = self._taken()
            try:
                yield database
            finally:
                self._give_back(database)

    def _taken(self) -> Database:
        folder = self._look()
        while True:
            with self._lock:
                if self._closed:
                    raise UsageError("this folder was closed: open it anew")
                database = self._idle.pop() if self._idle else None
            if database is None:
                return self._opened() or self._opened_anew()
            if database.is_at(folder.path):
                return database
            database.close()

    def _look(self) -> Folder:
        if not self._folder.path.exists():
            self._folder = self._find()
        return self._folder

    def _opened(self) -> Database | None:
        """Opened where it is thought to be; None where another folder is by now."""
        folder = self._folder
        database = self.open(folder)
        identity = meta.identity(database.view)
        if identity is not None and identity.id == folder.identity.id:
            return database
        database.close()
        return None

    def _opened_anew(self) -> Database:
        self._folder = self._find()
        database = self._opened()
        if database is None:
            raise NotFound("the folder is gone")
        return database

    def _give_back(self, database: Database) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(database)
                return
        database.close()
