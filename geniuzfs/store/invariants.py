"""What must hold in a sound database: each function yields what breaks it.

Hides: the SQL that finds a broken invariant. Promises: each names what it found
in one line, with the mend, if there is one that loses no byte. Order matters to
nobody here: `store.check` knows in which one to ask.
"""

import re
import stat
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from geniuzfs.model import CHUNK, ROOT
from geniuzfs.store import forgetting, mends, schema
from geniuzfs.store.mends import DIRECTORY, FILE, Mend, sql
from geniuzfs.store.transactions import View

_ISDIR = f"(mode & 61440) = {stat.S_IFDIR}"
_ISREG = f"(mode & 61440) = {stat.S_IFREG}"
_ISLNK = f"(mode & 61440) = {stat.S_IFLNK}"
_TYPES = "4096, 8192, 16384, 24576, 32768, 40960, 49152"
_CONSTRAINT = re.compile(r"(CHECK constraint failed|\S+ value) in ")

_DIRECTORIES = (
    f"SELECT parent, name, inode FROM entries JOIN inodes ON number = inode WHERE {_ISDIR}"
    " ORDER BY parent, id"
)


class Found(NamedTuple):
    """One broken invariant. While one that `blocks` stands, the other rules are not
    asked: what they found could not be trusted.
    """

    detail: str
    mend: Mend | None = None
    blocks: bool = False


# The ground: pages and tables.


def sound_pages(view: View) -> Iterator[Found]:
    """SQLite's own check of its pages, indexes and constraints. An index is built anew."""
    for (line,) in view.rows("PRAGMA integrity_check(100)"):
        if _CONSTRAINT.match(line):
            yield Found(line)  # the rules below know more of it
        elif line != "ok":
            yield Found(line, sql("REINDEX") if "index" in line else None, blocks=True)


def schema_is_whole(view: View) -> Iterator[Found]:
    """Every table, index, view and trigger is there: without the triggers, memories
    could be changed, and files without being learned.
    """
    there = {row[0] for row in view.rows("SELECT name FROM sqlite_schema")}
    for name, statement in schema.objects().items():
        if name not in there:
            yield Found(f"{name} is missing", sql(statement), blocks=True)


def migrations_are_recorded(view: View) -> Iterator[Found]:
    """Each schema file that was run is on record, under its name."""
    recorded = dict(view.rows("SELECT number, name FROM migrations"))
    for file in schema.schema_files():
        name = recorded.pop(file.number, None)
        if name is None:
            record = sql(schema.RECORD, file.number, file.name)
            yield Found(f"schema file {file.name} is not on record", record)
        elif name != file.name:
            yield Found(f"schema file {file.name} is on record as {name!r}")
    for name in recorded.values():
        yield Found(f"the record names {name!r}, which this program does not know")


def memories_can_be_read(view: View) -> Iterator[Found]:
    """A memory's payload is JSON with the texts `content` and `gist`. They are
    immutable, so there is no mend; `geniuzfs forget` takes one away.
    """
    for (uuid,) in view.rows(
        "SELECT memory_uuid FROM memories WHERE CASE WHEN json_valid(payload)"
        " THEN json_type(payload, '$.content') IS NOT 'text'"
        " OR json_type(payload, '$.gist') IS NOT 'text' ELSE 1 END"
    ):
        yield Found(f"memory {uuid} is not JSON with a content and a gist")


def erasures_are_finished(view: View) -> Iterator[Found]:
    """What was forgotten is erased. A transaction can't do that: `geniuzfs forget` does."""
    since = forgetting.unfinished(view)
    if since is not None:
        yield Found(
            f"what was forgotten at {since} is removed and not all erased: run geniuzfs forget"
        )


def references_hold(view: View) -> Iterator[Found]:
    """SQLite's own check of foreign keys, in case the rules above have forgotten one."""
    broken = {(row[0], row[2]) for row in view.rows("PRAGMA foreign_key_check")}
    for table, other in sorted(broken):
        yield Found(f"rows of {table} refer to rows of {other} that are missing")


# Inodes: what each one is.


