"""The tree of files: names, inodes and the rules between them.

Hides: how names and inodes are stored. Promises: every function that changes
something takes a Txn and leaves link counts, times and directories as POSIX
wants them; where it raises, the transaction must be undone (leaving the `with`
does). Refuses: what the errors say, whatever the caller has checked before:
another process may have changed the tree since. Permissions are the kernel's.
"""

import stat
from collections.abc import Callable, Sequence
from typing import NamedTuple

from geniuzfs.errors import (
    AlreadyExists,
    DirectoryNotEmpty,
    IntoItself,
    IsADirectory,
    NameTooLong,
    NotADirectory,
    NotFound,
    UsageError,
)
from geniuzfs.model import NAME_MAX, ROOT, Entry, Exchange, Inode, InodeNumber
from geniuzfs.store import lineages
from geniuzfs.store.lineages import Who
from geniuzfs.store.transactions import Txn, View

_COLUMNS = "number, mode, uid, gid, nlink, rdev, size, stored, atime_ns, mtime_ns, ctime_ns"


class New(NamedTuple):
    """What a new inode starts with. `rdev` is for device nodes, `target` for symbolic links."""

    mode: int
    uid: int
    gid: int
    rdev: int = 0
    target: bytes | None = None


class Fields(NamedTuple):
    """Attributes to set; None leaves one as it is."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    atime_ns: int | None = None
    mtime_ns: int | None = None


class Renamed(NamedTuple):
    """What a rename did. `other` is what had the new name, after it: with
    `nlink` 0 it is gone; None where nothing had it.
    """

    moved: Inode
    other: Inode | None


def _let_it_go(_inode: Inode) -> None:
    """Nobody has it open."""


def inode(view: View, number: InodeNumber) -> Inode | None:
    row = view.row(f"SELECT {_COLUMNS} FROM inodes WHERE number = ?", (number,))
    return None if row is None else Inode._make(row)


def child(view: View, parent: InodeNumber, name: bytes) -> Inode | None:
    """What `name` in directory `parent` stands for."""
    # A subquery and no join: 4 us, where SQLite takes 10 to run the join.
    row = view.row(
        f"SELECT {_COLUMNS} FROM inodes"
        " WHERE number = (SELECT inode FROM entries WHERE parent = ? AND name = ?)",
        (parent, name),
    )
    return None if row is None else Inode._make(row)


def listing(view: View, parent: InodeNumber, after: int, limit: int) -> list[Entry]:
    """Up to `limit` entries (all: -1) whose id is above `after`, in the order of their ids."""
    rows = view.rows(
        "SELECT id, name, inode FROM entries WHERE parent = ? AND id > ? ORDER BY id LIMIT ?",
        (parent, after, limit),
    )
    return list(map(Entry._make, rows))


def inodes_listed(view: View, parent: InodeNumber, first: int, last: int) -> list[Inode]:
    """The inodes of the entries whose ids are from `first` to `last`."""
    rows = view.rows(
        f"SELECT {_COLUMNS} FROM inodes WHERE number IN"
        " (SELECT inode FROM entries WHERE parent = ? AND id BETWEEN ? AND ?)",
        (parent, first, last),
    )
    return list(map(Inode._make, rows))


def parent_of(view: View, number: InodeNumber) -> InodeNumber:
    """A directory that holds `number` (a directory has one); the top is its own parent."""
    row = view.row("SELECT parent FROM entries WHERE inode = ?", (number,))
    return ROOT if row is None else InodeNumber(row[0])


def target(view: View, number: InodeNumber) -> bytes:
    """Where a symbolic link points. Raises NotFound for anything else."""
    row = view.row("SELECT target FROM inodes WHERE number = ?", (number,))
    if row is None or row[0] is None:
        raise NotFound(f"inode {number} is no symbolic link")
    return bytes(row[0])


def make_root(txn: Txn, new: New, now_ns: int) -> None:
    """The top directory, unless it is there."""
    txn.run(
        "INSERT INTO inodes (number, mode, uid, gid, nlink, atime_ns, mtime_ns, ctime_ns)"
        " VALUES (?1, ?2, ?3, ?4, 2, ?5, ?5, ?5) ON CONFLICT DO NOTHING",
        (ROOT, new.mode, new.uid, new.gid, now_ns),
    )


def create(txn: Txn, parent: InodeNumber, name: bytes, new: New, now_ns: int) -> Inode:
    """A new file of any type under a name that is free. Raises AlreadyExists,
    NotFound (no such directory), NotADirectory, NameTooLong, UsageError (no name at all).
    """
    _check_name(name)
    is_directory = stat.S_ISDIR(new.mode)
    nlink = 2 if is_directory else 1
    size = len(new.target) if new.target is not None else 0
    txn.run(
        "INSERT INTO inodes"
        " (mode, uid, gid, nlink, rdev, size, atime_ns, mtime_ns, ctime_ns, target)"
        " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?7, ?8)",
        (new.mode, new.uid, new.gid, nlink, new.rdev, size, now_ns, new.target),
    )
    number = InodeNumber(txn.inserted())
    add_entry(txn, parent, name, number)
    _touch_parent(txn, parent, now_ns, 1 if is_directory else 0)
    if stat.S_ISREG(new.mode):
        lineages.begin(txn, number, (parent, name))
    return Inode(
        number, new.mode, new.uid, new.gid, nlink, new.rdev, size, 0, now_ns, now_ns, now_ns
    )


def link(txn: Txn, number: InodeNumber, parent: InodeNumber, name: bytes, now_ns: int) -> Inode:
    """A further name for a file that is no directory."""
    _check_name(name)
    found = inode(txn, number)
    if found is None:
        raise NotFound(f"inode {number} is gone")
    if stat.S_ISDIR(found.mode):
        raise IsADirectory("a directory has one name")
    add_entry(txn, parent, name, number)
    _touch_parent(txn, parent, now_ns, 0)
    return _relink(txn, found, 1, now_ns)


def remove(
    txn: Txn,
    parent: InodeNumber,
    name: bytes,
    now_ns: int,
    *,
    directory: bool,
    losing: Callable[[Inode], None] = _let_it_go,
    keep: bool = True,
) -> Inode:
    """Take a name away, and with the last one the file. Returns the inode as it
    is then; with `nlink` 0 its row is gone. `directory` says which kind is meant;
    `losing` is called with a file while its row and bytes are still there. Without
    `keep` its history goes with it.
    """
    found = child(txn, parent, name)
    if found is None:
        raise NotFound(f"no {name!r} here")
    _check_kind(found, directory)
    if directory:
        _check_empty(txn, found.number)
        lineages.end_directory(txn, found.number)
    elif lineages.is_last(txn, found, (parent, name)):
        if keep:
            lineages.end(txn, found, (parent, name), now_ns, backup=found.nlink > 1)
        else:
            lineages.drop(txn, found.number)
    txn.run("DELETE FROM entries WHERE parent = ? AND name = ?", (parent, name))
    _touch_parent(txn, parent, now_ns, -1 if directory else 0)
    return _unlinked(txn, found, now_ns, losing)


def remove_all(txn: Txn, numbers: Sequence[InodeNumber], now_ns: int) -> None:
    """Take away these inodes with all their names, wherever those are. They must be whole: with a
    directory goes everything beneath it.
    """
    parents: dict[InodeNumber, int] = {}
    for number in numbers:
        found = inode(txn, number)
        links = 1 if found is not None and stat.S_ISDIR(found.mode) else 0
        for (parent,) in txn.rows("SELECT parent FROM entries WHERE inode = ?", (number,)):
            parents[parent] = parents.get(parent, 0) + links
        txn.run("DELETE FROM entries WHERE inode = ?", (number,))
    for number in numbers:
        txn.run("DELETE FROM inodes WHERE number = ?", (number,))
        parents.pop(number, None)
    for parent, links in parents.items():
        _touch_parent(txn, parent, now_ns, -links)


def rename(
    txn: Txn,
    old: tuple[InodeNumber, bytes],
    new: tuple[InodeNumber, bytes],
    exchange: Exchange,
    now_ns: int,
    *,
    losing: Callable[[Inode], None] = _let_it_go,
    who: Who = lineages.unknown,
) -> Renamed:
    """Move the entry `old` (directory, name) to `new`, replacing, refusing or
    swapping with what is there. One step for whoever looks on. `losing` is
    called with a file that is replaced, while its row and bytes are still there;
    `who` does it is for its history.
    """
    _check_name(new[1])
    moved, other = child(txn, *old), child(txn, *new)
    if moved is None or (other is None and exchange is Exchange.SWAP):
        raise NotFound("nothing of that name to rename")
    if other is not None and exchange is Exchange.NOREPLACE:
        raise AlreadyExists(f"{new[1]!r} is taken")
    if other is not None and other.number == moved.number:
        return Renamed(moved, other)  # two names of one file: POSIX wants nothing done
    _check_not_into_itself(txn, moved, new[0])
    if exchange is Exchange.SWAP and other is not None:
        _check_not_into_itself(txn, other, old[0])
        lineages.swap(txn, moved, old, other, new, now_ns, who)
        return _swap(txn, (old, moved), (new, other), now_ns)
    if other is not None:
        _check_kind(other, stat.S_ISDIR(moved.mode))
    if other is not None and lineages.is_last(txn, other, new):
        lineages.pass_on(txn, moved, old, other, new, now_ns, who)
    else:
        lineages.rename(txn, moved, old, new, now_ns)
    if other is not None:
        other = _replaced(txn, new, other, stat.S_ISDIR(moved.mode), now_ns, losing)
    return Renamed(_moved(txn, old, new, moved, now_ns), other)


def change(txn: Txn, number: InodeNumber, fields: Fields, now_ns: int) -> Inode:
    """Set attributes; ctime moves, the file type stays. Raises NotFound."""
    txn.run(
        "UPDATE inodes SET mode = (mode & 61440) | (coalesce(?, mode) & 4095),"
        " uid = coalesce(?, uid), gid = coalesce(?, gid), atime_ns = coalesce(?, atime_ns),"
        " mtime_ns = coalesce(?, mtime_ns), ctime_ns = ? WHERE number = ?",
        (*fields, now_ns, number),
    )
    found = inode(txn, number)
    if found is None:
        raise NotFound(f"inode {number} is gone")
    return found


def _check_name(name: bytes) -> None:
    if name in (b"", b".", b"..") or b"/" in name or b"\0" in name:
        raise UsageError(f"{name!r} can't be a name")
    if len(name) > NAME_MAX:
        raise NameTooLong(f"a name has at most {NAME_MAX} bytes, this one {len(name)}")


def _check_kind(found: Inode, directory: bool) -> None:
    if directory and not stat.S_ISDIR(found.mode):
        raise NotADirectory("not a directory")
    if not directory and stat.S_ISDIR(found.mode):
        raise IsADirectory("a directory")


def _check_empty(view: View, number: InodeNumber) -> None:
    if view.row("SELECT 1 FROM entries WHERE parent = ? LIMIT 1", (number,)):
        raise DirectoryNotEmpty("the directory is not empty")


def _check_not_into_itself(view: View, moved: Inode, parent: InodeNumber) -> None:
    if not stat.S_ISDIR(moved.mode):
        return
    # UNION, not UNION ALL: it ends even in a ring, which only a damaged tree has.
    if view.row(
        "WITH RECURSIVE above (number) AS (SELECT ?1 UNION"
        " SELECT parent FROM entries JOIN above ON inode = number)"
        " SELECT 1 FROM above WHERE number = ?2",
        (parent, moved.number),
    ):
        raise IntoItself("a directory can't be moved beneath itself")


def add_entry(txn: Txn, parent: InodeNumber, name: bytes, number: InodeNumber) -> None:
    """Write a name down, and nothing else: counts and times are the caller's."""
    txn.run(
        "INSERT INTO entries (parent, name, id, inode) VALUES"
        " (?1, ?2, (SELECT coalesce(max(id), 0) + 1 FROM entries WHERE parent = ?1), ?3)",
        (parent, name, number),
    )


