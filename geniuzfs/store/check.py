"""Every invariant of the schema as a function that yields what breaks it.

The oracle: every test that touches storage ends with `problems(view)` being
empty, and `geniuzfs check` is the same for users. A repair loses no byte: what
has lost its name gets one in the top directory's `lost+found`.
"""

from collections.abc import Callable, Iterator

from geniuzfs.model import CHUNK, Problem
from geniuzfs.store.transactions import Txn, View

_DIRECTORY = "(mode & 61440) = 16384"
_REGULAR = "(mode & 61440) = 32768"
_SYMLINK = "(mode & 61440) = 40960"


def problems(view: View) -> Iterator[Problem]:
    """All that is wrong, in an order in which repairing makes sense."""
    for rule in RULES:
        yield from rule(view)


def repair(txn: Txn) -> list[Problem]:
    """Mend what can be mended; returns what was found, mended or not."""
    found: list[Problem] = []
    for rule in RULES:
        for problem in list(rule(txn)):
            found.append(problem)
            if problem.repair is not None:
                txn.run(problem.repair)
    return found


def sound_pages(view: View) -> Iterator[Problem]:
    """SQLite's own check of its pages, indexes and constraints."""
    for (line,) in view.rows("PRAGMA integrity_check(100)"):
        if line != "ok":
            yield Problem("sound_pages", line)


def a_root(view: View) -> Iterator[Problem]:
    """The top directory is there and has no name."""
    if not view.row(f"SELECT 1 FROM inodes WHERE number = 1 AND {_DIRECTORY}"):
        yield Problem(
            "a_root",
            "the top directory is missing",
            "INSERT OR REPLACE INTO inodes (number, mode, uid, gid, nlink, atime_ns, mtime_ns, ctime_ns)"
            " VALUES (1, 16877, 0, 0, 2, 0, 0, 0)",
        )
    for parent, name in view.rows("SELECT parent, name FROM entries WHERE inode = 1"):
        yield Problem(
            "a_root",
            f"the top directory has the name {name!r}",
            f"DELETE FROM entries WHERE parent = {parent} AND inode = 1",
        )


def entries_have_inodes(view: View) -> Iterator[Problem]:
    """What a name stands for exists, and so does the directory it is in."""
    for parent, id_, name, inode in view.rows(
        "SELECT parent, id, name, inode FROM entries WHERE inode NOT IN (SELECT number FROM inodes)"
    ):
        yield Problem(
            "entries_have_inodes",
            f"entry {name!r} of directory {parent} stands for inode {inode}, which is missing",
            f"DELETE FROM entries WHERE parent = {parent} AND id = {id_}",
        )
    for parent, id_, name, inode in view.rows(
        f"SELECT parent, id, name, inode FROM entries WHERE parent NOT IN (SELECT number FROM inodes WHERE {_DIRECTORY})"
    ):
        yield Problem(
            "entries_have_inodes",
            f"entry {name!r} (inode {inode}) is in {parent}, which is no directory",
            f"DELETE FROM entries WHERE parent = {parent} AND id = {id_}",
        )


def names_are_valid(view: View) -> Iterator[Problem]:
    """No name is `.` or `..` or holds `/` or NUL. Repaired by naming it after its inode."""
    for parent, id_, name, inode in view.rows(
        "SELECT parent, id, name, inode FROM entries WHERE name IN (x'2E', x'2E2E')"
        " OR instr(name, x'2F') OR instr(name, x'00')"
    ):
        yield Problem(
            "names_are_valid",
            f"entry {name!r} of directory {parent} can't be a name",
            f"UPDATE entries SET name = CAST('#{inode}' AS BLOB) WHERE parent = {parent} AND id = {id_}",
        )


