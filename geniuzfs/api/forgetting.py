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
from pathlib import Path
from typing import NamedTuple

from geniuzfs import durable
from geniuzfs.api.keeping import Held, Open
from geniuzfs.errors import Busy, StoreError
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
    some of it still.
    """

    folder: Folder
    files: int
    directories: int
    memories: int
    passages: int
    apart: list[Path]


def look(open_: Open, folder: Folder, path: str) -> Beneath:
    """What forgetting `path` would take. Raises NotFound and UsageError."""
    database = open_(folder)
    try:
        return forgetting.beneath(database.view, _bytes(path))
    finally:
        database.close()


def file(open_: Open, folder: Folder, path: str, now_ns: int, *, mounted: bool) -> Forgotten:
    """Forget what stands at `path`, relative to the folder's top. Raises NotFound and UsageError,
    with nothing changed, Busy and StoreFull.
    """
    database = open_(folder)
    try:
        database.overwrite_deleted()
        with database.txn() as txn:
            before = counts.counts(txn).passages
            found = forgetting.beneath(txn, _bytes(path))
            forgetting.files(txn, found, now_ns)
            passages = before - counts.counts(txn).passages
        _erase(database, mounted=mounted)
        gone = found.files, found.directories, 0
        return Forgotten(folder, *gone, passages, apart(folder))
    finally:
        database.close()


def memory(open_: Open, held: Held, now_ns: int, *, mounted: bool) -> Forgotten:
    """Forget a kept memory. What continued it continues what it continued. Raises Busy and
    StoreFull.
    """
    database = open_(held.folder)
    try:
        database.overwrite_deleted()
        with database.txn() as txn:
            before = counts.counts(txn).passages
            forgetting.memory(txn, held.memory, now_ns)
            passages = before - counts.counts(txn).passages
        _log.info("memory %s was forgotten", held.address)
        _erase(database, mounted=mounted)
        return Forgotten(held.folder, 0, 0, 1, passages, apart(held.folder))
    finally:
        database.close()


def finish(open_: Open, folder: Folder, *, mounted: bool) -> bool:
    """Erase what an earlier call could only remove; whether there was any. Raises as `file`."""
    database = open_(folder)
    try:
        if forgetting.unfinished(database.view) is None:
            return False
        _erase(database, mounted=mounted)
        return True
    finally:
        database.close()


def apart(folder: Folder) -> list[Path]:
    """What lies near the folder and may hold what was forgotten: what a repair has put aside, and
    the archives beside it.
    """
    directory = folder.path.parent
    aside = sorted(directory.glob(f"{folder.path.name}.damaged-*"))
    archives = (directory / ARCHIVE, directory.parent / ARCHIVE)
    return [*aside, *(each for each in archives if each.is_dir())]


def _erase(database: Database, *, mounted: bool) -> None:
    if mounted:
        time.sleep(NOTICED_SECONDS)
    try:
        forgetting.erase(database, _patiently)
        # Of a time before the write-ahead log: with that, nobody reads it or writes it any more.
        durable.remove(database.path.with_name(database.path.name + "-journal"))
    except StoreError as error:
        raise type(error)(
            "it is removed, and its bytes are not all overwritten yet: geniuzfs forget without"
            f" a name does that later ({_why(error)})"
        ) from error


def _why(error: StoreError) -> str:
    if isinstance(error, Busy):
        return "another process reads an old state of the folder, or writes without end"
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
