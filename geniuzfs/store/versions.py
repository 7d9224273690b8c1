"""What is replaced becomes a version: recorded with the save that replaces it, and read again.

Hides: that a version holds only the pieces which what followed it changed (schema 0005). Promises:
in the caller's transaction, so there is never a save without its version; a content equal to what
replaces it makes none. Of a burst, the saves of one process within BURST_NS, the text before it,
its first and its last are kept. Refuses: to keep what is empty, unless it is removed, what is only
passing by (geniuzfs.names), and anything where the folder keeps no history.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, NewType

from geniuzfs.model import CHUNK, NOBODY, InodeNumber, Piece, Writer
from geniuzfs.names import is_temporary
from geniuzfs.store import paths, pieces
from geniuzfs.store.transactions import Txn, View

BURST_NS = 60_000_000_000
"""How long after its first save a process's saves are one burst."""

STEP_NS = 1_000_000
"""Versions of a file are a millisecond apart at least: their names say no more."""

_NAMES = 16

VersionId = NewType("VersionId", int)
LineageId = NewType("LineageId", int)

COLUMNS = "id, lineage, replaced_ns, mtime_ns, mode, size, stored, writer, blind"


class Version(NamedTuple):
    """A content that was replaced at `replaced_ns` and had been written by `writer`, as far as is
    known; `blind`: by one who had not read it. `stored`: bytes that are kept for it alone.
    """

    id: VersionId
    lineage: LineageId
    replaced_ns: int
    mtime_ns: int
    mode: int
    size: int
    stored: int
    writer: str
    blind: bool


class Old(NamedTuple):
    """A file as it is before something replaces its content."""

    number: InodeNumber
    size: int
    mode: int
    mtime_ns: int


class New(NamedTuple):
    """What replaces it: its size, what piece gives which bytes, when; `by` whom, `over` whom as far
    as the one who saves knows, and whether without having read that. `ends`: nothing does, the file
    is going.
    """

    size: int
    piece: Callable[[int], Piece]
    at_ns: int
    by: Writer = NOBODY
    over: Writer = NOBODY
    blind: bool = False
    ends: bool = False


class _Line(NamedTuple):
    """A lineage, and who wrote what is there now."""

    id: LineageId
    writer: str
    pid: int
    started: int
    burst_ns: int
    is_first: int
    is_sealed: int

    def goes_on(self, new: New) -> bool:
        """Whether `new` is of the same burst as what is there now."""
        same = (self.pid, self.started) == (new.by.pid, new.by.started)
        return same and bool(self.pid) and 0 <= new.at_ns - self.burst_ns < BURST_NS


class _Last(NamedTuple):
    """The last version of a lineage."""

    id: VersionId
    size: int
    replaced_ns: int


def replace(txn: Txn, old: Old, new: New, numbers: Iterable[int]) -> None:
    """Keep of `old` what `new` changes; to be called before it is changed. `numbers`: the pieces
    that may differ.
    """
    line = _line(txn, old.number)
    if line is None:
        if not (old.size or new.ends) or not wanted(txn, old.number):
            return
        if not _differs(txn, old, new, numbers := list(numbers)):
            return
        line = _begin(txn, old.number)
    if not old.size and not new.ends:  # but what is before it must not change
        last = _last(txn, line.id)
        if new.blind and last is not None:  # who removed it, or moved it away, makes it anew
            txn.run("UPDATE versions SET blind = 1 WHERE id = ?", (last.id,))
        follow(txn, line.id, new.size, new.piece, numbers)
        _written(txn, line.id, new, is_first=True)
    elif line.goes_on(new) and not line.is_first:
        if not line.is_sealed:
            _hand_over(txn, line.id, _pieces(txn, old.number), new.piece, numbers)
    elif _record(txn, line, old, new, numbers):
        if line.goes_on(new):
            txn.run("UPDATE lineages SET is_first = 0 WHERE id = ?", (line.id,))
        else:
            _written(txn, line.id, new, is_first=True)


def follow(
    txn: Txn, lineage: LineageId, size: int, piece: Callable[[int], Piece], numbers: Iterable[int]
) -> None:
    """The file, empty so far, is to have this content. Where it had the same when its last version
    was made, that one goes; else that one holds from now on what was empty.
    """
    last, numbers = _last(txn, lineage), set(numbers)
    if last is not None and last.size == size:
        held = txn.rows("SELECT number FROM version_pieces WHERE version = ?", (last.id,))
        version = _one(txn, last.id)
        if all(
            read_piece(txn, version, n) == _padded(piece(n) if n in numbers else b"", n, size)
            for n in numbers.union(row[0] for row in held)
        ):
            txn.run("DELETE FROM versions WHERE id = ?", (last.id,))
            _seal(txn, lineage, 0)
            return
    _hand_over(txn, lineage, lambda _: b"", piece, numbers)


