"""What is mounted where, and which places no database may lie in."""

from pathlib import Path
from typing import NamedTuple

from geniuzfs.errors import UnsafePlace

FUSE_TYPE = "fuse.geniuzfs"
TABLE = Path("/proc/self/mountinfo")

# Shared memory (which WAL needs) and locks do not work, or not between machines, on these.
_UNSAFE = (
    "nfs",
    "cifs",
    "smb",
    "9p",
    "afs",
    "ceph",
    "gluster",
    "lustre",
    "gfs2",
    "ocfs2",
    "fuse",
    "virtiofs",
    "davfs",
)
_UNSAFE_EXCEPT = ("fuseblk",)


class Mount(NamedTuple):
    target: Path
    type: str
    source: str


def mounts(table: Path = TABLE) -> list[Mount]:
    """What this process sees mounted, in the order of mounting."""
    found = []
    for line in table.read_text("utf-8", "surrogateescape").splitlines():
        head, _, tail = line.partition(" - ")
        target, (type_, source, *_rest) = head.split(" ")[4], tail.split(" ")
        found.append(Mount(Path(_unescaped(target)), type_, _unescaped(source)))
    return found


def ours(home: Path, table: Path = TABLE) -> list[Mount]:
    """This program's mounts of the data directory `home`, dead ones too."""
    return [
        mount for mount in mounts(table) if (mount.type, mount.source) == (FUSE_TYPE, source(home))
    ]


def source(home: Path) -> str:
    """What a mount of `home` gives as its source, as df shows it: the path itself, unless
    mount options can't hold it.
    """
    path = str(home.resolve())
    return (
        path if path.isascii() and path.isprintable() and not set(path) & set(",\\") else "geniuzfs"
    )


def mount_at(path: Path) -> Mount | None:
    """The mount whose root `path` is; the topmost where several are stacked. Touches nothing."""
    return next((mount for mount in reversed(mounts()) if mount.target == path), None)


def check_safe(path: Path, table: Path = TABLE) -> None:
    """Raises UnsafePlace when a database at `path` would lie on a network or FUSE
    file system. Asks the mount table alone: the place itself may hang.
    """
    holding = unsafe(path, mounts(table))
    if holding is not None:
        raise UnsafePlace(
            f"{path} lies on {holding.type} (mounted at {holding.target}), where a database"
            " can lose data: set GENIUZ_HOME to a directory on a local disk"
        )


def check_not_mounted(path: Path) -> None:
    """Raises UnsafePlace for a place in a mount of this program: what is written of a folder there
    would be written into a folder.
    """
    holding = beneath(path, mounts())
    if holding is not None and holding.type == FUSE_TYPE:
        raise UnsafePlace(f"{path} lies in the mount {holding.target}: choose a place outside")


def unsafe(path: Path, among: list[Mount]) -> Mount | None:
    """The mount that `path` lies on, if it is one where no database may lie."""
    holding = beneath(path, among)
    if holding is None or not holding.type.startswith(_UNSAFE):
        return None
    return None if holding.type.startswith(_UNSAFE_EXCEPT) else holding


def beneath(path: Path, among: list[Mount]) -> Mount | None:
    """The mount that `path` lies on; the topmost where several are stacked."""
    return max(
        (mount for mount in reversed(among) if path.is_relative_to(mount.target)),
        key=lambda mount: len(mount.target.parts),
        default=None,
    )


def _unescaped(text: str) -> str:
    """The kernel writes blanks, tabs, line ends and backslashes as octal numbers."""
    for code, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, plain)
    return text
