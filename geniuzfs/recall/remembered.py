"""Kept memories as hits, whole: one that is called by its name, or all of a thread.

Hides: that a memory is learned in passages, of which any may be what was found.
"""

from collections.abc import Sequence
from datetime import datetime

from geniuzfs.addresses import SHORT
from geniuzfs.model import Identity, Memory, MemoryId
from geniuzfs.recall.hits import Hit, Kind
from geniuzfs.store import memories
from geniuzfs.store.transactions import View


def hit(identity: Identity, memory: Memory, score: float = 0.0, *, weak: bool = False) -> Hit:
    """All of one memory."""
    return Hit(
        Kind.MEMORY,
        identity.name,
        "",
        0,
        0,
        memory.content,
        datetime.fromtimestamp(memories.kept_ns(memory.created_at) / 1e9).date().isoformat(),
        score,
        f"{identity.id[:SHORT]}:{memory.id[:SHORT].upper()}",
        weak=weak,
    )


def thread(identity: Identity, view: View, id_: MemoryId, limit: int) -> list[Hit]:
    """The thread of memory `id_` from its root on; of a longer one the `limit` around it."""
    found = memories.thread(view, id_)
    at = next((number for number, each in enumerate(found) if each.id == id_), 0)
    first = max(0, min(at - limit // 2, len(found) - limit))
    return [hit(identity, each) for each in found[first : first + limit]]


def once(hits: Sequence[Hit]) -> list[Hit]:
    """Each memory once, where it comes first; all passages."""
    seen: set[str] = set()
    kept = []
    for each in hits:
        if each.kind is Kind.PASSAGE or each.address not in seen:
            seen.add(each.address)
            kept.append(each)
    return kept
