"""class Geniuz: what can be asked of this program. Every door calls it."""

import stat
from pathlib import Path
from typing import NamedTuple

from geniuzfs.config import Config
from geniuzfs.errors import Busy, StoreDamaged
from geniuzfs.folders import mounts, registry
from geniuzfs.folders.registry import Folder
from geniuzfs.model import ROOT, FolderId, Identity, Problem
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
    """What a check of one folder found first, and what of it a repair has left."""

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

    def check(self, name: str | None, *, repair: bool) -> list[Checked]:
        """Look for broken invariants in one folder, or in all, those too that can't be
        opened any more; with `repair` mend what can be. Raises NotFound for the name.
        """
        folders = self.folders()
        if name is not None:
            return [self._check(registry.named(folders, name), repair)]
        left_out = self._files() - {folder.path for folder in folders}
        nameless = [_nameless(path) for path in sorted(left_out)]
        return [self._check(folder, repair) for folder in [*folders, *nameless]]

    def status(self) -> list[FolderStatus]:
        """Every folder in numbers."""
        return [self._status(folder) for folder in self.folders()]

    def mounted(self) -> list[Path]:
        """Where the data directory is mounted; dead mounts too."""
        return [mount.target for mount in mounts.ours(self.config.home)]

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

    def _files(self) -> set[Path]:
        home, file = self.config.home, registry.FILE
        below = (path for path in home.glob(f"*/{file}") if not path.parent.is_symlink())
        return {*home.glob(file), *below}

    def _check(self, folder: Folder, repair: bool) -> Checked:
        try:
            database = Database.open(folder.path)
            try:
                with database.snapshot() as view:
                    problems = list(check.problems(view))
                left = check.repair(database, self.clock.now_ns()) if repair else problems
            finally:
                database.close()
        except StoreDamaged as error:
            problems = left = [Problem("can_be_read", str(error), mendable=False)]
        return Checked(folder, problems, left)


def _nameless(path: Path) -> Folder:
    """A folder whose file can't say its name: it has that of its directory."""
    return Folder(path, Identity(FolderId(""), path.parent.name, "", ""))
