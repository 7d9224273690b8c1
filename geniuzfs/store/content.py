"""The bytes of files are replaced here, and nowhere else.

Promises: a save lands whole, with size and times, in the caller's transaction; what it replaces
becomes a version in that same transaction (store.versions), and the triggers of the schema mark
the file as due there too.
"""

from collections.abc import Mapping
from typing import NamedTuple

from geniuzfs.errors import NotFound
from geniuzfs.model import CHUNK, NOBODY, InodeNumber, Piece, Writer
from geniuzfs.store import versions
from geniuzfs.store.pieces import lengths as lengths
from geniuzfs.store.pieces import piece as piece
from geniuzfs.store.pieces import read as read
from geniuzfs.store.transactions import Txn, View
from geniuzfs.store.versions import New, Old


class Save(NamedTuple):
    """What one save puts down. `pieces` replace those of their number (an empty
    one removes it), all others stay as they are. `by`: who saves, and `over`: who wrote what was
    there, where the saver knows; `blind`: the one has not read what the other wrote.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    pieces: Mapping[int, Piece]
    by: Writer = NOBODY
    over: Writer = NOBODY
    blind: bool = False


def save(txn: Txn, number: InodeNumber, new: Save) -> None:
    """Put a save down. Raises NotFound when the file is gone.

    Another process may have saved since the saver loaded the file: its pieces are
    kept where this save has none, up to the new size, and counted.
    """
    row = txn.row("SELECT size, stored, mode, mtime_ns FROM inodes WHERE number = ?", (number,))
    if row is None:
        raise NotFound(f"inode {number} is gone")
    size, stored, mode, mtime_ns = row
    pieces = new.pieces
    if 0 in pieces and max(size, new.size) <= CHUNK:  # nearly every save: one piece is all
        stored = len(pieces[0])
    else:
        if new.size < size:
            pieces = {**_cut(txn, number, new.size), **pieces}
        stored += sum(len(part) - _length(txn, number, index) for index, part in pieces.items())
    now = New(new.size, pieces.__getitem__, new.ctime_ns, new.by, new.over, new.blind)
    versions.replace(txn, Old(number, size, mode, mtime_ns), now, pieces)
    # The inode first: so the triggers need one row of `changes` for all of it.
    txn.run(
        "UPDATE inodes SET size = ?, stored = ?, mtime_ns = ?, ctime_ns = ? WHERE number = ?",
        (new.size, stored, new.mtime_ns, new.ctime_ns, number),
    )
    for index, part in pieces.items():
        _put(txn, number, index, part)


def _cut(txn: Txn, number: InodeNumber, size: int) -> dict[int, Piece]:
    """The pieces that reach beyond `size`, as they are to be."""
    return {
        index: piece(txn, number, index)[: max(size - index * CHUNK, 0)]
        for index, length in lengths(txn, number).items()
        if index * CHUNK + length > size
    }


def _length(view: View, number: InodeNumber, index: int) -> int:
    if index == 0:
        row = view.row("SELECT length(bytes) FROM contents WHERE inode = ?", (number,))
    else:
        row = view.row(
            "SELECT length(bytes) FROM chunks WHERE inode = ? AND number = ?", (number, index)
        )
    return 0 if row is None else row[0]


def _put(txn: Txn, number: InodeNumber, index: int, bytes_: Piece) -> None:
    if index == 0 and bytes_:
        txn.run(
            "INSERT INTO contents (inode, bytes) VALUES (?, ?)"
            " ON CONFLICT (inode) DO UPDATE SET bytes = excluded.bytes",
            (number, bytes_),
        )
    elif bytes_:
        txn.run(
            "INSERT INTO chunks (inode, number, bytes) VALUES (?, ?, ?)"
            " ON CONFLICT (inode, number) DO UPDATE SET bytes = excluded.bytes",
            (number, index, bytes_),
        )
    elif index == 0:
        txn.run("DELETE FROM contents WHERE inode = ?", (number,))
    else:
        txn.run("DELETE FROM chunks WHERE inode = ? AND number = ?", (number, index))