def _touch_parent(txn: Txn, parent: InodeNumber, now_ns: int, links: int) -> None:
    txn.run(
        "UPDATE inodes SET mtime_ns = ?1, ctime_ns = ?1, nlink = nlink + ?2"
        " WHERE number = ?3 AND (mode & 61440) = 16384",
        (now_ns, links, parent),
    )
    if not txn.changed():
        raise NotADirectory(f"inode {parent} is no directory")


def _relink(txn: Txn, found: Inode, links: int, now_ns: int) -> Inode:
    txn.run(
        "UPDATE inodes SET nlink = nlink + ?, ctime_ns = ? WHERE number = ?",
        (links, now_ns, found.number),
    )
    return found._replace(nlink=found.nlink + links, ctime_ns=now_ns)


def _unlinked(txn: Txn, found: Inode, now_ns: int, losing: Callable[[Inode], None]) -> Inode:
    """`found` with one name less; its row goes with the last (a directory has but one)."""
    if found.nlink > 1 and not stat.S_ISDIR(found.mode):
        return _relink(txn, found, -1, now_ns)
    losing(found)
    txn.run("DELETE FROM inodes WHERE number = ?", (found.number,))
    return found._replace(nlink=0, ctime_ns=now_ns)


def _replaced(
    txn: Txn,
    place: tuple[InodeNumber, bytes],
    other: Inode,
    directory: bool,
    now_ns: int,
    losing: Callable[[Inode], None],
) -> Inode:
    if directory:
        _check_empty(txn, other.number)
        lineages.end_directory(txn, other.number)
        _touch_parent(txn, place[0], now_ns, -1)
    txn.run("DELETE FROM entries WHERE parent = ? AND name = ?", place)
    return _unlinked(txn, other, now_ns, losing)


