"""Labels of files: the extended attributes whose names begin with LABEL."""

from collections.abc import Mapping

from geniuzfs.model import InodeNumber
from geniuzfs.store import xattrs
from geniuzfs.store.transactions import Txn, View

LABEL = b"user.geniuz.label."
"""What their names begin with."""


def labels(view: View, inode: InodeNumber) -> dict[str, str]:
    """Key → value, in the order of the keys; what is not UTF-8 is shown with U+FFFD."""
    rows = view.rows("SELECT name, value FROM xattrs WHERE inode = ? ORDER BY name", (inode,))
    return {
        name[len(LABEL) :].decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, value in rows
        if name.startswith(LABEL)
    }


def replace(txn: Txn, inode: InodeNumber, wanted: Mapping[str, str], now_ns: int) -> None:
    """Have the file bear these labels and no others."""
    names = {LABEL + key.encode() for key in wanted}
    for name in xattrs.names(txn, inode):
        if name.startswith(LABEL) and name not in names:
            xattrs.remove(txn, inode, name, now_ns)
    add(txn, inode, wanted, now_ns)


def add(txn: Txn, inode: InodeNumber, wanted: Mapping[str, str], now_ns: int) -> None:
    """Have the file bear these labels too."""
    for key, value in wanted.items():
        xattrs.put(txn, inode, LABEL + key.encode(), value.encode(), now_ns)


def inherit(txn: Txn, old: InodeNumber, new: InodeNumber) -> None:
    """`new` is what people see instead of `old` from now on: it gets the labels that it lacks."""
    txn.run(
        "INSERT OR IGNORE INTO xattrs (inode, name, value) SELECT ?, name, value FROM xattrs"
        " WHERE inode = ? AND substr(name, 1, ?) = ?",
        (new, old, len(LABEL), LABEL),
    )
