"""The bytes of files, in pieces of CHUNK bytes.

Hides: that piece 0 is a row of `contents` and the others are rows of `chunks`.
Promises: a save lands whole, with size and times, in the caller's transaction;
the triggers of the schema mark the file as due in that same transaction.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from geniuzfs.errors import NotFound
from geniuzfs.model import CHUNK, InodeNumber
from geniuzfs.store.transactions import Txn, View

Piece = bytes | bytearray


class Save(NamedTuple):
    """What one save puts down. `pieces` replace those of their number (an empty
    one removes it), all others stay as they are.
    """

    size: int
    stored: int
    """Bytes in all pieces of the file, after this."""
    mtime_ns: int
    ctime_ns: int
    pieces: Mapping[int, Piece]


def lengths(view: View, number: InodeNumber) -> dict[int, int]:
    """Piece number → bytes it holds, for the pieces that are there."""
    rows = view.rows(
        "SELECT 0, length(bytes) FROM contents WHERE inode = ?1"
        " UNION ALL SELECT number, length(bytes) FROM chunks WHERE inode = ?1",
        (number,),
    )
    return dict(rows)


def piece(view: View, number: InodeNumber, index: int) -> bytes:
    """The bytes of one piece: up to CHUNK; b"" where there is a hole."""
    if index == 0:
        row = view.row("SELECT bytes FROM contents WHERE inode = ?", (number,))
    else:
        row = view.row("SELECT bytes FROM chunks WHERE inode = ? AND number = ?", (number, index))
    return b"" if row is None else row[0]


def read(view: View, number: InodeNumber) -> bytes:
    """A file's bytes up to the end of what is stored: a hole at its end is left out."""
    held = sorted(lengths(view, number))
    if not held:
        return b""
    last = held.pop()
    whole = bytearray(last * CHUNK)
    for index in held:
        part = piece(view, number, index)
        whole[index * CHUNK : index * CHUNK + len(part)] = part
    return bytes(whole) + piece(view, number, last)


def save(txn: Txn, number: InodeNumber, new: Save) -> None:
    """Put a save down. Raises NotFound when the file is gone."""
    txn.run(
        "UPDATE inodes SET size = ?, stored = ?, mtime_ns = ?, ctime_ns = ? WHERE number = ?",
        (new.size, new.stored, new.mtime_ns, new.ctime_ns, number),
    )
    if not txn.changed():
        raise NotFound(f"inode {number} is gone")
    for index, bytes_ in new.pieces.items():
        if not bytes_:
            _drop(txn, number, (index,))
        elif index == 0:
            txn.run(
                "INSERT INTO contents (inode, bytes) VALUES (?, ?)"
                " ON CONFLICT (inode) DO UPDATE SET bytes = excluded.bytes",
                (number, bytes_),
            )
        else:
            txn.run(
                "INSERT INTO chunks (inode, number, bytes) VALUES (?, ?, ?)"
                " ON CONFLICT (inode, number) DO UPDATE SET bytes = excluded.bytes",
                (number, index, bytes_),
            )


def _drop(txn: Txn, number: InodeNumber, indexes: Iterable[int]) -> None:
    for index in indexes:
        if index == 0:
            txn.run("DELETE FROM contents WHERE inode = ?", (number,))
        else:
            txn.run("DELETE FROM chunks WHERE inode = ? AND number = ?", (number, index))