def _moved(
    txn: Txn,
    old: tuple[InodeNumber, bytes],
    new: tuple[InodeNumber, bytes],
    moved: Inode,
    now_ns: int,
) -> Inode:
    if old[0] == new[0]:
        txn.run("UPDATE entries SET name = ? WHERE parent = ? AND name = ?", (new[1], *old))
        _touch_parent(txn, new[0], now_ns, 0)
    else:
        links = 1 if stat.S_ISDIR(moved.mode) else 0
        txn.run("DELETE FROM entries WHERE parent = ? AND name = ?", old)
        add_entry(txn, *new, moved.number)
        _touch_parent(txn, old[0], now_ns, -links)
        _touch_parent(txn, new[0], now_ns, links)
    return _relink(txn, moved, 0, now_ns)


def _swap(
    txn: Txn,
    one: tuple[tuple[InodeNumber, bytes], Inode],
    two: tuple[tuple[InodeNumber, bytes], Inode],
    now_ns: int,
) -> Renamed:
    (old, moved), (new, other) = one, two
    for place, found in ((old, other), (new, moved)):
        txn.run(
            "UPDATE entries SET inode = ? WHERE parent = ? AND name = ?", (found.number, *place)
        )
    gained = 0
    if old[0] != new[0]:
        gained = int(stat.S_ISDIR(moved.mode)) - int(stat.S_ISDIR(other.mode))
        _touch_parent(txn, old[0], now_ns, -gained)
    _touch_parent(txn, new[0], now_ns, gained)
    return Renamed(_relink(txn, moved, 0, now_ns), _relink(txn, other, 0, now_ns))
