"""A folder in numbers."""

from typing import NamedTuple

from geniuzfs.store.transactions import View


class Counts(NamedTuple):
    """How many there are; `bytes` of content; `passages` learned by their words, of which
    `awaiting` have no vector yet; `due` files to be learned, the longest waiting since
    `due_since_ns` (None: none waits); `versions` of replaced content, which keep `version_bytes`,
    `conflicts` of them replaced by one who had not read them.
    """

    files: int
    directories: int
    bytes: int
    memories: int
    passages: int
    awaiting: int
    due: int
    due_since_ns: int | None
    versions: int
    version_bytes: int
    conflicts: int


def counts(view: View) -> Counts:
    """Count. Reads every inode's row once."""
    files, directories, stored = view.row(
        "SELECT count(*) FILTER (WHERE (mode & 61440) <> 16384),"
        " count(*) FILTER (WHERE (mode & 61440) = 16384), coalesce(sum(stored), 0) FROM inodes"
    )
    memories = view.row("SELECT count(*) FROM memories")[0]
    passages = view.row("SELECT count(*) FROM passages WHERE context = 0")[0]
    awaiting = view.row("SELECT count(*) FROM awaits")[0]
    due, since = view.row("SELECT count(*), min(since_ns) FROM due")
    versions, version_bytes = view.row("SELECT count(*), coalesce(sum(stored), 0) FROM versions")
    conflicts = view.row("SELECT count(*) FROM versions WHERE blind = 1")[0]
    return Counts(
        files,
        directories,
        stored,
        memories,
        passages,
        awaiting,
        due,
        since,
        versions,
        version_bytes,
        conflicts,
    )


def newest_ns(view: View) -> int:
    """When the newest file was changed, by the clock of then; 0 where there is none. Not by mtime,
    which people set as they like.
    """
    newest: int = view.row("SELECT coalesce(max(ctime_ns), 0) FROM inodes")[0]
    return newest
