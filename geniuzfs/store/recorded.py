"""What must hold of the versions: each function yields what breaks it (see store.invariants).

Promises: a mend loses no byte that a user wrote: what has lost its place is found in the history of
`lost+found`, under `#` and its number.
"""

from collections.abc import Iterator
from functools import partial

from geniuzfs.model import CHUNK
from geniuzfs.store.invariants import Found
from geniuzfs.store.mends import sql
from geniuzfs.store.transactions import Txn, View

_ISREG = "(mode & 61440) = 32768"


def histories_have_a_place(view: View) -> Iterator[Found]:
    """A history is that of a file, or of one that ended in a directory, there or gone."""
    for (id_,) in view.rows(
        "SELECT id FROM lineages AS l WHERE CASE WHEN inode IS NOT NULL THEN"
        f" NOT EXISTS (SELECT 1 FROM inodes WHERE number = l.inode AND {_ISREG})"
        " OR coalesce(parent, directory, name) IS NOT NULL"
        " WHEN name IS NULL OR ended_ns IS NULL THEN 1"
        " WHEN parent IS NULL THEN directory IS NULL"
        " ELSE NOT EXISTS (SELECT 1 FROM inodes WHERE number = l.parent) END"
    ):
        mend = sql(
            "UPDATE lineages SET inode = NULL, parent = NULL,"
            " directory = coalesce(directory, CAST('lost+found' AS BLOB)),"
            " name = coalesce(name, CAST('#' || id AS BLOB)), ended_ns = coalesce(ended_ns, 0)"
            " WHERE id = ?",
            id_,
        )
        yield Found(f"history {id_} is of no file and has no place", mend)


def versions_belong_to_histories(view: View) -> Iterator[Found]:
    for (id_,) in view.rows("SELECT lineage FROM versions EXCEPT SELECT id FROM lineages"):
        mend = sql(
            "INSERT INTO lineages (id, directory, name, ended_ns) VALUES"
            " (?1, CAST('lost+found' AS BLOB), CAST('#' || ?1 AS BLOB), 0)",
            id_,
        )
        yield Found(f"versions of history {id_}, which is missing", mend)


def pieces_belong_to_versions(view: View) -> Iterator[Found]:
    """Bytes of a version that is missing get one, of a history that is missing too."""
    for id_, size in view.rows(
        "SELECT version, max(number * ? + length(bytes)) FROM version_pieces"
        " WHERE version NOT IN (SELECT id FROM versions) GROUP BY version",
        (CHUNK,),
    ):
        mend = partial(_give_version, id_, size)
        yield Found(f"bytes of version {id_}, which is missing", mend)


def versions_hold(view: View) -> Iterator[Found]:
    """`stored` is the sum of a version's pieces, which end within its size: it grows if not."""
    pieces = (
        "SELECT version, sum(length(bytes)) AS held, max(number * ? + length(bytes)) AS ends"
        " FROM version_pieces WHERE length(bytes) GROUP BY version"
    )
    for id_, held, ends in view.rows(
        "SELECT id, coalesce(held, 0), coalesce(ends, 0) FROM versions"
        f" LEFT JOIN ({pieces}) ON version = id"
        " WHERE stored <> coalesce(held, 0) OR size < coalesce(ends, 0)",
        (CHUNK,),
    ):
        mend = sql(
            "UPDATE versions SET stored = ?, size = max(size, ?) WHERE id = ?", *(held, ends, id_)
        )
        yield Found(f"version {id_} holds {held} bytes that end at {ends}: it says others", mend)


def _give_version(version: int, size: int, txn: Txn, _now_ns: int) -> None:
    txn.run(
        "INSERT INTO lineages (directory, name, ended_ns)"
        " VALUES (CAST('lost+found' AS BLOB), CAST('#v' || ? AS BLOB), 0)",
        (version,),
    )
    txn.run(
        "INSERT INTO versions (id, lineage, replaced_ns, mtime_ns, mode, size)"
        " VALUES (?, ?, 0, 0, 33152, ?)",
        (version, txn.inserted(), size),
    )
