"""A folder in numbers, for people and programs."""

from typing import NamedTuple

from geniuzfs.folders.registry import Folder
from geniuzfs.store import counts
from geniuzfs.store.connection import Database


class FolderStatus(NamedTuple):
    """A folder in numbers. Sizes in bytes."""

    folder: Folder
    counts: counts.Counts
    database_bytes: int
    wal_bytes: int

    def line(self) -> str:
        """All of it in a line, for people."""
        counted = self.counts
        return (
            f"{self.folder.name}: {counted.files} files, {counted.directories} directories,"
            f" {counted.bytes} bytes, {counted.memories} kept memories,"
            f" {counted.passages} passages learned, {counted.due} files and"
            f" {counted.awaiting} passages to be learned{self._past()}"
        )

    def _past(self) -> str:
        counted = self.counts
        if not counted.versions:
            return ""
        conflicts = f", {counted.conflicts} of them in conflict" if counted.conflicts else ""
        return f", {counted.versions} earlier versions of {counted.version_bytes} bytes{conflicts}"

    def waits(self, now_ns: int) -> float | None:
        """Seconds for which the oldest of what is due has waited; None: nothing is. A clock that
        was set back makes no negative age.
        """
        since = self.counts.due_since_ns
        return None if since is None else max(0.0, (now_ns - since) / 1e9)

    def waiting_line(self, now_ns: int) -> str | None:
        """The same for people."""
        waits = self.waits(now_ns)
        return None if waits is None else f"{self.folder.name}: the oldest waits for {waits:.0f} s"


def folder_status(folder: Folder) -> FolderStatus:
    """As it is now. Raises what opening it raises."""
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
