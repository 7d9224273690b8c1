"""What a folder's file says about itself: its identity, in `_meta`.

Geniuz keeps keys of its own in the same table; a key not named here is read by
nobody and rewritten by nobody.
"""

from geniuzfs.model import FolderId, Identity
from geniuzfs.store.transactions import Txn, View


def identity(view: View) -> Identity | None:
    """Who this folder is; None for a file that has not been given an identity."""
    rows = view.rows("SELECT key, value FROM _meta WHERE value IS NOT NULL")
    kept = {key: str(value) for key, value in rows}  # a column has no type that holds
    if "uuid" not in kept:
        return None
    return Identity(
        FolderId(kept["uuid"].upper()),
        kept.get("name", ""),
        kept.get("description", ""),
        kept.get("created_at", ""),
    )


def identify(txn: Txn, new: Identity) -> Identity:
    """Give the file an identity, unless it has one: that one is returned then."""
    known = identity(txn)
    if known is not None:
        return known
    for key, value in zip(("uuid", "name", "description", "created_at"), new, strict=True):
        txn.run("INSERT OR IGNORE INTO _meta (key, value) VALUES (?, ?)", (key, value))
    return new


def get(view: View, key: str) -> str | None:
    """The value of one key; None where it is not there."""
    row = view.row("SELECT value FROM _meta WHERE key = ?", (key,))
    return None if row is None or row[0] is None else str(row[0])


def put(txn: Txn, key: str, value: str) -> None:
    """Set one of the keys of the folder's identity."""
    txn.run(
        "INSERT INTO _meta (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )
