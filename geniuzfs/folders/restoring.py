"""A copy of a folder becomes a folder: a backup, what a replica holds, what was exported.

Hides: where it lies until it is one. Promises: it appears whole or not at all, killed at any step;
no folder that is here is written to. A folder whose identity is not here comes back as itself;
where it is here still, the copy is a folder of its own, with an identity and a name of its own.
"""

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from geniuzfs import durable
from geniuzfs.errors import AlreadyExists, FolderError, UsageError
from geniuzfs.folders import lifecycle, mounts, places, registry
from geniuzfs.folders.registry import FILE, FIRST, Folder, Seen
from geniuzfs.model import NAME_MAX, Identity
from geniuzfs.ports import Clock
from geniuzfs.store import copying, meta
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import Txn

STAGED = ".memory.db.restoring"

_FILES = (FILE, registry.EARLIER)
_SUFFIXES = ("", "-wal", "-shm", "-journal")


class Restored(NamedTuple):
    """A folder that is back. `was`: who the copy was; another identity or name than the folder's
    where those were taken.
    """

    folder: Folder
    was: Identity


def restore(
    home: Path,
    clock: Clock,
    make: Callable[[Path], None],
    name: str | None = None,
    within: Path | None = None,
) -> Restored:
    """A folder of what `make` puts into the empty file it is given, called `name`, or as it was or
    nearly so; in the data directory or `within` another. Raises UsageError and AlreadyExists for
    `name`, NotFound and UnsafePlace for `within`, and what `make` raises.
    """
    if name is not None:
        lifecycle.check_name(name)
        lifecycle.check_free(registry.look(home, clock), name)
    mounts.check_safe(home.resolve())
    with durable.translating(home):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    parent = home if within is None else lifecycle.existing(within)
    with durable.scratch(parent / STAGED) as path:
        _clear_beside(path)
        try:
            make(path)
            with places.alone(home):
                return _placed(home, clock, path, name, parent)
        finally:
            _clear_beside(path)


def _placed(home: Path, clock: Clock, path: Path, name: str | None, parent: Path) -> Restored:
    was, now = _identified(path, registry.look(home, clock), clock, name)
    durable.sync(path)
    target = home / FILE
    if parent != home or now.name != FIRST or _is_taken(home):
        directory = lifecycle.free_directory(parent, now.name)
        lifecycle.make_read(home, directory)
        with durable.translating(directory):
            directory.mkdir(mode=0o700)
        target = directory / FILE
    durable.rename(path, target)
    return Restored(Folder(target, now), was)


def _identified(
    path: Path, seen: Seen, clock: Clock, name: str | None
) -> tuple[Identity, Identity]:
    """Who the copy was, and who it is from now on."""
    here = [*seen.folders, *(copy for copies in seen.blocked for copy in copies)]
    database = Database.open(path)
    try:
        if copying.moved_to(database.view) is not None:
            raise FolderError("this is what a move has left: the folder itself is elsewhere")
        with database.txn() as txn:
            copying.unmark(txn)
            was = meta.identify(txn, registry.fresh(name or "restored", clock))
            now = was._replace(name=_free_name(seen, was, name))
            taken = any(other.identity.id == was.id for other in here)
            if taken or not registry.names_a_file(was.id):
                now = now._replace(id=registry.fresh("", clock).id)
            _put(txn, now)
    finally:
        database.close()
    return was, now


def _put(txn: Txn, now: Identity) -> None:
    meta.put(txn, "uuid", now.id)
    meta.put(txn, "name", now.name)


def _free_name(seen: Seen, was: Identity, name: str | None) -> str:
    if name is not None:
        lifecycle.check_free(seen, name)
        return name
    called = was.name
    try:
        lifecycle.check_name(called)
    except UsageError:
        called = "restored"
    short = called.encode()[: NAME_MAX - 20].decode(errors="ignore")
    for number in count():
        suffix = ("", " (restored)")[number] if number < 2 else f" (restored {number})"
        tried = short + suffix if suffix else called
        with suppress(AlreadyExists):
            lifecycle.check_free(seen, tried)
            return tried
    raise AssertionError("numbers do not end")


def _is_taken(home: Path) -> bool:
    """By a database, or by the log of one that is gone: it would be taken for this one's."""
    return any((home / f"{file}{suffix}").exists() for file in _FILES for suffix in _SUFFIXES)


def _clear_beside(path: Path) -> None:
    with durable.translating(path):
        for left in path.parent.glob(f"{path.name}?*"):
            left.unlink(missing_ok=True)