def types_are_known(view: View) -> Iterator[Found]:
    """A mode names one of the seven types. Mended to the type that the rest speaks for."""
    for number, mode in view.rows(
        f"SELECT number, mode FROM inodes WHERE (mode & ~4095) NOT IN ({_TYPES})"
    ):
        mend = sql(
            "UPDATE inodes SET mode = (mode & 4095) | CASE"
            f" WHEN number = 1 OR number IN (SELECT parent FROM entries) THEN {stat.S_IFDIR}"
            f" WHEN target IS NOT NULL THEN {stat.S_IFLNK} ELSE {stat.S_IFREG} END"
            " WHERE number = ?",
            number,
        )
        yield Found(f"inode {number} has mode {mode:o}, which names no file type", mend)


def the_top_is_a_directory(view: View) -> Iterator[Found]:
    """Inode 1 is there and is a directory. What else has its number gets another. A file of
    memories alone has none until its folder is first opened.
    """
    row = view.row("SELECT mode FROM inodes WHERE number = 1")
    if row is None:
        if view.row("SELECT 1 FROM inodes UNION ALL SELECT 1 FROM entries LIMIT 1") is None:
            return
        yield Found("the top directory is missing", mends.make_top)
    elif not stat.S_ISDIR(row[0]):
        yield Found("the top directory is a file", mends.renumber_top)


def symlinks_point(view: View) -> Iterator[Found]:
    """A symbolic link has a target as long as its size, and nothing else has one.
    The target of something else goes into a link of its own.
    """
    for number, is_link, has_target in view.rows(
        f"SELECT number, {_ISLNK} AS is_link, target IS NOT NULL FROM inodes"
        " WHERE is_link <> (target IS NOT NULL) OR (target IS NOT NULL AND size <> length(target))"
    ):
        if has_target and not is_link:
            yield Found(
                f"inode {number} has a target and is no link", partial(mends.split_link, number)
            )
        else:
            mend = sql(
                "UPDATE inodes SET target = coalesce(target, x'3F'),"
                " size = coalesce(length(target), 1) WHERE number = ?",
                number,
            )
            yield Found(f"symbolic link {number} has no target of its size", mend)


def sizes_hold(view: View) -> Iterator[Found]:
    """`stored` is the sum of the pieces, and they end within `size`, which grows if not."""
    pieces = (
        "SELECT inode, sum(length(bytes)) AS held, max(number * ?1 + length(bytes)) AS ends FROM"
        " (SELECT inode, 0 AS number, bytes FROM contents UNION ALL SELECT * FROM chunks)"
        " GROUP BY inode"
    )
    for number, size, stored, held, ends in view.rows(
        "SELECT number, size, stored, coalesce(held, 0) AS held, coalesce(ends, 0) AS ends"
        f" FROM inodes LEFT JOIN ({pieces}) ON inode = number WHERE stored <> held OR size < ends",
        (CHUNK,),
    ):
        yield Found(
            f"inode {number} says {stored} bytes of {size}; it holds {held} that end at {ends}",
            sql(
                "UPDATE inodes SET stored = ?, size = max(size, ?) WHERE number = ?",
                *(held, ends, number),
            ),
        )


def links_are_counted(view: View) -> Iterator[Found]:
    """nlink is the number of names; for a directory 2 and its subdirectories."""
    subdirectories = (
        "SELECT parent, count(*) AS names FROM entries JOIN inodes ON number = inode"
        f" WHERE {_ISDIR} GROUP BY parent"
    )
    names = "SELECT inode, count(*) AS names FROM entries GROUP BY inode"
    for number, nlink, links in view.rows(
        f"SELECT number, nlink, CASE WHEN {_ISDIR} THEN 2 + coalesce(s.names, 0) ELSE n.names END"
        f" AS links FROM inodes LEFT JOIN ({subdirectories}) AS s ON s.parent = number"
        f" LEFT JOIN ({names}) AS n ON n.inode = number WHERE nlink <> links"
    ):
        mend = sql("UPDATE inodes SET nlink = ? WHERE number = ?", links, number)
        yield Found(f"inode {number} says {nlink} links and has {links}", mend)


# Rows that belong to an inode.


