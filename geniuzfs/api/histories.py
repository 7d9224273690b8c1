"""What files were before: looked for, compared, brought back.

Hides: which version is meant, and what a removal took. Promises: bringing back is a save as any
other, in one transaction, so that it can be undone as well; of several files all come back or
none. Refuses: to put a removed file where another is now, and to make up what the history lacks:
owners, attributes, links, empty directories.
"""

import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from geniuzfs.api import placing
from geniuzfs.api.arranging import Arranging
from geniuzfs.errors import AlreadyExists, NotFound, UsageError
from geniuzfs.folders.registry import Folder
from geniuzfs.model import ROOT, InodeNumber, Writer
from geniuzfs.ports import Clock
from geniuzfs.store import content, histories, paths, retention, tree, versions, whole
from geniuzfs.store.connection import Database
from geniuzfs.store.histories import Summary
from geniuzfs.store.retention import Kept
from geniuzfs.store.transactions import Txn, View
from geniuzfs.store.versions import BURST_NS, Version

UNDO = Writer("geniuzfs undo", 0, 0)


class Named(NamedTuple):
    """A version, under the name that it has in `.history/` too."""

    name: str
    version: Version


class Undone(NamedTuple):
    """A file that has a former content again; `removed`: it was not there before."""

    path: str
    version: str
    removed: bool


class Histories:
    """The use cases, on the data directory `home`. `name` and `here` say which folder, and with
    `path` which file: see Arranging.meant and api.placing.
    """

    def __init__(
        self, arranging: Arranging, home: Path, open_: Callable[[Folder], Database], clock: Clock
    ) -> None:
        self._arranging = arranging
        self._home = home
        self._open = open_
        self._clock = clock

    def changed(self, name: str | None, here: Path | None) -> list[Summary]:
        """The files that have a history, there or removed, what changed last first."""
        database = self._opened(name, here)
        try:
            with database.snapshot() as view:
                return histories.summaries(view)
        finally:
            database.close()

    def of(self, name: str | None, path: str, here: Path | None) -> list[Named]:
        """The versions of the file at `path`, or that was there, the oldest first. Raises NotFound
        where there are none.
        """
        with self._placed(name, path, here) as (database, inner), database.snapshot() as view:
            return of(view, inner)

    def texts(
        self, name: str | None, path: str, asked: tuple[str, ...], here: Path | None
    ) -> list[tuple[str, bytes]]:
        """Two contents to compare, each with what it is called: the two that are asked for; one and
        what is there now; the last version and what is there now. Raises NotFound and UsageError.
        """
        with self._placed(name, path, here) as (database, inner), database.snapshot() as view:
            known = of(view, inner)
            wanted = [chosen(known, text) for text in asked] or [known[-1]]
            found = [(each.name, b"".join(versions.read(view, each.version))) for each in wanted]
            return found if len(found) > 1 else [*found, ("now", _now(view, inner))]

    def undo(self, name: str | None, path: str, to: str | None, here: Path | None) -> list[Undone]:
        """Give the file at `path` the content that it had before its last save, or that of version
        `to`; bring a removed file back; of a directory, what was last removed beneath it, in one
        go. Raises NotFound where there is nothing to bring back, and AlreadyExists where a link or
        the like stands now.
        """
        with self._placed(name, path, here) as (database, inner), database.txn() as txn:
            return undo(txn, inner, to, self._clock.now_ns())

    def kept(self, name: str | None, here: Path | None) -> Kept:
        """For how long the folder keeps what is replaced."""
        database = self._opened(name, here)
        try:
            return retention.kept(database.view)
        finally:
            database.close()

    def keep(
        self, name: str | None, days: float | None, bytes_: int | None, here: Path | None
    ) -> Kept:
        """Set it; what is kept no longer goes at once. Raises UsageError below 0."""
        database = self._opened(name, here)
        try:
            with database.txn() as txn:
                said = retention.keep(txn, days, bytes_)
            while self._expire(database):
                pass
            return said
        finally:
            database.close()

    def _expire(self, database: Database) -> bool:
        with database.txn() as txn:
            return retention.expire(txn, self._clock.now_ns())

    def _opened(self, name: str | None, here: Path | None) -> Database:
        return self._open(self._arranging.meant(name, here))

    @contextmanager
    def _placed(
        self, name: str | None, path: str, here: Path | None
    ) -> Iterator[tuple[Database, bytes]]:
        folder, inner = placing.place(self._arranging, self._home, path, name, here)
        with closing(self._open(folder)) as database:
            yield database, inner


