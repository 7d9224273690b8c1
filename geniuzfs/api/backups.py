"""Folders are backed up into files, and brought back.

Hides: what a backup is called. Promises: it holds every save that was acknowledged before the
call, and is compared and on the disk when the call returns; killed, or the disk full, it is not
there. Refuses: to write over anything, or into a mount of the folders themselves.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import NamedTuple

from geniuzfs import durable
from geniuzfs.api import keeping
from geniuzfs.api.arranging import Arranging
from geniuzfs.errors import AlreadyExists, FolderError, NotFound, UsageError
from geniuzfs.folders import mounts, registry, restoring
from geniuzfs.folders.registry import Folder
from geniuzfs.folders.restoring import Restored as Restored
from geniuzfs.ports import Clock
from geniuzfs.store import copying
from geniuzfs.store.copying import Told

SUFFIX = ".geniuz"

Telling = Callable[[Folder], AbstractContextManager[Told]]

_NAME_BYTES = 200
"""Of a folder's name in a backup's, which has a date and may have a number as well."""


class BackedUp(NamedTuple):
    """A folder and its backup. `bytes`: its size."""

    folder: Folder
    path: Path
    bytes: int


class Backups:
    """The use cases, on the data directory `home`."""

    def __init__(self, home: Path, clock: Clock, arranging: Arranging) -> None:
        self._home = home
        self._clock = clock
        self._arranging = arranging

    def backup(self, destination: Path, name: str | None, telling: Telling) -> Iterator[BackedUp]:
        """Back up the folder called `name`, or all: into the directory `destination`, each by its
        name and the time, or one into a new file of that name. `telling` gives what hears of the
        progress of each. Raises FolderError, at the end, where not every folder could be backed up.
        """
        mounts.check_not_mounted(destination.resolve())
        seen = self._arranging.seen()
        folders = seen.folders if name is None else [registry.named(seen, name)]
        into = destination.is_dir()
        if not into and len(folders) > 1:
            raise UsageError(
                f"{destination} is no directory: several folders go into one, or say --in NAME"
            )
        if not folders:
            raise NotFound("there is no folder to back up")
        if into:  # their names have their time: nobody takes these over
            durable.clear(destination, SUFFIX)
        for folder in folders:
            path = self._called(folder, destination, into)
            yield self._wherever(folder, path, telling)
        left_out = seen.warnings() if name is None else []
        if left_out:
            raise FolderError(f"not backed up: {'; '.join(left_out)}")

    def restore(
        self,
        backup: Path,
        name: str | None,
        within: Path | None,
        told: Told = lambda done, of: None,
    ) -> Restored:
        """Make a folder of a backup; see folders.restoring. Raises FolderError for what is no
        backup and StoreDamaged for one that is not sound.
        """
        mounts.check_not_mounted(backup.resolve())
        _whose, at = copying.read_backup(backup)
        if at is None:
            raise FolderError(
                f"{backup} is a folder and no backup: geniuzfs folder add DIR has it read as it is"
            )

        def make(path: Path) -> None:
            copying.restore(backup, path, told)

        return restoring.restore(self._home, self._clock, make, name, within)

    def _wherever(self, folder: Folder, path: Path, telling: Telling) -> BackedUp:
        """Of a folder that has moved since it was seen, too: the ones before may take minutes."""

        def find() -> Folder:
            return registry.identified(self._arranging.seen(), folder.identity.id)

        def use(found: Folder) -> BackedUp:
            with telling(found) as told:
                return self._backup(found, path, told)

        return keeping.wherever(find, use)

    def _backup(self, folder: Folder, path: Path, told: Told) -> BackedUp:
        check_new(path)
        with durable.staged(path) as new:
            copying.copy(folder.path, new, told)
            copying.mark(new, self._now().isoformat(timespec="seconds"))
        return BackedUp(folder, path, path.stat().st_size)

    def _called(self, folder: Folder, destination: Path, into: bool) -> Path:
        return dated(destination, folder, self._now(), SUFFIX) if into else destination

    def _now(self) -> datetime:
        return local(self._clock)


def dated(directory: Path, folder: Folder, now: datetime, suffix: str) -> Path:
    """A file of that folder and minute that is not there yet, nor being made."""
    short = folder.name.encode()[:_NAME_BYTES].decode(errors="ignore")
    for number in count(1):
        again = f"~{number}" if number > 1 else ""
        path = directory / f"{short} {now:%Y-%m-%dT%H.%M}{again}{suffix}"
        if not path.exists() and not durable.is_staged(path):
            return path
    raise AssertionError("numbers do not end")


def check_new(path: Path) -> None:
    """Raises AlreadyExists and NotFound where no new file can be at `path`."""
    if path.exists():
        raise AlreadyExists(f"{path} is there already: nothing is written over it")
    if not path.parent.is_dir():
        raise NotFound(f"{path.parent} is no directory")


def local(clock: Clock) -> datetime:
    """Now, as people here say it."""
    return datetime.fromtimestamp(clock.now_ns() / 1e9).astimezone()
