"""class Geniuz: what can be asked of this program. Every door calls it."""

import stat
from pathlib import Path
from typing import NamedTuple

from geniuzfs.config import Config
from geniuzfs.errors import Busy
from geniuzfs.folders import mounts, registry
from geniuzfs.folders.registry import Folder
from geniuzfs.model import ROOT, Problem
from geniuzfs.ports import Clock
from geniuzfs.store import check, counts, tree
from geniuzfs.store.connection import Database


class FolderStatus(NamedTuple):
    """A folder in numbers. Sizes in bytes."""

    folder: Folder
    counts: counts.Counts
    database_bytes: int
    wal_bytes: int


class Checked(NamedTuple):
    """What a check of one folder found, and whether it was mended."""

    folder: Folder
    problems: list[Problem]
    left: list[Problem]


class Geniuz:
    """The use cases, on the data directory that `config` names."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self.config = config
        self.clock = clock

    def begin(self) -> None:
        """First use: make the data directory and "My memory". Raises UnsafePlace for
        a place where a database could lose data.
        """
        mounts.check_safe(self.config.home.resolve())
        registry.begin(self.config.home, self.clock)

    def folders(self) -> list[Folder]:
        """Every folder, "My memory" first."""
        return registry.found(self.config.home, self.clock)

    def folder(self, name: str) -> Folder:
        """The folder called `name`, ignoring case. Raises NotFound."""
        return registry.named(self.folders(), name)

    def open(self, folder: Folder, *, wait: float) -> Database:
        """The folder's database, with a top directory. `wait`: seconds for another's lock."""
        mounts.check_safe(folder.path.resolve())
        database = Database.open(folder.path, wait=wait)
        try:
            if tree.inode(database.view, ROOT) is None:
                self._make_root(database)
        except BaseException:
            database.close()
            raise
        return database

    def check(self, folder: Folder, *, repair: bool) -> Checked:
        """Look for broken invariants, and with `repair` mend what can be. Raises
        StoreDamaged when the file can't be read at all.
        """
        database = Database.open(folder.path)
        try:
            with database.snapshot() as view:
                problems = list(check.problems(view))
            if not problems or not repair:
                return Checked(folder, problems, problems)
            with database.txn() as txn:
                check.repair(txn)
            with database.snapshot() as view:
                return Checked(folder, problems, list(check.problems(view)))
        finally:
            database.close()

    def status(self) -> list[FolderStatus]:
        """Every folder in numbers."""
        return [self._status(folder) for folder in self.folders()]

    def mounted(self) -> list[Path]:
        """Where this program's mounts are, of any user; dead ones too."""
        return [mount.target for mount in mounts.ours()]

    def _make_root(self, database: Database) -> None:
        uid, gid = self.config.owner
        try:
            with database.txn() as txn:
                tree.make_root(txn, tree.New(stat.S_IFDIR | 0o755, uid, gid), self.clock.now_ns())
        except Busy:
            if tree.inode(database.view, ROOT) is None:
                raise

    def _status(self, folder: Folder) -> FolderStatus:
        database = Database.open(folder.path)
        try:
            with database.snapshot() as view:
                counted = counts.counts(view)
            wal = database.wal_path
            return FolderStatus(
                folder,
                counted,
                folder.path.stat().st_size,
                wal.stat().st_size if wal.exists() else 0,
            )
        finally:
            database.close()
