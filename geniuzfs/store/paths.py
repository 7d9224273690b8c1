"""Where files stand: paths, and what lies beneath a directory."""

from geniuzfs.model import ROOT, InodeNumber
from geniuzfs.store.transactions import View

RULES = b".geniuzignore"
"""The name of a file that says what is not learned."""

_DEPTH = 4_096
"""Directories above a file: more than any path that the kernel takes can name."""

_BENEATH = (
    "WITH RECURSIVE below (number) AS (VALUES (?) UNION"
    " SELECT inode FROM entries JOIN below ON parent = number"
    " WHERE (SELECT mode & 61440 FROM inodes WHERE inodes.number = inode) = 16384)"
)


def path(view: View, inode: InodeNumber) -> bytes | None:
    """Where the file stands (of several names, by one), relative to the folder's top; None
    when it has no name any more.
    """
    names: list[bytes] = []
    number = inode
    while number != ROOT:
        row = view.row("SELECT parent, name FROM entries WHERE inode = ? ORDER BY id", (number,))
        if row is None or len(names) > _DEPTH:
            return None
        number = row[0]
        names.append(row[1])
    return b"/".join(reversed(names))


def find(view: View, path: bytes, directory: InodeNumber = ROOT) -> InodeNumber | None:
    """What stands at `path`, relative to `directory`; None: nothing."""
    number = directory
    for name in path.split(b"/"):
        if name in (b"", b"."):
            continue
        row = view.row("SELECT inode FROM entries WHERE parent = ? AND name = ?", (number, name))
        if row is None:
            return None
        number = row[0]
    return number


def files_beneath(view: View, directory: InodeNumber) -> list[InodeNumber]:
    """Every regular file beneath `directory`, at any depth."""
    rows = view.rows(
        f"{_BENEATH} SELECT DISTINCT inode FROM entries JOIN below ON parent = below.number"
        " WHERE (SELECT mode & 61440 FROM inodes WHERE number = inode) = 32768",
        (directory,),
    )
    return [row[0] for row in rows]


def bytes_beneath(view: View, directory: InodeNumber) -> int:
    """The sizes of all regular files beneath `directory`, one of several names once."""
    row = view.row(
        f"{_BENEATH} SELECT coalesce(sum(size), 0) FROM inodes WHERE (mode & 61440) = 32768"
        " AND number IN (SELECT inode FROM entries JOIN below ON parent = below.number)",
        (directory,),
    )
    return 0 if row is None else int(row[0])


def named_beneath(
    view: View, directory: InodeNumber, prefix: bytes
) -> list[tuple[bytes, InodeNumber]]:
    """Every regular file whose path, relative to `directory`, begins with `prefix`, which has no
    slash: (path, inode) for each of its names, in the order of the paths' bytes.
    """
    # In a damaged tree, whose directories may stand in a ring, the length ends it.
    directories = view.rows(
        "WITH RECURSIVE below (number, path) AS (VALUES (?1, x'') UNION ALL"
        " SELECT inode, CAST(path || name || x'2F' AS BLOB)"
        " FROM below CROSS JOIN entries ON parent = below.number"
        " WHERE length(path) <= 4096 AND (path <> x'' OR substr(name, 1, ?2) = ?3)"
        " AND (SELECT mode & 61440 FROM inodes WHERE inodes.number = inode) = 16384)"
        " SELECT number, path FROM below",
        (directory, len(prefix), prefix),
    )
    found: list[tuple[bytes, InodeNumber]] = []
    for number, above in directories:
        rows = view.rows(
            "SELECT name, inode FROM entries WHERE parent = ?"
            " AND (SELECT mode & 61440 FROM inodes WHERE number = inode) = 32768",
            (number,),
        )
        found += [(above + name, inode) for name, inode in rows if above or name.startswith(prefix)]
    return sorted(found)


def all_beneath(view: View, number: InodeNumber) -> list[InodeNumber]:
    """`number` and every inode beneath it, each once."""
    rows = view.rows(
        "WITH RECURSIVE below (number) AS (VALUES (?) UNION"
        " SELECT inode FROM entries JOIN below ON parent = number) SELECT number FROM below",
        (number,),
    )
    return [row[0] for row in rows]


def rules(view: View) -> list[tuple[bytes, InodeNumber]]:
    """Every .geniuzignore: the path of the directory that it is for, and its own inode."""
    rows = view.rows("SELECT parent, inode FROM entries WHERE name = x'2E67656E69757A69676E6F7265'")
    found = ((path(view, parent), inode) for parent, inode in rows)
    return [(where, inode) for where, inode in found if where is not None]
