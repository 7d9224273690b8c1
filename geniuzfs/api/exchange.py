"""Folders are exported as archives that every tar reads, and archives are imported.

Hides: compression, and the transaction. Promises: exporting, one moment; importing, all or nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO

from geniuzfs import durable
from geniuzfs.api import backups, exporting, importing, zstd
from geniuzfs.api.arranging import Arranging
from geniuzfs.api.exporting import Exported as Exported
from geniuzfs.api.importing import Imported as Imported
from geniuzfs.api.importing import Rules
from geniuzfs.config import Config
from geniuzfs.errors import NotFound, UsageError
from geniuzfs.folders import mounts, registry, restoring
from geniuzfs.folders.registry import Folder
from geniuzfs.model import Identity
from geniuzfs.ports import Clock
from geniuzfs.store import meta, tree
from geniuzfs.store.connection import Database
from geniuzfs.store.copying import Told
from geniuzfs.store.transactions import Txn

_WAIT_SECONDS = 5.0


class Exchange:
    """The use cases, on the data directory that `config` names."""

    def __init__(self, config: Config, clock: Clock, arranging: Arranging) -> None:
        self._config = config
        self._clock = clock
        self._arranging = arranging

    def export(
        self,
        folder: Folder,
        out: Path | IO[bytes],
        told: Told,
        *,
        packed: bool,
    ) -> tuple[Exported, Path | None]:
        """Write an archive of `folder` to a stream, or into a new file: that of the path, or, in a
        directory, one called by the folder's name and the time. What was written, and where.
        """
        if not isinstance(out, Path):
            with durable.translating(Path(str(getattr(out, "name", "stream")))):
                return self._export(folder, out, told, packed=packed), None
        mounts.check_not_mounted(out.resolve())
        suffix = ".tar.zst" if packed else ".tar"
        path = out
        if out.is_dir():
            path = backups.dated(out, folder, backups.local(self._clock), suffix)
        backups.check_new(path)
        with durable.staged(path) as new, durable.translating(path), new.open("wb") as file:
            done = self._export(folder, file, told, packed=packed)
        return done, path

    def import_into(
        self, folder: Folder, source: Path | BufferedReader, told: Told = lambda done, of: None
    ) -> Imported:
        """Take an archive into a folder, in one transaction: others who save there wait for its
        end. `told`: bytes of a file that are read, of how many. Raises AlreadyExists where one of
        its files is there, and what importing does.
        """
        database = Database.open(folder.path, wait=_WAIT_SECONDS)
        try:
            with _reading(source, told) as (file, tell), database.txn() as txn:
                return self._take_in(txn, file, tell, is_new=False)
        finally:
            database.close()

    def import_new(
        self,
        source: Path | BufferedReader,
        name: str | None,
        told: Told = lambda done, of: None,
    ) -> tuple[Imported, restoring.Restored]:
        """Make a folder of an archive, as folders.restoring does of a backup. Raises UsageError
        where neither the archive nor `name` says what it is called.
        """
        took: list[Imported] = []

        def make(path: Path) -> None:
            database = Database.open(path, create=True)
            try:
                with _reading(source, told) as (file, tell), database.txn() as txn:
                    tree.make_root(
                        txn, tree.New(0o40755, *self._config.owner), self._clock.now_ns()
                    )
                    took.append(self._take_in(txn, file, tell, is_new=True))
                    _identify(txn, took[0].identity, name, self._clock)
            finally:
                database.close()

        restored = restoring.restore(self._config.home, self._clock, make, name)
        return took[0], restored

    def _export(self, folder: Folder, out: IO[bytes], told: Told, *, packed: bool) -> Exported:
        database = Database.open(folder.path, wait=_WAIT_SECONDS)
        try:
            with database.snapshot() as view:
                now_ns = self._clock.now_ns()
                if not packed:
                    return exporting.export(view, folder.identity, out, now_ns, told)
                with zstd.packing(out) as packing:
                    return exporting.export(view, folder.identity, packing, now_ns, told)
        finally:
            database.close()

    def _take_in(
        self, txn: Txn, file: IO[bytes], tell: Callable[[], None], *, is_new: bool
    ) -> Imported:
        rules = Rules(self._config.owner, self._config.content_limit, is_new)
        return importing.take_in(txn, file, rules, self._clock.now_ns(), tell)


@contextmanager
def _reading(
    source: Path | BufferedReader, told: Told
) -> Iterator[tuple[IO[bytes], Callable[[], None]]]:
    """The archive, and what tells how much of its file was read; of a pipe nobody knows."""
    if isinstance(source, Path):
        if not source.is_file():
            raise NotFound(f"there is no file {source}")
        size = source.stat().st_size
        with durable.translating(source), source.open("rb") as file, zstd.unpacking(file) as held:
            yield held, lambda: told(file.tell(), size)
    else:
        with durable.translating(Path("standard input")), zstd.unpacking(source) as held:
            yield held, lambda: None


def _identify(txn: Txn, identity: Identity | None, name: str | None, clock: Clock) -> None:
    """Have the file say who it is: as it was exported, or anew."""
    if identity is None and name is None:
        raise UsageError(
            "the archive does not say what the folder is called: say so with --as NAME"
        )
    meta.identify(txn, identity or registry.fresh(name or "", clock))
