"""Kept memories: said on purpose, never changed, in the rows that Geniuz itself reads and writes.

Hides: the payload, and how an ID is found by its beginning. Promises: what is kept is a row like
those of Geniuz: compact JSON, a UUID in upper case, a root that is its own parent, the time as
text. Reads whatever another tool has put there: a payload that is no such JSON says nothing.
Refuses: to keep what is empty or no text.
"""

import json
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from geniuzfs.addresses import address
from geniuzfs.errors import UsageError
from geniuzfs.model import Memory, MemoryId
from geniuzfs.store.transactions import Txn, View

CONTENT_MAX = 2_000_000
"""Characters in a memory: as many as are learned."""

GIST_MAX = 200
"""Characters in a gist that is made of the content."""

YEARS = range(1700, 2200)
"""Of times that can be told: nanoseconds in 64 bits reach from 1677 to 2262."""

_TIME = "%Y-%m-%d %H:%M:%S"
_HALF = re.compile("[\ud800-\udfff]")

_COLUMNS = "memory_uuid, payload, created_at, coalesce(parent_uuid, memory_uuid)"


class Kept(NamedTuple):
    """A memory that was kept just now."""

    memory: Memory
    parent_unknown: bool
    """It was to continue one that is not here, and begins a thread instead."""


class Numbered(NamedTuple):
    """A memory and its place among all of the file: they grow in the order of keeping."""

    number: int
    memory: Memory


# Keeping