def wanted(view: View, number: InodeNumber) -> bool:
    """Whether what this file replaces is to be kept."""
    if view.row("SELECT 1 FROM _meta WHERE key = 'history_days' AND value = '0'"):
        return False
    return lasts(view, number)


def lasts(view: View, number: InodeNumber, but: tuple[InodeNumber, bytes] | None = None) -> bool:
    """Whether the file has a name (beside `but`) that is not only passing by. Of many, _NAMES are
    asked.
    """
    sql = "SELECT parent, name FROM entries WHERE inode = ? LIMIT ?"
    for place in view.rows(sql, (number, _NAMES)):
        above = paths.path(view, place[0])
        if tuple(place) != but and above is not None and not is_temporary(above + b"/" + place[1]):
            return True
    return False


def lineage_of(view: View, number: InodeNumber) -> LineageId | None:
    """The history of a file that is there; None while it has none."""
    row = view.row("SELECT id FROM lineages WHERE inode = ?", (number,))
    return None if row is None else LineageId(row[0])


def written_by(view: View, number: InodeNumber) -> Writer:
    """Who wrote what is in a file now; NOBODY where that is not known."""
    line = _line(view, number)
    if line is None:
        return NOBODY
    return Writer(line.writer.removesuffix(f" ({line.pid})"), line.pid, line.started)


def of(view: View, lineage: LineageId) -> list[Version]:
    """The versions of a file, the oldest first."""
    rows = view.rows(f"SELECT {COLUMNS} FROM versions WHERE lineage = ? ORDER BY id", (lineage,))
    return [Version._make(row) for row in rows]


def oldest_and_newest(view: View) -> tuple[int, int]:
    """The ids of both; 0 where there is none."""
    row = view.row("SELECT coalesce(min(id), 0) FROM versions")
    return row[0], view.row("SELECT coalesce(max(id), 0) FROM versions")[0]


def is_there(view: View, version: Version) -> bool:
    """Whether it is still kept."""
    row = view.row("SELECT lineage, replaced_ns FROM versions WHERE id = ?", (version.id,))
    return row is not None and tuple(row) == (version.lineage, version.replaced_ns)


