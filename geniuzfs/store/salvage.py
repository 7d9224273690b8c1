"""What can be read of a damaged database is brought into a new one.

Hides: how rows are found around pages that can't be read. Promises: every row that SQLite can
still reach is in the new file as it was, with its number; what was learned is not brought along,
since it is learned again; what is missing is named. Refuses: to guess at bytes: SQLite keeps no
checksums, so a changed byte within a text is not seen.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from geniuzfs.errors import AlreadyExists, NotFound, ReadOnly, StoreDamaged, UsageError
from geniuzfs.model import CHUNK
from geniuzfs.store import content, paths, schema
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import Txn, View, translated

PROBES = 50_000
"""Looks for rows around what can't be read, for each table: a second."""

_LARGEST = 2**24
"""Row numbers above are not looked for where it can't be read which one is the largest."""

_KEPT = (
    "_meta",
    "memories",
    "memory_embeddings",
    "embedding_meta",
    "inodes",
    "entries",
    "contents",
    "chunks",
    "xattrs",
    "lineages",
    "versions",
    "version_pieces",
)
"""Of our tables those that are not learned."""

_LEARNED = frozenset(
    (
        *("sources", "passages", "teaches", "learnings", "segments", "postings", "models"),
        *("vectors", "blocks", "awaits", "due", "due_memories", "due_rules"),
        *("changes", "migrations"),
    )
)


class _Table(NamedTuple):
    name: str
    columns: list[str]
    has_rowid: bool


def salvage(damaged: Path, target: Database) -> list[str]:
    """Bring what can be read of `damaged`, which nobody else has open and which is opened for
    writing, into `target`, a new database. Returns what is missing, a line each. Raises
    StoreDamaged when nothing can be read. `target` may break invariants then.
    """
    lost: list[str] = []
    target.view.row("PRAGMA foreign_keys = OFF")  # what lacks its inode gets another by repair
    try:
        _mend_schema(damaged)
        connection = past_schema(damaged)
        try:
            tables = _tables(connection, lost)
            if not sum([_bring(connection, table, target, lost) for table in tables]):
                raise StoreDamaged("no row of it can be read")
            lost += _unread_memories(connection, target.view)
        finally:
            with suppress(apsw.Error):
                connection.close()
    except apsw.Error as error:
        raise translated(error) from error
    with target.snapshot() as view:
        return [*lost, *missing(view)]


