"""Directories of one folder, for whoever shows them: listed, and removed and renamed whole.

Hides: how sizes are counted. Promises: each call is one transaction, whole or not there at all;
directories that it empties stay. Refuses: the folder's top, what is taken, and names that can't be
asked for (no UTF-8, a backslash): those are in the sizes alone, and go with their directory.
"""

import stat
from typing import NamedTuple

from geniuzfs.api import requests
from geniuzfs.api.connections import Connections
from geniuzfs.api.files import can_be_asked_for, in_the_way, maker_of, named, parts
from geniuzfs.config import Config
from geniuzfs.errors import AlreadyExists, BadPath, NotFound
from geniuzfs.model import Inode
from geniuzfs.ports import Clock
from geniuzfs.store import paths, tree, whole
from geniuzfs.store.transactions import Txn, View

TOP = "/"


class Entry(NamedTuple):
    """A file or directory in a listing."""

    path: str
    size: int
    """Bytes; of a directory those of all files beneath."""
    is_directory: bool


class Listing(NamedTuple):
    """A directory, and what it holds: each directory right before what is in it."""

    size: int
    """Bytes of all files beneath."""
    entries: tuple[Entry, ...]


class Directories:
    """May be used from several threads at once. A path has no slash at its end, but for the top,
    `/`. Every call raises BadPath for a path that breaks the rules.
    """

    def __init__(self, connections: Connections, config: Config, clock: Clock) -> None:
        self._connections = connections
        self._config = config
        self._clock = clock

    def list(self, path: str = TOP, depth: int = 1) -> Listing:
        """The files and directories down to `depth` levels, in the order of their names' bytes.
        Raises NotFound where there is no directory.
        """
        place = [] if path == TOP else parts(requests.path(path))

        def listing(view: View) -> Listing:
            found = whole.at(view, place)
            if found is None or not stat.S_ISDIR(found.mode):
                raise NotFound(f"there is no directory at {path}")
            entries = _entries(view, found, "" if path == TOP else path, depth)
            return Listing(paths.bytes_beneath(view, found.number), tuple(entries))

        return self._connections.read(listing)

    def remove(self, path: str) -> None:
        """Remove what stands there, a directory with all beneath; its history stays, and can be
        brought back (Files.undo). Raises NotFound.
        """
        wanted = requests.path(path)

        def remove(txn: Txn) -> None:
            _there(txn, wanted)
            whole.remove(txn, parts(wanted), self._clock.now_ns())

        self._connections.write(remove)

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory another path, with the directories above it. Raises NotFound,
        AlreadyExists where anything is, UsageError for a directory into itself.
        """
        source, target = requests.path(old), requests.path(new)

        def rename(txn: Txn) -> None:
            if whole.at(txn, parts(target)) is not None:
                raise AlreadyExists(f"{target} is taken")
            _there(txn, source)
            can_be_asked_for(named(txn, f"{source}/")[0], source, target)
            with in_the_way(target):
                maker = maker_of(self._config, self._clock)
                whole.move(txn, parts(source), parts(target), maker)

        self._connections.write(rename)


def _there(view: View, path: str) -> None:
    if whole.at(view, parts(path)) is None:
        raise NotFound(f"there is nothing at {path}")


def _entries(view: View, directory: Inode, above: str, depth: int) -> list[Entry]:
    entries: list[Entry] = []
    for name in sorted(entry.name for entry in tree.listing(view, directory.number, 0, -1)):
        try:
            path = requests.path(f"{above}/{name.decode()}")
        except (UnicodeDecodeError, BadPath):
            continue
        found = tree.child(view, directory.number, name)
        if found is None or not (stat.S_ISDIR(found.mode) or stat.S_ISREG(found.mode)):
            continue
        if stat.S_ISREG(found.mode):
            entries.append(Entry(path, found.size, is_directory=False))
            continue
        size = paths.bytes_beneath(view, found.number)
        entries.append(Entry(path, size, is_directory=True))
        if depth > 1:
            entries += _entries(view, found, path, depth - 1)
    return entries
