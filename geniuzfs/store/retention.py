"""For how long versions are kept, and how they go.

Hides: where a folder says so. Promises: the oldest go first, in small transactions, so that no save
waits for long; a version goes whole, and no other changes by it. Refuses: to take away what a file
is now.
"""

from collections.abc import Sequence
from typing import NamedTuple

from geniuzfs.errors import UsageError
from geniuzfs.model import InodeNumber
from geniuzfs.store import meta
from geniuzfs.store.transactions import Txn, View
from geniuzfs.store.versions import LineageId

DAYS = 30
LEAST_BYTES = 1 << 30
"""What versions may take where nobody has said: so much, or as much as the files hold if that is
more.
"""

ROW_BYTES = 256
"""What a version counts for beside its bytes: a line added to a log keeps none."""

CHECK_SECONDS = 60.0
"""Between two looks at what is kept no longer."""

AT_ONCE = 64
AT_ONCE_BYTES = 16 << 20
"""Versions, and bytes of theirs, that go in one transaction: of small files that takes 1 ms."""

SHED_LEAST = 16 << 20

_DAY_NS = 86_400_000_000_000
_EVER = (1 << 63) - 1


class Kept(NamedTuple):
    """For how many days a folder keeps what was replaced (0: it keeps nothing), and how many bytes
    of it at most; None: see LEAST_BYTES.
    """

    days: float
    bytes: int | None


class _Going(NamedTuple):
    id: int
    stored: int


def kept(view: View) -> Kept:
    """What the folder says. What is no number there counts as not said."""
    rows = view.rows("SELECT key, value FROM _meta WHERE key IN ('history_days', 'history_bytes')")
    said = {key: _number(value) for key, value in rows}
    days, most = said.get("history_days"), said.get("history_bytes")
    return Kept(DAYS if days is None else days, None if most is None else int(most))


def keep(txn: Txn, days: float | None, bytes_: int | None) -> Kept:
    """Set one of the two, or both; None leaves one as it is. Raises UsageError below 0."""
    for key, value in (("history_days", days), ("history_bytes", bytes_)):
        if value is not None:
            if not 0 <= value < 2**62:
                raise UsageError("history is kept for 0 or more days, and as many bytes")
            meta.put(txn, key, f"{value:.10g}" if isinstance(value, float) else str(value))
    return kept(txn)


def expire(txn: Txn, now_ns: int) -> bool:
    """Remove some of what is kept no longer. True: there may be more."""
    said = kept(txn)
    if not said.days:
        gone = _remove(txn, _oldest(txn, _EVER))
        if not gone:
            txn.run("DELETE FROM lineages")
        return gone
    old = _oldest(txn, now_ns - int(said.days * _DAY_NS))
    if _remove(txn, old or _excess(txn, said.bytes)):
        return True
    txn.run(
        "DELETE FROM lineages WHERE inode IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM versions WHERE lineage = lineages.id)"
    )
    return False


def to_shed(view: View) -> int:
    """Bytes of versions that make room on a full disk: half of them, and SHED_LEAST at least."""
    held = held_bytes(view)
    return min(held, max(held // 2, SHED_LEAST))


def shed(txn: Txn) -> int:
    """Remove some of the oldest versions, however young; the bytes that they took."""
    before = held_bytes(txn)
    _remove(txn, _oldest(txn, _EVER))
    return before - held_bytes(txn)


def held_bytes(view: View) -> int:
    """What the versions take, with ROW_BYTES for each."""
    held: int = view.row("SELECT coalesce(sum(stored + ?), 0) FROM versions", (ROW_BYTES,))[0]
    return held


def erase(txn: Txn, lineage: LineageId) -> None:
    """Remove a history for good, with all its versions."""
    txn.run("DELETE FROM lineages WHERE id = ?", (lineage,))


def erase_of(txn: Txn, numbers: Sequence[InodeNumber]) -> None:
    """The same for the histories of what has these numbers."""
    for number in numbers:
        txn.run("DELETE FROM lineages WHERE inode = ?", (number,))


def _oldest(view: View, before_ns: int) -> list[_Going]:
    return list(
        map(
            _Going._make,
            view.rows(
                "SELECT id, stored FROM versions WHERE replaced_ns < ? ORDER BY id LIMIT ?",
                (before_ns, AT_ONCE),
            ),
        )
    )


def _excess(view: View, most: int | None) -> list[_Going]:
    """The oldest, as many as are too much."""
    excess = held_bytes(view) - (LEAST_BYTES if most is None else most)
    if most is None and excess > 0:
        files: int = view.row("SELECT coalesce(sum(stored), 0) FROM inodes")[0]
        excess -= max(files - LEAST_BYTES, 0)
    going: list[_Going] = []
    for one in _oldest(view, _EVER) if excess > 0 else ():
        if excess <= 0:
            break
        going.append(one)
        excess -= one.stored + ROW_BYTES
    return going


def _remove(txn: Txn, going: list[_Going]) -> bool:
    """Those at the beginning, whatever their size the first; whether there were any."""
    left = AT_ONCE_BYTES
    for version, stored in going:
        if left <= 0:
            break
        txn.run("DELETE FROM versions WHERE id = ?", (version,))
        left -= stored
    return bool(going)


def _number(value: object) -> float | None:
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if 0 <= number < 2**62 else None
