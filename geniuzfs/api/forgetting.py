"""What was written or kept is forgotten for good.

Hides: how long one waits for others who have the folder open. Promises: what `file` and `memory`
return for is gone from the folder, for every reader, and from every byte of its database and log;
where they raise Busy or StoreFull after the removal, the message says that it is removed and not
erased yet, and `finish` (or the next that is forgotten) erases it. Refuses: the copies that lie
elsewhere, of which `apart` names those that are near.
"""

import logging
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from geniuzfs import durable
from geniuzfs.api import placing
from geniuzfs.api.arranging import Arranging
from geniuzfs.api.keeping import Held, Open
from geniuzfs.errors import Busy, StoreError
from geniuzfs.folders import mounts, registry
from geniuzfs.folders.registry import ARCHIVE, Folder
from geniuzfs.store import counts, forgetting
from geniuzfs.store.connection import Database
from geniuzfs.store.forgetting import Beneath

PATIENCE_SECONDS = 30.0
"""For who reads an old state, or saves without end."""

NOTICED_SECONDS = 1.0
"""In which a mount reads which names are gone, before the record of them goes: it needs 0.2."""

_PAUSE_SECONDS = 0.05

_log = logging.getLogger(__name__)


class Forgotten(NamedTuple):
    """What is gone; `passages`: texts that nothing else says; `apart`: near files that may hold
    some of it still; `removed`: files that had been removed before, and of which the history had
    earlier versions.
    """

    folder: Folder
    files: int
    directories: int
    memories: int
    passages: int
    apart: list[Path]
    removed: int = 0


class Forgetting:
    """The use cases, on the data directory `home`."""

    def __init__(
        self, arranging: Arranging, home: Path, now_ns: Callable[[], int], open_: Open
    ) -> None:
        self._arranging = arranging
        self._home = home
        self._now_ns = now_ns
        self._open = open_

    def find(
        self, path: str, name: str | None, *, here: Path | None = None
    ) -> tuple[Folder, str, Beneath]:
        """What `path`, in a mount or from the top of the folder that is meant, names: its folder,
        its path there, and what stands or stood at it. Raises NotFound and UsageError.
        """
        folder, within = placing.place(self._arranging, self._home, path, name, here)
        with closing(self._open(folder)) as database:
            found = forgetting.beneath(database.view, within)
            return folder, within.decode("utf-8", "surrogateescape"), found

    def file(self, folder: Folder, path: str) -> Forgotten:
        """Forget what stands at `path`, relative to the folder's top, and what stood there: its
        history goes too. Raises NotFound and UsageError, with nothing changed, Busy and StoreFull.
        """
        with closing(self._open(folder)) as database:
            database.overwrite_deleted()
            with database.txn() as txn:
                before = counts.counts(txn).passages
                found = forgetting.beneath(txn, _bytes(path))
                forgetting.files(txn, found, self._now_ns())
                passages = before - counts.counts(txn).passages
            self._erase(database)
        gone = (found.files, found.directories, 0, passages)
        return Forgotten(folder, *gone, apart(folder), len(found.removed))

    def memory(self, held: Held) -> Forgotten:
        """Forget a kept memory. What continued it continues what it continued. Raises Busy and
        StoreFull.
        """
        with closing(self._open(held.folder)) as database:
            database.overwrite_deleted()
            with database.txn() as txn:
                before = counts.counts(txn).passages
                forgetting.memory(txn, held.memory, self._now_ns())
                passages = before - counts.counts(txn).passages
            _log.info("memory %s was forgotten", held.address)
            self._erase(database)
        return Forgotten(held.folder, 0, 0, 1, passages, apart(held.folder))

    def finish(self, name: str | None) -> list[Folder]:
        """Erase what an earlier call could only remove, in one folder or all; those that had any.
        Raises as `file`.
        """
        seen = self._arranging.seen()
        finished = []
        for folder in seen.folders if name is None else [registry.named(seen, name)]:
            with closing(self._open(folder)) as database:
                if forgetting.unfinished(database.view) is not None:
                    self._erase(database)
                    finished.append(folder)
        return finished

    def _erase(self, database: Database) -> None:
        if mounts.ours(self._home):
            time.sleep(NOTICED_SECONDS)
        try:
            forgetting.erase(database, _patiently)
            # Of a time before the write-ahead log: nobody reads or writes it any more.
            durable.remove(database.path.with_name(database.path.name + "-journal"))
        except StoreError as error:
            raise type(error)(
                "it is removed, and its bytes are not all overwritten yet: geniuzfs forget without"
                f" a name does that later ({_why(error)})"
            ) from error


def apart(folder: Folder) -> list[Path]:
    """What lies near the folder and may hold what was forgotten: what a repair has put aside, and
    the archives beside it.
    """
    directory = folder.path.parent
    aside = sorted(directory.glob(f"{folder.path.name}.damaged-*"))
    archives = (directory / ARCHIVE, directory.parent / ARCHIVE)
    return [*aside, *(each for each in archives if each.is_dir())]


def _why(error: StoreError) -> str:
    if isinstance(error, Busy):
        return (
            "another process reads an old state of the folder, as a replica does until it is"
            " stopped, or writes without end"
        )
    return str(error)


def _patiently(step: Callable[[], None]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return step()
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