def pieces_belong_to_files(view: View) -> Iterator[Found]:
    """Bytes belong to a regular file. Those that do not become one."""
    for (number,) in view.rows(
        "SELECT inode FROM contents UNION SELECT inode FROM chunks"
        f" EXCEPT SELECT number FROM inodes WHERE {_ISREG}"
    ):
        mend = partial(mends.give_inode, number, FILE, ("contents.inode", "chunks.inode"))
        yield Found(f"inode {number} has bytes and is no file", mend)


def attributes_belong_to_inodes(view: View) -> Iterator[Found]:
    """Extended attributes belong to an inode; an empty file carries those that do not."""
    for (number,) in view.rows("SELECT inode FROM xattrs EXCEPT SELECT number FROM inodes"):
        mend = partial(mends.give_inode, number, FILE, ("xattrs.inode",))
        yield Found(f"attributes of inode {number}, which is missing", mend)


def due_marks_belong_to_inodes(view: View) -> Iterator[Found]:
    for (number,) in view.rows("SELECT inode FROM due EXCEPT SELECT number FROM inodes"):
        mend = sql("DELETE FROM due WHERE inode = ?", number)
        yield Found(f"inode {number} is due and missing", mend)


# Names.


def names_are_in_directories(view: View) -> Iterator[Found]:
    """What holds entries is a directory. They get one of their own, under their names."""
    for (number,) in view.rows(
        f"SELECT parent FROM entries EXCEPT SELECT number FROM inodes WHERE {_ISDIR}"
    ):
        mend = partial(mends.give_inode, number, DIRECTORY, ("entries.parent",))
        yield Found(f"inode {number} has entries and is no directory", mend)


def names_stand_for_inodes(view: View) -> Iterator[Found]:
    """A name whose inode is gone, with all it held, goes too."""
    for parent, name, number in view.rows(
        "SELECT parent, name, inode FROM entries WHERE inode NOT IN (SELECT number FROM inodes)"
    ):
        mend = sql("DELETE FROM entries WHERE parent = ? AND name = ?", parent, name)
        yield Found(f"{name!r} in directory {parent} is inode {number}, which is missing", mend)


def names_are_valid(view: View) -> Iterator[Found]:
    """No name is `.` or `..`, holds `/` or NUL, or has no or too many bytes. The new
    one is the inode's number.
    """
    for parent, name, number in view.rows(
        "SELECT parent, name, inode FROM entries WHERE name IN (x'2E', x'2E2E')"
        " OR instr(name, x'2F') OR instr(name, x'00') OR length(name) NOT BETWEEN 1 AND 255"
    ):
        mend = partial(mends.rename_to_number, parent, name, number)
        yield Found(f"{name!r} in directory {parent} can't be a name", mend)


def directories_have_one_name(view: View) -> Iterator[Found]:
    """A directory has one name, the top none. The one that is nearest to the top stays."""
    below: dict[int, list[tuple[bytes, int]]] = defaultdict(list)
    for parent, name, number in view.rows(_DIRECTORIES):
        below[parent].append((name, number))
    named = {int(ROOT)}
    for start in [int(ROOT), *below]:
        level = [start]
        for parent in level:
            for name, number in below.pop(parent, ()):
                if number in named:
                    mend = sql("DELETE FROM entries WHERE parent = ? AND name = ?", parent, name)
                    yield Found(f"{name!r} in {parent} names directory {number} once more", mend)
                else:
                    named.add(number)
                    level.append(number)


def inodes_are_reached(view: View) -> Iterator[Found]:
    """From the top, every inode can be reached. One without a name gets one in
    lost+found, and so does one directory of a ring that hold each other.
    """
    for (number,) in view.rows(
        "SELECT number FROM inodes WHERE number <> 1 EXCEPT SELECT inode FROM entries"
    ):
        yield Found(f"inode {number} has no name", partial(mends.name_in_lost_and_found, number))
    above = {number: parent for parent, _, number in view.rows(_DIRECTORIES) if number != ROOT}
    while above:
        walk = [next(iter(above))]
        while walk[-1] in above:
            walk.append(above.pop(walk[-1]))
        ring = walk[walk.index(walk[-1]) : -1]
        if ring:  # the oldest of them was the upper one, most likely
            detail = f"directory {min(ring)} is beneath itself, out of reach"
            yield Found(detail, partial(mends.name_in_lost_and_found, min(ring)))
