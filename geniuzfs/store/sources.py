"""Sources as a question names them: by directory, time and label; and what is said of each.

Hides: that a file's time and labels are its inode's, and that a memory has neither
directory nor label.
"""

from typing import NamedTuple

from geniuzfs.errors import NotFound
from geniuzfs.model import ROOT, InodeNumber
from geniuzfs.store import labels as of_file
from geniuzfs.store import paths
from geniuzfs.store.labels import LABEL
from geniuzfs.store.memories import kept_ns
from geniuzfs.store.passages import SourceId
from geniuzfs.store.transactions import View


class Filter(NamedTuple):
    """What is in scope: beneath `beneath` (a file: itself alone), written in [since, until)."""

    beneath: InodeNumber
    since_ns: int | None
    until_ns: int | None
    labels: tuple[tuple[str, str], ...]


def within(view: View, directory: InodeNumber, path: str) -> InodeNumber:
    """What stands at `path` beneath `directory`. Raises NotFound."""
    found = paths.find(view, _bytes(path), directory)
    if found is None:
        raise NotFound(f"there is nothing at {path!r}")
    return found


def chosen(view: View, wanted: Filter) -> list[SourceId]:
    """The sources that are in scope."""
    found = _in_time(view, wanted)
    if wanted.beneath != ROOT:
        inside = {wanted.beneath, *paths.files_beneath(view, wanted.beneath)}
        found = [row for row in found if row[1] in inside]
    for key, value in wanted.labels:
        rows = view.rows(
            "SELECT inode FROM xattrs WHERE name = ? AND value = ?",
            (LABEL + _bytes(key), _bytes(value)),
        )
        labelled = {row[0] for row in rows}
        found = [row for row in found if row[1] in labelled]
    return [row[0] for row in found]


def _in_time(view: View, wanted: Filter) -> list[tuple[SourceId, InodeNumber | None]]:
    if wanted.since_ns is None and wanted.until_ns is None:
        return view.rows("SELECT id, inode FROM sources WHERE state = 'learned'")
    since = -(2**63) if wanted.since_ns is None else wanted.since_ns
    until = 2**63 - 1 if wanted.until_ns is None else wanted.until_ns
    files = view.rows(
        "SELECT id, inode FROM sources WHERE state = 'learned' AND inode IS NOT NULL AND"
        " (SELECT mtime_ns >= ? AND mtime_ns < ? FROM inodes WHERE number = inode)",
        (since, until),
    )
    memories = view.rows(
        "SELECT id, memory FROM sources WHERE state = 'learned' AND memory IS NOT NULL"
    )
    kept = [(id_, None) for id_, memory in memories if since <= _kept_ns(view, memory) < until]
    return [*files, *kept]


def written_ns(view: View, source: SourceId) -> int:
    """When it was written: a file's mtime, a memory's time; 0 when it is gone."""
    row = view.row("SELECT inode, memory FROM sources WHERE id = ?", (source,))
    if row is None:
        return 0
    if row[0] is None:
        return _kept_ns(view, row[1])
    found = view.row("SELECT mtime_ns FROM inodes WHERE number = ?", (row[0],))
    return 0 if found is None else int(found[0])


class Written(NamedTuple):
    """When a source was written (ns). A memory's time is told in seconds; `number`, which grows
    in the order of keeping, orders those of one second.
    """

    source: SourceId
    written_ns: int
    number: int = 0


def by_time(view: View) -> list[Written]:
    """Every source that says something, and when it was written."""
    files = view.rows(
        "SELECT id, (SELECT mtime_ns FROM inodes WHERE number = inode) FROM sources"
        " WHERE state = 'learned' AND inode IS NOT NULL"
    )
    memories = view.rows(
        "SELECT sources.id, created_at, memories.rowid FROM sources"
        " JOIN memories ON memory_uuid = memory WHERE state = 'learned'"
    )
    kept = (Written(id_, kept_ns(created_at), number) for id_, created_at, number in memories)
    return [*map(Written._make, ((*row, 0) for row in files)), *kept]


def path(view: View, source: SourceId) -> bytes | None:
    """Where the file stands, relative to the folder's top; None: it is gone."""
    row = view.row("SELECT inode FROM sources WHERE id = ?", (source,))
    return None if row is None or row[0] is None else paths.path(view, row[0])


def labels(view: View, source: SourceId) -> dict[str, str]:
    """A file's labels: key → value; none for a memory."""
    row = view.row("SELECT inode FROM sources WHERE id = ?", (source,))
    return {} if row is None or row[0] is None else of_file.labels(view, row[0])


def _kept_ns(view: View, memory: str) -> int:
    row = view.row("SELECT created_at FROM memories WHERE memory_uuid = ?", (memory,))
    return 0 if row is None else kept_ns(row[0])


def _bytes(asked: str) -> bytes:
    """Names and values as they are stored: what is not UTF-8 is asked for as lone surrogates."""
    return asked.encode("utf-8", "surrogateescape")