def undo(txn: Txn, path: bytes, to: str | None, now_ns: int) -> list[Undone]:
    """What Histories.undo does, in the caller's transaction; `path` from the folder's top."""
    number = paths.find(txn, path)
    found = None if number is None else tree.inode(txn, number)
    is_directory = found is not None and stat.S_ISDIR(found.mode)
    if found is not None and not is_directory and not stat.S_ISREG(found.mode):
        raise AlreadyExists(f"{_told(path)} is no file now: move that away first")
    known = [] if is_directory else _known(txn, path)
    if known:
        return [_put_back(txn, path, known[-1] if to is None else chosen(known, to), now_ns)]
    if to is not None:
        raise NotFound(f"{_told(path)} has no earlier versions")
    return _bring_back(txn, path, now_ns)


def _bring_back(txn: Txn, directory: bytes, now_ns: int) -> list[Undone]:
    """What was removed beneath `directory` in its last removal: one after the other, with no
    pause longer than a burst of saves has.
    """
    gone = histories.removed_beneath(txn, directory)
    back: list[Undone] = []
    last_ns = gone[0].changed_ns if gone else 0
    for one in gone:
        if last_ns - one.changed_ns > BURST_NS:
            break
        last_ns = one.changed_ns
        if paths.find(txn, one.path) is None:
            back.append(_put_back(txn, one.path, _known(txn, one.path)[-1], now_ns))
    if not back:
        raise NotFound(f"{_told(directory)} has no earlier versions, and nothing was removed")
    return sorted(back)


def _put_back(txn: Txn, path: bytes, back: Named, now_ns: int) -> Undone:
    version = back.version
    parts = {}
    for piece in versions.held(txn, version):  # it may be one large hole
        part = versions.read_piece(txn, version, piece)
        parts[piece] = part if any(part) else b""
    number = paths.find(txn, path)
    made = number is None
    if number is None:
        number = _made(txn, path, version.mode, now_ns)
    gone = {n: b"" for n in content.lengths(txn, number) if n not in parts}
    new = content.Save(version.size, now_ns, now_ns, parts | gone, UNDO)
    content.save(txn, number, new)
    mode = version.mode
    if made:  # as cp does where it can't keep the owner
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    tree.change(txn, number, tree.Fields(mode=mode), now_ns)
    return Undone(_told(path), back.name, made)


def _made(txn: Txn, path: bytes, mode: int, now_ns: int) -> InodeNumber:
    """A new file, in directories that are made where they are missing; the owner of the folder's
    top owns them.
    """
    top = tree.inode(txn, ROOT)
    owner = (0, 0) if top is None else (top.uid, top.gid)
    *above, name = whole.parts(path)
    parent = whole.make_directories(txn, above, whole.Maker(*owner, now_ns))
    return tree.create(txn, parent, name, tree.New(mode, *owner), now_ns).number


def of(view: View, path: bytes) -> list[Named]:
    """What Histories.of gives; `path` from the folder's top."""
    known = _known(view, path)
    if not known:
        raise NotFound(f"{_told(path)} has no earlier versions")
    return known


def _known(view: View, path: bytes) -> list[Named]:
    return [Named(name.decode(), one) for name, one in histories.named(view, path).items()]


def chosen(known: list[Named], text: str) -> Named:
    """The version of that name, or the one whose name begins so. Raises NotFound, UsageError."""
    exact = [one for one in known if one.name == text]
    found = exact or [one for one in known if one.name.startswith(text)]
    if not found:
        raise NotFound(f"no version is called {text}: geniuzfs history shows them")
    if len(found) > 1:
        raise UsageError(f"{len(found)} versions begin with {text}: write more of the name")
    return found[0]


def _now(view: View, path: bytes) -> bytes:
    number = paths.find(view, path)
    found = None if number is None else tree.inode(view, number)
    if found is None or not stat.S_ISREG(found.mode):
        return b""
    return content.read(view, found.number).ljust(found.size, b"\0")


def _told(path: bytes) -> str:
    return "/" + path.decode("utf-8", "surrogateescape")
