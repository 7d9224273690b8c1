"""Whose history goes on where: what a new name, a rename and a removal do to it.

Hides: which inodes were one file to whoever saved it. Promises: history stays with the name when
an editor saves by renaming a new file over it, or the old one away first; otherwise with the file,
wherever it is moved; it goes on where a file is created again. What ends a content keeps it as a
version. Labels follow where the inode that had them was replaced (DESIGN: "What is learned").
Refuses: to follow directories, links and devices: they have no content.
"""

import stat
from collections.abc import Callable
from typing import NamedTuple

from geniuzfs.model import NOBODY, Inode, InodeNumber, Writer
from geniuzfs.names import is_temporary
from geniuzfs.store import labels, paths, pieces, versions
from geniuzfs.store.transactions import Txn
from geniuzfs.store.versions import LineageId, New, Old

Place = tuple[InodeNumber, bytes]
"""A directory and a name in it."""


class Replacing(NamedTuple):
    """What is to be known of whoever renames a file over another: see versions.New."""

    by: Writer = NOBODY
    over: Writer = NOBODY
    blind: bool = False


Who = Callable[[Inode], Replacing]
"""Asked with the file that is replaced."""


def unknown(_replaced: Inode) -> Replacing:
    """Nothing is known."""
    return Replacing()


def is_last(txn: Txn, found: Inode, place: Place) -> bool:
    """Whether the file is gone for people without this name: others that it has are those of
    backups, which some programs make by link(2).
    """
    if found.nlink == 1 or not stat.S_ISREG(found.mode):
        return found.nlink == 1
    return not is_temporary(place[1]) and not versions.lasts(txn, found.number, place)


def begin(txn: Txn, number: InodeNumber, place: Place) -> None:
    """A file was created, or a file without history got a name: if one ended there, it goes on."""
    found = _ended_at(txn, place)
    if found is None:
        return
    lineage, backup = found
    txn.run(
        "UPDATE lineages SET inode = ?, parent = NULL, directory = NULL, name = NULL,"
        " ended_ns = NULL, backup = NULL, pid = 0, is_first = 0 WHERE id = ?",
        (number, lineage),
    )
    if backup is not None:
        labels.inherit(txn, InodeNumber(backup), number)


def end(txn: Txn, found: Inode, place: Place, now_ns: int, *, backup: bool = False) -> None:
    """A file is about to lose its last name, or (`backup`) to be a backup alone: its content
    becomes a version, and its history ends at `place`.
    """
    if not stat.S_ISREG(found.mode):
        return
    held = pieces.lengths(txn, found.number)
    nothing = New(0, lambda _: b"", now_ns, ends=True)
    versions.replace(txn, _old(found), nothing, held)
    txn.run(
        "UPDATE lineages SET inode = NULL, parent = ?, name = ?, ended_ns = ?, backup = ?"
        " WHERE inode = ?",
        (*place, now_ns, found.number if backup else None, found.number),
    )


def drop(txn: Txn, number: InodeNumber) -> None:
    """The file is about to go, and its history with it: the disk is full."""
    txn.run("DELETE FROM lineages WHERE inode = ?", (number,))


def end_directory(txn: Txn, number: InodeNumber) -> None:
    """A directory is about to go: what ended in it is remembered by its path."""
    if txn.row("SELECT 1 FROM lineages WHERE parent = ? LIMIT 1", (number,)):
        path = paths.path(txn, number)
        txn.run("UPDATE lineages SET directory = ?, parent = NULL WHERE parent = ?", (path, number))


def pass_on(
    txn: Txn, moved: Inode, old: Place, other: Inode, new: Place, now_ns: int, who: Who
) -> None:
    """`moved`, at `old`, is about to take the place of `other`, whose last name is at `new`."""
    if not stat.S_ISREG(moved.mode) or not stat.S_ISREG(other.mode):
        end(txn, other, new, now_ns)
        rename(txn, moved, old, new, now_ns)
        return
    if is_temporary(new[1]):  # the backup of the save before
        if versions.lineage_of(txn, other.number) is not None:
            end(txn, other, new, now_ns)
        rename(txn, moved, old, new, now_ns)
        return
    _succeed(txn, moved, old, other, now_ns, who)


def swap(
    txn: Txn, moved: Inode, old: Place, other: Inode, new: Place, now_ns: int, who: Who
) -> None:
    """Each is about to get the other's name. Where one of the names is only passing by that is a
    save, as by a rename; else each keeps its history.
    """
    if not stat.S_ISREG(moved.mode) or not stat.S_ISREG(other.mode):
        rename(txn, moved, old, new, now_ns)
        rename(txn, other, new, old, now_ns)
        return
    if is_temporary(old[1]) and is_last(txn, other, new):
        _succeed(txn, moved, old, other, now_ns, who)
    elif is_temporary(new[1]) and is_last(txn, moved, old):
        _succeed(txn, other, new, moved, now_ns, who)


def _succeed(txn: Txn, moved: Inode, old: Place, other: Inode, now_ns: int, who: Who) -> None:
    """`moved`, at `old`, has from now on the history of `other`."""
    held = {*pieces.lengths(txn, moved.number), *pieces.lengths(txn, other.number)}
    content = New(moved.size, _of(txn, moved.number), now_ns, *who(other))
    versions.replace(txn, _old(other), content, held)
    lineage = versions.lineage_of(txn, other.number)
    if lineage is not None:
        if versions.lineage_of(txn, moved.number) is not None:
            end(txn, moved, old, now_ns)
        txn.run("UPDATE lineages SET inode = ? WHERE id = ?", (moved.number, lineage))
    labels.inherit(txn, other.number, moved.number)


def rename(txn: Txn, moved: Inode, old: Place, new: Place, now_ns: int) -> None:
    """`moved` is about to go from `old` to `new`, where nothing is, or what has other names."""
    if not stat.S_ISREG(moved.mode):
        return
    was, becomes = is_temporary(old[1]), is_temporary(new[1])
    if becomes and not was and is_last(txn, moved, old):
        end(txn, moved, old, now_ns, backup=True)
    elif not becomes and versions.lineage_of(txn, moved.number) is None:
        begin(txn, moved.number, new)
        lineage = versions.lineage_of(txn, moved.number)
        if lineage is not None:
            held = pieces.lengths(txn, moved.number)
            versions.follow(txn, lineage, moved.size, _of(txn, moved.number), held)


def _ended_at(txn: Txn, place: Place) -> tuple[LineageId, int | None] | None:
    row = txn.row(
        "SELECT id, backup FROM lineages WHERE parent = ? AND name = ? ORDER BY id DESC", place
    )
    if row is None and txn.row("SELECT 1 FROM lineages WHERE directory IS NOT NULL LIMIT 1"):
        row = txn.row(
            "SELECT id, backup FROM lineages WHERE directory = ? AND name = ? ORDER BY id DESC",
            (paths.path(txn, place[0]), place[1]),
        )
    return row and (row[0], row[1])


def _old(found: Inode) -> Old:
    return Old(found.number, found.size, found.mode, found.mtime_ns)


def _of(txn: Txn, number: InodeNumber) -> Callable[[int], bytes]:
    return lambda index: pieces.piece(txn, number, index)