def inodes_have_names(view: View) -> Iterator[Problem]:
    """Every inode can be reached from the top. Repaired by a name in lost+found."""
    reached = (
        "WITH RECURSIVE reached (number) AS (SELECT 1 UNION"
        " SELECT inode FROM entries JOIN reached ON parent = reached.number)"
    )
    lost = view.rows(
        f"{reached} SELECT number FROM inodes WHERE number NOT IN (SELECT number FROM reached)"
        " AND number NOT IN (SELECT inode FROM entries) ORDER BY number"
    )
    rings = view.rows(
        f"{reached} SELECT parent, id, inode FROM entries WHERE inode NOT IN (SELECT number FROM reached)"
        " AND parent NOT IN (SELECT number FROM inodes WHERE number NOT IN (SELECT number FROM reached)"
        " AND number NOT IN (SELECT inode FROM entries)) AND NOT EXISTS (SELECT 1 FROM reached AS r WHERE r.number = parent)"
        if not lost
        else "SELECT 1, 1, 1 WHERE 0"
    )
    if lost or rings:
        yield Problem(
            "inodes_have_names",
            "files without a name" if lost else "directories that hold each other",
            "INSERT INTO inodes (number, mode, uid, gid, nlink, atime_ns, mtime_ns, ctime_ns)"
            " SELECT max(number) + 1, 16832, 0, 0, 2, 0, 0, 0 FROM inodes"
            " WHERE NOT EXISTS (SELECT 1 FROM entries WHERE parent = 1 AND name = CAST('lost+found' AS BLOB))",
        )
        yield Problem(
            "inodes_have_names",
            "they get a name in lost+found",
            "INSERT INTO entries (parent, id, name, inode)"
            " SELECT 1, (SELECT coalesce(max(id), 0) + 1 FROM entries WHERE parent = 1),"
            " CAST('lost+found' AS BLOB), (SELECT max(number) FROM inodes)"
            " WHERE NOT EXISTS (SELECT 1 FROM entries WHERE parent = 1 AND name = CAST('lost+found' AS BLOB))",
        )
    found_in = "(SELECT inode FROM entries WHERE parent = 1 AND name = CAST('lost+found' AS BLOB))"
    for (number,) in lost:
        yield Problem(
            "inodes_have_names",
            f"inode {number} has no name",
            "INSERT INTO entries (parent, id, name, inode)"
            f" SELECT {found_in}, (SELECT coalesce(max(id), 0) + 1 FROM entries WHERE parent = {found_in}),"
            f" CAST('#{number}' AS BLOB), {number} WHERE {found_in} <> {number}",
        )
    for parent, id_, number in rings[:1]:
        yield Problem(
            "inodes_have_names",
            f"directory {number} can't be reached from the top",
            f"UPDATE entries SET parent = {found_in}, name = CAST('#{number}' AS BLOB),"
            f" id = (SELECT coalesce(max(id), 0) + 1 FROM entries WHERE parent = {found_in})"
            f" WHERE parent = {parent} AND id = {id_}",
        )


def directories_have_one_name(view: View) -> Iterator[Problem]:
    """A directory has one name. Repaired by keeping the oldest."""
    for number, names in view.rows(
        f"SELECT inode, count(*) FROM entries JOIN inodes ON number = inode WHERE {_DIRECTORY}"
        " GROUP BY inode HAVING count(*) > 1"
    ):
        yield Problem(
            "directories_have_one_name",
            f"directory {number} has {names} names",
            f"DELETE FROM entries WHERE inode = {number} AND (parent, id) <>"
            f" (SELECT parent, id FROM entries WHERE inode = {number} ORDER BY parent, id LIMIT 1)",
        )


def links_are_counted(view: View) -> Iterator[Problem]:
    """nlink is the number of names; for a directory 2 and its subdirectories."""
    counted = (
        f"CASE WHEN {_DIRECTORY} THEN 2 + (SELECT count(*) FROM entries AS e JOIN inodes AS i ON i.number = e.inode"
        " WHERE e.parent = inodes.number AND (i.mode & 61440) = 16384)"
        " ELSE (SELECT count(*) FROM entries AS e WHERE e.inode = inodes.number) END"
    )
    for number, nlink, names in view.rows(
        f"SELECT number, nlink, {counted} AS names FROM inodes WHERE nlink <> names AND names > 0"
    ):
        yield Problem(
            "links_are_counted",
            f"inode {number} says {nlink} links and has {names}",
            f"UPDATE inodes SET nlink = {names} WHERE number = {number}",
        )


