"""Whole files at paths: put, found, moved and removed with one call, in the caller's transaction.

Hides: that a path is a chain of names, and that directories come and go with the files in them.
Promises: every function that takes a Txn leaves the tree as POSIX wants it, or raises, and then
the transaction must be undone. A path is relative to the folder's top, its parts are names.
Refuses: what stands there already as something else; it is never replaced.
"""

import stat
from collections.abc import Callable, Sequence
from typing import NamedTuple

from geniuzfs.errors import IntoItself, IsADirectory, NotADirectory
from geniuzfs.model import CHUNK, NOBODY, ROOT, Exchange, Inode, InodeNumber, Writer
from geniuzfs.store import content, tree
from geniuzfs.store.transactions import Txn, View

FILE_MODE = stat.S_IFREG | 0o644
DIRECTORY_MODE = stat.S_IFDIR | 0o755

Path = Sequence[bytes]
"""The names from the folder's top on."""


class Maker(NamedTuple):
    """Whose it is, when it is made, and which process does that, where it is known."""

    uid: int
    gid: int
    now_ns: int
    by: Writer = NOBODY


class Placed(NamedTuple):
    """A file that was put, and whether there was none before."""

    number: InodeNumber
    created: bool


def parts(path: bytes) -> list[bytes]:
    """The names in `/drafts/plan.md`, with or without slashes around it."""
    return [name for name in path.split(b"/") if name]


def at(view: View, path: Path) -> Inode | None:
    """What stands there; None: nothing."""
    found = tree.inode(view, ROOT)
    for name in path:
        if found is None:
            return None
        found = tree.child(view, found.number, name)
    return found


def put(txn: Txn, path: Path, data: bytes, maker: Maker, *, blind: bool = False) -> Placed:
    """Have the file hold these bytes, with the directories above it. A file that is there keeps
    its number, mode, owner, links and attributes; `blind`: see content.Save. Raises IsADirectory
    for anything else there, NotADirectory for a file above, and what tree.create does for names.
    """
    *above, name = path
    parent = make_directories(txn, above, maker)
    found = tree.child(txn, parent, name)
    if found is not None and not stat.S_ISREG(found.mode):
        raise IsADirectory(f"{_shown(path)} is no file")
    number = (found or _create(txn, parent, name, FILE_MODE, maker)).number
    # The first even where it is empty: content.save takes an empty piece away.
    pieces = {at // CHUNK: data[at : at + CHUNK] for at in range(0, len(data) or 1, CHUNK)}
    now_ns = maker.now_ns
    save = content.Save(len(data), now_ns, now_ns, pieces, maker.by, blind=blind)
    content.save(txn, number, save)
    return Placed(number, found is None)


def make_directories(
    txn: Txn, path: Path, maker: Maker, made: Callable[[InodeNumber], None] = lambda _: None
) -> InodeNumber:
    """The directory at `path`, made with all above it where there is none; `made` is told of each.
    Raises NotADirectory.
    """
    number = ROOT
    for depth, name in enumerate(path, 1):
        found = tree.child(txn, number, name)
        if found is not None and not stat.S_ISDIR(found.mode):
            raise NotADirectory(f"{_shown(path[:depth])} is no directory")
        if found is None:
            found = _create(txn, number, name, DIRECTORY_MODE, maker)
            made(found.number)
        number = found.number
    return number


def prune(txn: Txn, path: Path, now_ns: int) -> None:
    """Remove the directory at `path` and those above it as far as they are empty."""
    for depth in range(len(path), 0, -1):
        above, name = path[: depth - 1], path[depth - 1]
        parent, found = at(txn, above), at(txn, path[:depth])
        if parent is None or (found is not None and not stat.S_ISDIR(found.mode)):
            return
        if found is not None:
            if tree.listing(txn, found.number, 0, 1):
                return
            tree.remove(txn, parent.number, name, now_ns, directory=True)


def remove(txn: Txn, path: Path, now_ns: int) -> None:
    """Remove what stands there, a directory with all beneath. Raises NotFound."""
    parent = at(txn, path[:-1])
    left = [(ROOT if parent is None else parent.number, path[-1])]
    while left:  # no recursion, for paths may be 2,000 deep
        directory, name = left[-1]
        found = tree.child(txn, directory, name)
        is_directory = found is not None and stat.S_ISDIR(found.mode)
        beneath = tree.listing(txn, found.number, 0, -1) if found and is_directory else []
        if beneath and found:
            left += [(found.number, entry.name) for entry in beneath]
            continue
        tree.remove(txn, directory, name, now_ns, directory=is_directory)
        left.pop()


def move(txn: Txn, old: Path, new: Path, maker: Maker) -> None:
    """Move what stands at `old` to `new`, with the directories above that. Two directories become
    one. Raises AlreadyExists where a file would come upon anything, IntoItself, NotADirectory,
    NotFound.
    """
    if len(new) > len(old) and list(new[: len(old)]) == list(old):
        found = at(txn, old)
        if found is not None and stat.S_ISDIR(found.mode):
            raise IntoItself(f"{_shown(old)} can't be moved beneath itself")
    source = at(txn, old[:-1])
    _merge(
        txn,
        (ROOT if source is None else source.number, old[-1]),
        (make_directories(txn, new[:-1], maker), new[-1]),
        maker.now_ns,
    )


def _merge(
    txn: Txn, old: tuple[InodeNumber, bytes], new: tuple[InodeNumber, bytes], now_ns: int
) -> None:
    moved, there = tree.child(txn, *old), tree.child(txn, *new)
    if not (moved and there and stat.S_ISDIR(moved.mode) and stat.S_ISDIR(there.mode)):
        tree.rename(txn, old, new, Exchange.NOREPLACE, now_ns)
        return
    # All of them first: `/a/b/` moved to `/a/` puts what is in `/a/b/b/` back into `/a/b/`.
    for entry in tree.listing(txn, moved.number, 0, -1):
        _merge(txn, (moved.number, entry.name), (there.number, entry.name), now_ns)
    if not tree.listing(txn, moved.number, 0, 1):
        tree.remove(txn, *old, now_ns, directory=True)


def _create(txn: Txn, parent: InodeNumber, name: bytes, mode: int, maker: Maker) -> Inode:
    return tree.create(txn, parent, name, tree.New(mode, maker.uid, maker.gid), maker.now_ns)


def _shown(path: Path) -> str:
    return "/" + b"/".join(path).decode("utf-8", "backslashreplace")