def past_schema(path: Path) -> apsw.Connection:
    """A connection that reads on where the schema is broken."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute("PRAGMA writable_schema = ON")
    return connection


def _mend_schema(damaged: Path) -> None:
    """Our tables and indexes were made as they always are, whatever is said of them now; without
    triggers and views everything is read as well. What can't be mended stays.
    """
    connection = past_schema(damaged)
    try:
        for name, sql in schema.objects().items():
            with suppress(apsw.Error):
                connection.execute(
                    "UPDATE sqlite_schema SET sql = ? WHERE CAST(name AS BLOB) = CAST(? AS BLOB)"
                    " AND rootpage > 0",
                    (sql, name),
                )
        with suppress(apsw.Error):
            connection.execute("DELETE FROM sqlite_schema WHERE rootpage = 0 OR rootpage IS NULL")
    finally:
        connection.close()


def _tables(connection: apsw.Connection, lost: list[str]) -> Iterator[_Table]:
    """Ours, then those that other tools have made."""
    found = connection.execute(
        "SELECT CAST(name AS BLOB) FROM sqlite_schema WHERE type = 'table'"
    ).fetchall()
    names = [str(name, "utf-8", "replace") for (name,) in found if isinstance(name, bytes)]
    there = [name for name in names if not name.startswith("sqlite_")]
    if not set(there) & set(_KEPT):
        raise StoreDamaged("nothing in it is a folder's")
    for name in (*_KEPT, *sorted(set(there) - set(_KEPT) - _LEARNED)):
        if name not in there:
            lost.append(f"the table {name}, with all its rows")
            continue
        listed = connection.execute("SELECT wr FROM pragma_table_list WHERE name = ?", (name,))
        plain = not any(row[0] for row in listed)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({_quoted(name)})")]
        if columns:  # else SQLite makes nothing of what its schema says
            yield _Table(name, columns, plain)
        else:
            lost.append(f"the table {name}, with all its rows")


def _bring(connection: apsw.Connection, table: _Table, target: Database, lost: list[str]) -> int:
    """Bring the rows of one table; how many."""
    taken = refused = 0
    columns = (["rowid"] if table.has_rowid else []) + [_quoted(name) for name in table.columns]
    # A new file says some things of itself, in place of which goes what this one said.
    insert = (
        f"INSERT OR {'REPLACE' if table.name == '_meta' else 'IGNORE'} INTO {_quoted(table.name)}"
        f" ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    )
    with target.txn() as txn:
        if txn.row("SELECT 1 FROM sqlite_schema WHERE name = ?", (table.name,)) is None:
            _make(connection, table.name, txn)
        read = _by_number if table.has_rowid else _by_each_index
        for row in read(connection, table, columns, lost):
            try:
                txn.run(insert, row)
            except (AlreadyExists, NotFound, ReadOnly, UsageError):
                refused += 1
                continue
            taken += txn.changed()
            refused += not txn.changed()
    if refused and table.has_rowid:
        lost.append(f"{refused} rows of {table.name}, which break its rules")
    return taken


def _by_number(
    connection: apsw.Connection, table: _Table, columns: list[str], lost: list[str]
) -> Iterator[Any]:
    """Rows by their numbers; where that ends too soon, the numbers behind are halved until what
    can't be read is passed by.
    """
    sql = (
        f"SELECT {', '.join(columns)} FROM {_quoted(table.name)} NOT INDEXED"
        " WHERE rowid BETWEEN ? AND ? ORDER BY rowid"
    )
    left, broken = [(1, _largest(connection, table.name))], False
    for _ in range(PROBES):
        if not left:
            break
        first, last = left.pop()
        try:
            for row in connection.execute(sql, (first, last)):
                yield row
                first = row[0] + 1
        except (apsw.Error, UnicodeDecodeError):
            broken = True
            middle = (first + last) // 2
            if first < last:
                left += [(middle + 1, last), (first, middle)]
    if broken:
        lost.append(f"some rows of {table.name}")


def _largest(connection: apsw.Connection, name: str) -> int:
    """The largest row number; of files also by what was ever given to one."""
    for sql in (
        f"SELECT max(rowid) FROM {_quoted(name)}",
        "SELECT seq FROM sqlite_sequence WHERE name = 'inodes'",
    ):
        with suppress(apsw.Error):
            found = connection.execute(sql).fetchone()
            if found is not None:
                return int(found[0] or 0)
        if name not in ("inodes", "contents"):
            break
    return _LARGEST


def _by_each_index(
    connection: apsw.Connection, table: _Table, columns: list[str], lost: list[str]
) -> Iterator[Any]:
    """Rows of a table that is kept by its key, from both ends, and from both ends of each of its
    indexes, which hold whole rows; some come more than once.
    """
    name = _quoted(table.name)
    orders = [("NOT INDEXED", [row[1] for row in _keys(connection, name)])]
    for row in connection.execute(f"PRAGMA index_list({name})").fetchall():
        fields = connection.execute(f"PRAGMA index_info({_quoted(str(row[1]))})").fetchall()
        if row[3] == "c":
            orders.append((f"INDEXED BY {_quoted(str(row[1]))}", [field[2] for field in fields]))
    whole = False
    for way, order in orders:
        for direction in ("ASC", "DESC"):
            by = ", ".join(f"{_quoted(field)} {direction}" for field in order)
            with suppress(apsw.Error, UnicodeDecodeError):
                yield from connection.execute(
                    f"SELECT {', '.join(columns)} FROM {name} {way} ORDER BY {by}"
                )
                whole = True
                break
    if not whole:
        lost.append(f"some rows of {table.name}")


def _keys(connection: apsw.Connection, name: str) -> list[Any]:
    rows = connection.execute(f"PRAGMA table_info({name})").fetchall()
    return sorted((row for row in rows if row[5]), key=lambda row: row[5])


def _make(connection: apsw.Connection, name: str, txn: Txn) -> None:
    """A table of another tool's, as that has made it."""
    (sql,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchall()
    txn.run(str(sql[0]))


def _unread_memories(connection: apsw.Connection, view: View) -> list[str]:
    """The IDs of memories whose rows can't be read, as far as the index knows them."""
    with suppress(apsw.Error, UnicodeDecodeError):
        rows = connection.execute("SELECT memory_uuid FROM memories").fetchall()
        here = {row[0] for row in view.rows("SELECT memory_uuid FROM memories")}
        return [f"memory {id_}" for (id_,) in rows if id_ not in here]
    return []


def missing(view: View) -> Iterator[str]:
    """What files lack of what they say they hold, a line each, by name. The tables are there."""
    for number, size in view.rows(
        "SELECT number, size FROM inodes WHERE (mode & 61440) = 32768 AND stored > 0"
        " AND stored > (SELECT coalesce(sum(length(bytes)), 0) FROM contents WHERE inode = number)"
        " + (SELECT coalesce(sum(length(bytes)), 0) FROM chunks WHERE inode = number)"
    ):
        path = (paths.path(view, number) or b"#%d" % number).decode("utf-8", "replace")
        for first, end in _gaps(content.lengths(view, number), size):
            yield f"{path}: bytes {first} to {end - 1}"
    for parent, name in view.rows(
        "SELECT parent, name FROM entries WHERE inode NOT IN (SELECT number FROM inodes)"
    ):
        above = paths.path(view, parent)
        path = name if not above else above + b"/" + name
        yield f"{path.decode('utf-8', 'replace')}: what it names"


def _gaps(held: dict[int, int], size: int) -> Iterator[tuple[int, int]]:
    """From where to where there is nothing; holes that were none too."""
    at = 0
    for number, length in sorted(held.items()):
        if at < number * CHUNK:
            yield at, number * CHUNK
        at = number * CHUNK + length
    if at < size:
        yield at, size


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