def bytes_have_owners(view: View) -> Iterator[Problem]:
    """Pieces belong to a regular file, attributes and due marks to an inode.
    Pieces without one can't be named by anybody, so repairing removes them.
    """
    for table, owners in (
        ("contents", f"SELECT number FROM inodes WHERE {_REGULAR}"),
        ("chunks", f"SELECT number FROM inodes WHERE {_REGULAR}"),
        ("xattrs", "SELECT number FROM inodes"),
        ("due", "SELECT number FROM inodes"),
    ):
        for (number,) in view.rows(
            f"SELECT DISTINCT inode FROM {table} WHERE inode NOT IN ({owners})"
        ):
            yield Problem(
                "bytes_have_owners",
                f"{table} holds rows of inode {number}, which can't have any",
                f"DELETE FROM {table} WHERE inode = {number}",
            )


def sizes_hold(view: View) -> Iterator[Problem]:
    """`stored` is the sum of the pieces, and they end within `size`."""
    pieces = (
        "SELECT inode, sum(held) AS held, max(ends) AS ends FROM"
        " (SELECT inode, length(bytes) AS held, length(bytes) AS ends FROM contents UNION ALL"
        f" SELECT inode, length(bytes), number * {CHUNK} + length(bytes) FROM chunks) GROUP BY inode"
    )
    for number, size, stored, held, ends in view.rows(
        f"SELECT number, size, stored, coalesce(held, 0), coalesce(ends, 0)"
        f" FROM inodes LEFT JOIN ({pieces}) ON inode = number"
        f" WHERE {_REGULAR} AND (stored <> coalesce(held, 0) OR size < coalesce(ends, 0))"
    ):
        yield Problem(
            "sizes_hold",
            f"inode {number} says {stored} bytes of {size}; it holds {held} that end at {ends}",
            f"UPDATE inodes SET stored = {held}, size = {max(size, ends)} WHERE number = {number}",
        )


def symlinks_point(view: View) -> Iterator[Problem]:
    """A symbolic link has a target of its size, nothing else has one."""
    for (number,) in view.rows(
        f"SELECT number FROM inodes WHERE ({_SYMLINK}) <> (target IS NOT NULL)"
        f" OR (target IS NOT NULL AND size <> length(target))"
    ):
        yield Problem(
            "symlinks_point",
            f"inode {number}'s target does not fit its type and size",
            f"UPDATE inodes SET target = CASE WHEN {_SYMLINK} THEN coalesce(target, x'3F') END,"
            f" size = CASE WHEN {_SYMLINK} THEN length(coalesce(target, x'3F')) ELSE size END WHERE number = {number}",
        )


def types_are_known(view: View) -> Iterator[Problem]:
    """Every mode names one of the seven file types."""
    for number, mode in view.rows(
        "SELECT number, mode FROM inodes"
        " WHERE (mode & 61440) NOT IN (4096, 8192, 16384, 24576, 32768, 40960, 49152) OR mode > 65535"
    ):
        yield Problem(
            "types_are_known",
            f"inode {number} has mode {mode:o}, which names no file type",
            f"UPDATE inodes SET mode = 32768 | ({mode} & 4095) WHERE number = {number}",
        )


RULES: tuple[Callable[[View], Iterator[Problem]], ...] = (
    sound_pages,
    types_are_known,
    a_root,
    entries_have_inodes,
    names_are_valid,
    directories_have_one_name,
    inodes_have_names,
    bytes_have_owners,
    symlinks_point,
    sizes_hold,
    links_are_counted,
)
