"""The bytes of files as they are kept: pieces of CHUNK bytes.

Hides: that piece 0 is a row of `contents` and the others are rows of `chunks`. Refuses: nothing; a
file that is gone has no pieces.
"""

from geniuzfs.model import CHUNK, InodeNumber
from geniuzfs.store.transactions import View


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
