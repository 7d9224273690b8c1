"""Versions as people look for them: by the path of a file, there or removed, and by time.

Hides: that a file that ended is known by its directory, and by a path once that is gone too.
Promises: a version's name is sortable within its file, and stays as it is (in one time zone).
"""

import re
from datetime import datetime
from typing import NamedTuple

from geniuzfs.model import InodeNumber
from geniuzfs.store import paths
from geniuzfs.store.transactions import View
from geniuzfs.store.versions import COLUMNS, LineageId, Version

CONFLICT = "~conflict"

_EXTENSION = re.compile(rb"\.[A-Za-z0-9]{1,8}")


class Summary(NamedTuple):
    """A file that has a history, under one of its names."""

    path: bytes
    lineage: LineageId
    removed: bool
    changed_ns: int
    """When a version was replaced last, or when it was removed."""
    versions: int
    conflicts: int


def at(view: View, path: bytes) -> list[Version]:
    """The versions of what is at `path`, and of what ended there, the oldest first."""
    found: list[Version] = []
    for lineage in lineages(view, path):
        rows = view.rows(f"SELECT {COLUMNS} FROM versions WHERE lineage = ?", (lineage,))
        found += map(Version._make, rows)
    return sorted(found, key=lambda one: (one.replaced_ns, one.id))


def named(view: View, path: bytes) -> dict[bytes, Version]:
    """The same, by their names: `2026-11-29T14.03.22.123.md`, in local time, with `~conflict`
    before the extension where it was replaced by one who had not read it.
    """
    known: dict[bytes, Version] = {}
    extension = _EXTENSION.fullmatch(b"." + path.rpartition(b"/")[2].rpartition(b".")[2])
    tail = extension[0] if extension and b"." in path.rpartition(b"/")[2][1:] else b""
    for version in at(view, path):
        stem = _moment(version.replaced_ns) + (CONFLICT if version.blind else "")
        name, again = stem.encode() + tail, 1
        while name in known:  # of two files that ended here, or as the clock was set back
            again += 1
            name = b"%s-%d%s" % (stem.encode(), again, tail)
        known[name] = version
    return known


def lineages(view: View, path: bytes) -> list[LineageId]:
    """The histories at `path`: of the file that is there, then of those that ended there."""
    above, _, name = path.rpartition(b"/")
    found = view.rows(
        "SELECT id FROM lineages WHERE inode = ?", (paths.find(view, path) or 0,)
    ) + view.rows(
        "SELECT id FROM lineages WHERE (parent = ?2 AND name = ?1)"
        " OR (directory = ?3 AND name = ?1) ORDER BY id DESC",
        (name, _directory(view, above) or 0, above),
    )
    return [LineageId(row[0]) for row in found]


def directories(view: View) -> set[bytes]:
    """The paths of the directories, there or removed, beneath which anything has versions."""
    found = {
        path
        for (number,) in view.rows(
            "SELECT e.parent FROM lineages AS l JOIN entries AS e ON e.inode = l.inode"
            " WHERE EXISTS (SELECT 1 FROM versions WHERE lineage = l.id) UNION"
            " SELECT parent FROM lineages AS l WHERE parent IS NOT NULL"
            " AND EXISTS (SELECT 1 FROM versions WHERE lineage = l.id)"
        )
        if (path := paths.path(view, number)) is not None
    }
    found.update(
        row[0]
        for row in view.rows(
            "SELECT DISTINCT directory FROM lineages AS l WHERE directory IS NOT NULL"
            " AND EXISTS (SELECT 1 FROM versions WHERE lineage = l.id)"
        )
    )
    for path in list(found):
        while path:
            path = path.rpartition(b"/")[0]
            found.add(path)
    return found


def names(view: View, directory: bytes) -> set[bytes]:
    """The names of the files in a directory, there or removed, that have versions."""
    rows = view.rows(
        "SELECT e.name FROM entries AS e JOIN lineages AS l ON l.inode = e.inode"
        " WHERE e.parent = ?1"
        " AND EXISTS (SELECT 1 FROM versions WHERE lineage = l.id) UNION"
        " SELECT l.name FROM lineages AS l WHERE (parent = ?1 OR directory = ?2)"
        " AND EXISTS (SELECT 1 FROM versions WHERE lineage = l.id)",
        (_directory(view, directory) or 0, directory),
    )
    return {row[0] for row in rows}


def summaries(view: View) -> list[Summary]:
    """Every file that has versions, what changed last first."""
    rows = view.rows(
        "SELECT l.id, l.inode, l.parent, l.directory, l.name,"
        " coalesce(max(l.ended_ns, max(v.replaced_ns)), max(v.replaced_ns)) AS changed,"
        " count(*), sum(v.blind) FROM lineages AS l JOIN versions AS v ON v.lineage = l.id"
        " GROUP BY l.id ORDER BY changed DESC, l.id DESC"
    )
    found = []
    for id_, inode, parent, directory, name, changed_ns, count, blind in rows:
        path = (
            paths.path(view, inode) if inode is not None else _ended(view, parent, directory, name)
        )
        if path is not None:
            found.append(Summary(path, id_, inode is None, changed_ns, count, blind))
    return found


def removed_beneath(view: View, directory: bytes) -> list[Summary]:
    """The files that ended beneath a directory, there or removed, the last one first. Where
    several ended at one place: the last.
    """
    known: dict[bytes, Summary] = {}
    above = directory + b"/" if directory else b""
    for one in summaries(view):
        if one.removed and one.path.startswith(above):
            known.setdefault(one.path, one)
    return list(known.values())


def ended(view: View, prefix: bytes) -> list[LineageId]:
    """The histories that ended at a path that begins so, with a slash behind each name; those too
    of which no version is left.
    """
    rows = view.rows(
        "SELECT id, parent, directory, name FROM lineages WHERE inode IS NULL AND name IS NOT NULL"
    )
    found = ((LineageId(id_), _ended(view, *place)) for id_, *place in rows)
    return [id_ for id_, at in found if at is not None and (at + b"/").startswith(prefix)]


def _ended(view: View, parent: int | None, directory: bytes | None, name: bytes) -> bytes | None:
    above = directory if parent is None else paths.path(view, InodeNumber(parent))
    if above is None:
        return None
    return above + b"/" + name if above else name


def _directory(view: View, path: bytes) -> InodeNumber | None:
    found = paths.find(view, path)
    if found is None:
        return None
    row = view.row("SELECT mode & 61440 FROM inodes WHERE number = ?", (found,))
    return found if row is not None and row[0] == 16384 else None


def _moment(time_ns: int) -> str:
    seconds, rest = divmod(time_ns, 1_000_000_000)
    moment = datetime.fromtimestamp(seconds).astimezone()
    return f"{moment:%Y-%m-%dT%H.%M.%S}.{rest // 1_000_000:03d}"