def keep(txn: Txn, content: str, gist: str | None, parent: str | None, now_ns: int) -> Kept:
    """Keep `content`, without the white space around it. `gist`: None or empty, one is made of
    the content. `parent`: the ID, or its beginning, of the memory that it continues. One that is
    not here does not stop it. Raises UsageError for what is no text, and for a beginning that
    several memories have.
    """
    said, gist = checked(content), _text((gist or "").strip())
    found = None if parent is None else one(txn, parent)
    id_ = MemoryId(str(uuid.uuid4()).upper())
    kept = Memory(
        id_,
        said,
        gist or made_gist(said),
        datetime.fromtimestamp(now_ns // 10**9, UTC).strftime(_TIME),
        id_ if found is None else found.id,
    )
    payload = packed(kept.content, kept.gist)
    # The time is given and not left to the column's default: Geniuz makes that of 'now', 'utc',
    # which some SQLite shifts by the machine's zone.
    txn.run(
        "INSERT INTO memories (memory_uuid, payload, created_at, parent_uuid) VALUES (?, ?, ?, ?)",
        (kept.id, payload, kept.created_at, kept.parent),
    )
    return Kept(kept, parent_unknown=parent is not None and found is None)


def checked(content: str) -> str:
    """`content` as it would be kept. Raises UsageError where it can't be."""
    said = _text(content.strip())
    if not said:
        raise UsageError("there is nothing to keep: say something")
    if len(said) > CONTENT_MAX:
        raise UsageError(f"a memory has at most {CONTENT_MAX:,} characters, not {len(said):,}")
    return said


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError("a memory is text: this is not UTF-8") from None
    if "\0" in text:
        raise UsageError("a memory is text: this has a NUL in it")
    return text


def made_gist(content: str) -> str:
    """The gist of a memory that was given none: its beginning."""
    return content if len(content) <= GIST_MAX else content[: GIST_MAX - 3] + "..."


# Carrying from one file to another


class Row(NamedTuple):
    """A memory's row, whatever tool made it; its number is its place in the order of keeping."""

    number: int
    id: str
    payload: str
    created_at: str
    parent: str | None


def rows(view: View, after: int, limit: int) -> list[Row]:
    """The next `limit` rows after number `after`, in the order of keeping."""
    found = view.rows(
        "SELECT rowid, memory_uuid, CAST(payload AS TEXT), CAST(created_at AS TEXT), parent_uuid"
        " FROM memories WHERE rowid > ? ORDER BY rowid LIMIT ?",
        (after, limit),
    )
    return list(map(Row._make, found))


def read(row: Row) -> Memory:
    """What a row says."""
    return _memory((row.id, row.payload, row.created_at, row.parent or row.id))


def bring(txn: Txn, row: Row) -> bool:
    """Put a row down as it is, but for its number; False: a memory of that ID is here. Raises
    UsageError for what can't be one.
    """
    if txn.row("SELECT 1 FROM memories WHERE memory_uuid = ?", (row.id,)):
        return False
    txn.run(
        "INSERT INTO memories (memory_uuid, payload, created_at, parent_uuid) VALUES (?, ?, ?, ?)",
        row[1:],
    )
    return True


def packed(content: str, gist: str) -> str:
    """The payload of a memory."""
    said = {"content": content, "gist": gist}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


# Finding


def memory(view: View, id_: MemoryId) -> Memory | None:
    """The memory of exactly that ID."""
    row = view.row(f"SELECT {_COLUMNS} FROM memories WHERE memory_uuid = ?", (id_,))
    return None if row is None else _memory(row)


def by_prefix(view: View, prefix: str) -> list[Memory]:
    """Those whose ID begins with `prefix`, in either case; none for fewer than 4 characters."""
    meant = address(prefix)
    if meant is None or meant.folder:
        return []
    # An ID goes on with a digit, a letter up to F or a hyphen, all of which come before G. Two
    # ranges of the index, where LIKE would look at every row.
    upper, lower = prefix.upper(), prefix.lower()
    rows = view.rows(
        f"SELECT {_COLUMNS} FROM memories WHERE (memory_uuid >= ?1 AND memory_uuid < ?1 || 'G')"
        " OR (memory_uuid >= ?2 AND memory_uuid < ?2 || 'g') ORDER BY rowid",
        (upper, lower),
    )
    return list({row[0]: _memory(row) for row in rows}.values())


def one(view: View, prefix: str) -> Memory | None:
    """The one memory whose ID begins with `prefix`; None where there is none. Raises UsageError,
    which lists them, for several.
    """
    found = by_prefix(view, prefix)
    if len(found) > 1:
        raise UsageError(f"several memories begin with {prefix}: {listed(found)}")
    return found[0] if found else None


def listed(candidates: list[Memory]) -> str:
    """Some memories in a line, for choosing one: more of each ID, and what it says."""
    shown = [f"{each.id[:13]} ({' '.join(each.gist.split())[:40]!r})" for each in candidates[:8]]
    return ", ".join(shown + ["..."] * (len(candidates) > len(shown)))


def page(view: View, after: int, limit: int) -> list[Numbered]:
    """The next `limit` memories after number `after`, in the order of keeping."""
    rows = view.rows(
        f"SELECT rowid, {_COLUMNS} FROM memories WHERE rowid > ? ORDER BY rowid LIMIT ?",
        (after, limit),
    )
    return [Numbered(number, _memory(row)) for number, *row in rows]


def count(view: View) -> int:
    """How many there are."""
    number: int = view.row("SELECT count(*) FROM memories")[0]
    return number


def newest_ns(view: View) -> int:
    """When the newest memory was kept, as in kept_ns; 0 where there is none."""
    row = view.row("SELECT created_at FROM memories ORDER BY created_at DESC LIMIT 1")
    return 0 if row is None else kept_ns(row[0])


def thread(view: View, id_: MemoryId) -> list[Memory]:
    """The whole thread that `id_` belongs to: from its root on, each memory before those that
    continue it, of which the earlier come first. What another tool has made a circle of, or of
    which the beginning is not here, is read from where it can be.
    """
    root = _root(view, id_)
    return [] if root is None else list(_downwards(view, root))


def _root(view: View, id_: MemoryId) -> Memory | None:
    found = memory(view, id_)
    seen: set[MemoryId] = set()
    while found is not None and found.parent not in (found.id, *seen):
        seen.add(found.id)
        above = memory(view, found.parent)
        if above is None:
            break
        found = above
    return found


def _downwards(view: View, root: Memory) -> Iterator[Memory]:
    left, seen = [root], {root.id}
    while left:
        each = left.pop()
        yield each
        rows = view.rows(
            f"SELECT {_COLUMNS} FROM memories WHERE parent_uuid = ?"
            " ORDER BY created_at DESC, rowid DESC",
            (each.id,),
        )
        below = [_memory(row) for row in rows if row[0] not in seen]
        seen.update(one.id for one in below)
        left += below


def kept_ns(created_at: str) -> int:
    """A memory's time in nanoseconds since 1970; 0 for what is no time, or none of YEARS."""
    try:
        kept = datetime.strptime(created_at, _TIME).replace(tzinfo=UTC)
    except (TypeError, ValueError):
        return 0
    return int(kept.timestamp()) * 1_000_000_000 if kept.year in YEARS else 0


def _memory(row: Any) -> Memory:
    id_, payload, created_at, parent = row
    content, gist = _said_in(payload)
    return Memory(MemoryId(id_), content, gist, created_at, MemoryId(parent))


def _said_in(payload: str) -> tuple[str, str]:
    """Content and gist. What can't be read, which check names, says nothing. Halves of characters,
    which JSON can escape and nothing else can hold, become U+FFFD.
    """
    try:
        held = json.loads(payload)
    except ValueError:
        return "", ""
    found = held if isinstance(held, dict) else {}
    content, gist = found.get("content"), found.get("gist")
    content, gist = (part if isinstance(part, str) else "" for part in (content, gist))
    return _HALF.sub("\ufffd", content), _HALF.sub("\ufffd", gist)
