"""How the check puts right what it finds.

Hides: where things go that have lost their place: into `lost+found` in the top
directory, which is made when missing, each under `#` and its number. Promises:
no byte that a user wrote is dropped. Counts of links and bytes are left to the
check, which looks at them last.
"""

import itertools
import stat
from collections.abc import Callable, Sequence
from typing import Any

from geniuzfs.model import ROOT, InodeNumber
from geniuzfs.store import tree
from geniuzfs.store.transactions import Txn

Mend = Callable[[Txn, int], None]
"""Puts one thing right; the second argument is the time, in nanoseconds."""

FILE = stat.S_IFREG | 0o600
DIRECTORY = stat.S_IFDIR | 0o700

_LOST_AND_FOUND = b"lost+found"
_LARGEST = 2**36 - 1


def sql(statement: str, *values: Any) -> Mend:
    """One statement that mends."""
    return lambda txn, _now_ns: txn.run(statement, values)


def make_top(txn: Txn, now_ns: int) -> None:
    tree.make_root(txn, tree.New(stat.S_IFDIR | 0o755, 0, 0), now_ns)


def renumber_top(txn: Txn, now_ns: int) -> None:
    """What has number 1 and is no directory gets another number, with its names and bytes."""
    columns = "mode, uid, gid, nlink, rdev, size, stored, atime_ns, mtime_ns, ctime_ns, target"
    txn.run(f"INSERT INTO inodes ({columns}) SELECT {columns} FROM inodes WHERE number = 1")
    number = txn.inserted()
    for table in ("entries", "contents", "chunks", "xattrs"):
        txn.run(f"UPDATE {table} SET inode = ? WHERE inode = 1", (number,))
    txn.run("DELETE FROM due WHERE inode = 1")
    txn.run("UPDATE lineages SET inode = ? WHERE inode = 1", (number,))
    txn.run(
        "UPDATE inodes SET mode = ?, nlink = 2, rdev = 0, size = 0, stored = 0, target = NULL,"
        " mtime_ns = ?, ctime_ns = ? WHERE number = 1",
        (stat.S_IFDIR | 0o755, now_ns, now_ns),
    )


def give_inode(
    number: InodeNumber, mode: int, columns: Sequence[str], txn: Txn, now_ns: int
) -> None:
    """A new inode for the rows that have `number` in `columns` ("table.column"), under
    that number if nothing has it, owned by the owner of the top directory.
    """
    free = 1 <= number <= _LARGEST and tree.inode(txn, number) is None
    txn.run(
        "INSERT INTO inodes (number, mode, uid, gid, nlink, atime_ns, mtime_ns, ctime_ns)"
        " SELECT ?1, ?2, uid, gid, 1, ?3, ?3, ?3 FROM inodes WHERE number = 1",
        (number if free else None, mode, now_ns),
    )
    if not free:
        given = txn.inserted()
        for table, column in (name.split(".") for name in columns):
            txn.run(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (given, number))


def split_link(number: InodeNumber, txn: Txn, now_ns: int) -> None:
    """The target of what is no symbolic link goes into a link of its own."""
    txn.run(
        "INSERT INTO inodes (mode, uid, gid, nlink, size, atime_ns, mtime_ns, ctime_ns, target)"
        " SELECT ?1, uid, gid, 1, length(target), ?2, ?2, ?2, target FROM inodes WHERE number = ?3",
        (stat.S_IFLNK | 0o777, now_ns, number),
    )
    txn.run("UPDATE inodes SET target = NULL WHERE number = ?", (number,))


def rename_to_number(
    parent: InodeNumber, name: bytes, number: InodeNumber, txn: Txn, _now_ns: int
) -> None:
    """`name` in `parent` becomes the number of what it names."""
    txn.run(
        "UPDATE entries SET name = ? WHERE parent = ? AND name = ?",
        (_free_name(txn, parent, number), parent, name),
    )


def name_in_lost_and_found(number: InodeNumber, txn: Txn, now_ns: int) -> None:
    """A name there is the only one that `number` has."""
    place = _lost_and_found(txn, now_ns)
    txn.run("DELETE FROM entries WHERE inode = ?", (number,))
    tree.add_entry(txn, place, _free_name(txn, place, number), number)


def _lost_and_found(txn: Txn, now_ns: int) -> InodeNumber:
    for count in itertools.count():
        name = b"%s.%d" % (_LOST_AND_FOUND, count) if count else _LOST_AND_FOUND
        found = tree.child(txn, ROOT, name)
        if found is None:
            uid, gid = txn.row("SELECT uid, gid FROM inodes WHERE number = 1")
            return tree.create(txn, ROOT, name, tree.New(DIRECTORY, uid, gid), now_ns).number
        if stat.S_ISDIR(found.mode):
            return found.number
    raise AssertionError("counting never ends")


def _free_name(txn: Txn, parent: InodeNumber, number: InodeNumber) -> bytes:
    name = b"#%d" % number
    while txn.row("SELECT 1 FROM entries WHERE parent = ? AND name = ?", (parent, name)):
        name += b"_"
    return name
