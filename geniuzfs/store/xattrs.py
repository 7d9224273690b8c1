"""Extended attributes: names and values that stay with an inode."""

from geniuzfs.errors import NoSuchAttribute
from geniuzfs.model import InodeNumber
from geniuzfs.store.transactions import Txn, View


def get(view: View, number: InodeNumber, name: bytes) -> bytes:
    """The value of one attribute. Raises NoSuchAttribute."""
    row = view.row("SELECT value FROM xattrs WHERE inode = ? AND name = ?", (number, name))
    if row is None:
        raise NoSuchAttribute(f"no attribute {name!r}")
    return bytes(row[0])


def names(view: View, number: InodeNumber) -> list[bytes]:
    """The names of all attributes, in order."""
    rows = view.rows("SELECT name FROM xattrs WHERE inode = ? ORDER BY name", (number,))
    return [bytes(row[0]) for row in rows]


def holders(view: View, name: bytes) -> set[InodeNumber]:
    """The inodes that have an attribute of this name; quick for the two that
    the schema has an index for, where they are rare.
    """
    # A literal as the schema writes it, or SQLite does not find the partial index.
    rows = view.rows(f"SELECT inode FROM xattrs WHERE name = x'{name.hex().upper()}'")
    return {InodeNumber(row[0]) for row in rows}


def put(txn: Txn, number: InodeNumber, name: bytes, value: bytes, now_ns: int) -> None:
    """Set one attribute; ctime moves."""
    txn.run(
        "INSERT INTO xattrs (inode, name, value) VALUES (?, ?, ?)"
        " ON CONFLICT (inode, name) DO UPDATE SET value = excluded.value",
        (number, name, value),
    )
    _touch(txn, number, now_ns)


def remove(txn: Txn, number: InodeNumber, name: bytes, now_ns: int) -> None:
    """Take one attribute away; ctime moves. Raises NoSuchAttribute."""
    txn.run("DELETE FROM xattrs WHERE inode = ? AND name = ?", (number, name))
    if not txn.changed():
        raise NoSuchAttribute(f"no attribute {name!r}")
    _touch(txn, number, now_ns)


def _touch(txn: Txn, number: InodeNumber, now_ns: int) -> None:
    txn.run("UPDATE inodes SET ctime_ns = ? WHERE number = ?", (now_ns, number))