def read(view: View, version: Version) -> Iterator[bytes]:
    """Its bytes, in pieces of CHUNK, the last one shorter. In one snapshot, or another's save may
    come between two of them.
    """
    for number in range(-(-version.size // CHUNK)):
        yield read_piece(view, version, number)


def read_piece(view: View, version: Version, number: int) -> bytes:
    """The bytes of one piece, up to the version's size."""
    row = view.row(
        "SELECT v.id, bytes FROM versions AS v JOIN version_pieces AS p"
        " ON p.version = v.id AND p.number = ?3 WHERE v.lineage = ?1 AND v.id >= ?2"
        " ORDER BY v.id LIMIT 1",
        (version.lineage, version.id, number),
    )
    if row is None:
        row = (2**62, _current(view, version.lineage, number))
    (size,) = view.row(
        "SELECT min(size) FROM versions WHERE lineage = ? AND id BETWEEN ? AND ?",
        (version.lineage, version.id, row[0]),
    )
    return _padded(row[1][: max(size - number * CHUNK, 0)], number, version.size)


def held(view: View, version: Version) -> list[int]:
    """The pieces of it that may be other than zeros, in order."""
    rows = view.rows(
        "SELECT DISTINCT number FROM versions AS v JOIN version_pieces ON version = v.id"
        " WHERE v.lineage = ? AND v.id >= ?",
        (version.lineage, version.id),
    )
    row = view.row("SELECT inode FROM lineages WHERE id = ?", (version.lineage,))
    now = pieces.lengths(view, row[0]) if row is not None and row[0] is not None else ()
    numbers = {number for (number,) in rows} | set(now)
    return sorted(number for number in numbers if number * CHUNK < version.size)


def _current(view: View, lineage: LineageId, number: int) -> bytes:
    row = view.row("SELECT inode FROM lineages WHERE id = ?", (lineage,))
    return b"" if row is None or row[0] is None else pieces.piece(view, row[0], number)


def _line(view: View, number: InodeNumber) -> _Line | None:
    row = view.row(
        "SELECT id, writer, pid, started, burst_ns, is_first, is_sealed FROM lineages"
        " WHERE inode = ?",
        (number,),
    )
    return None if row is None else _Line._make(row)


def _last(view: View, lineage: LineageId) -> _Last | None:
    row = view.row(
        "SELECT id, size, replaced_ns FROM versions WHERE lineage = ? ORDER BY id DESC LIMIT 1",
        (lineage,),
    )
    return None if row is None else _Last._make(row)


def _one(view: View, version: VersionId) -> Version:
    return Version._make(view.row(f"SELECT {COLUMNS} FROM versions WHERE id = ?", (version,)))


def _begin(txn: Txn, number: InodeNumber) -> _Line:
    txn.run("INSERT INTO lineages (inode) VALUES (?)", (number,))
    return _Line(LineageId(txn.inserted()), "", 0, 0, 0, 0, 0)


def _written(txn: Txn, lineage: LineageId, new: New, *, is_first: bool) -> None:
    """Note who has written what is there from now on."""
    txn.run(
        "UPDATE lineages SET writer = ?, pid = ?, started = ?, burst_ns = ?, is_first = ?"
        " WHERE id = ?",
        (str(new.by), new.by.pid, new.by.started, new.at_ns, int(is_first), lineage),
    )


def _pieces(view: View, number: InodeNumber) -> Callable[[int], bytes]:
    return lambda index: pieces.piece(view, number, index)


def _differs(view: View, old: Old, new: New, numbers: Iterable[int]) -> bool:
    if new.size != old.size or new.ends:
        return True
    before = _pieces(view, old.number)
    return any(_kept(before(n), new.piece(n), n, old.size) is not None for n in numbers)


def _record(txn: Txn, line: _Line, old: Old, new: New, numbers: Iterable[int]) -> bool:
    """Make a version of `old`, unless `new` is the same."""
    version, before = None, _pieces(txn, old.number)
    if new.size != old.size or new.ends:
        version = _add(txn, line, old, new)
    stored, held = 0, set()
    for number in numbers:
        kept = _kept(before(number), new.piece(number), number, old.size)
        if kept is not None:
            version = version or _add(txn, line, old, new)
            txn.run("INSERT INTO version_pieces VALUES (?, ?, ?)", (version, number, kept))
            held.add(number)
            stored += len(kept)
    if stored:
        txn.run("UPDATE versions SET stored = ? WHERE id = ?", (stored, version))
    if new.blind and not held and new.size >= old.size:  # it only adds
        txn.run("UPDATE versions SET blind = 0 WHERE id = ?", (version,))
    if version is not None:
        _seal(txn, line.id, old.size <= CHUNK and 0 in held, line.is_sealed)
    return version is not None


def _add(txn: Txn, line: _Line, old: Old, new: New) -> VersionId:
    writer, last = str(new.over) or line.writer, _last(txn, line.id)
    replaced_ns = new.at_ns if last is None else max(new.at_ns, last.replaced_ns + STEP_NS)
    txn.run(
        "INSERT INTO versions (lineage, replaced_ns, mtime_ns, mode, size, writer, blind)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (line.id, replaced_ns, old.mtime_ns, old.mode, old.size, writer, int(new.blind)),
    )
    return VersionId(txn.inserted())


def _hand_over(
    txn: Txn,
    lineage: LineageId,
    old: Callable[[int], Piece],
    new: Callable[[int], Piece],
    numbers: Iterable[int],
) -> None:
    """Have the last version hold what it took of `old`, which `new` replaces without a version."""
    last = _last(txn, lineage)
    if last is None:
        return
    for number in numbers:
        if number * CHUNK >= last.size or _holds(txn, last.id, number):
            continue
        kept = _kept(old(number), new(number), number, last.size)
        if kept is not None:
            txn.run("INSERT INTO version_pieces VALUES (?, ?, ?)", (last.id, number, kept))
            txn.run("UPDATE versions SET stored = stored + ? WHERE id = ?", (len(kept), last.id))
    if last.size <= CHUNK:
        _seal(txn, lineage, _holds(txn, last.id, 0))


def _holds(view: View, version: VersionId, number: int) -> bool:
    sql = "SELECT 1 FROM version_pieces WHERE version = ? AND number = ?"
    return view.row(sql, (version, number)) is not None


def _seal(txn: Txn, lineage: LineageId, is_sealed: int, was: int | None = None) -> None:
    if is_sealed != was:
        txn.run("UPDATE lineages SET is_sealed = ? WHERE id = ?", (int(is_sealed), lineage))


def _kept(old: Piece, new: Piece, number: int, size: int) -> bytes | None:
    """What a version of `size` must hold of a piece; None where what follows says the same."""
    if old == new:
        return None
    within = min(size - number * CHUNK, CHUNK)
    if within <= 0 or old[:within].ljust(within, b"\0") == new[:within].ljust(within, b"\0"):
        return None
    return bytes(old[:within])


def _padded(part: Piece, number: int, size: int) -> bytes:
    return bytes(part).ljust(max(min(size - number * CHUNK, CHUNK), 0), b"\0")
