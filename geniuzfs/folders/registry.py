"""Which folders there are: the data directory's own file and those one level down, there and in
the directories that were added on purpose.

Hides: how they are found and told apart. Promises: a folder is known by its identity, wherever it
lies; names are unique, ignoring case; of two copies of one folder neither is used. Refuses: links,
and places where a database could lose data (folders.mounts).
"""

import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from geniuzfs.errors import (
    AlreadyExists,
    FolderError,
    GeniuzError,
    NotFound,
    StoreDamaged,
    StoreFault,
    TooNew,
    TwoCopies,
    Unfinished,
    UnsafePlace,
)
from geniuzfs.folders import mounts, places
from geniuzfs.model import FolderId, Identity
from geniuzfs.ports import Clock
from geniuzfs.store import copying, meta
from geniuzfs.store.connection import Database

FILE = "memory.db"
EARLIER = "station.db"
"""What Geniuz called it at first, and reads still where there is no memory.db: so it keeps its
name, or Geniuz would begin anew beside it, and who has it open would lose its log.
"""
FIRST = "My memory"
ARCHIVE = "archive"
"""The directory beside a folder in which archived ones lie, one level below where reading goes."""

_ID_LONGEST = 100
"""Characters: a UUID has 36."""

_DAMAGE = (StoreDamaged, StoreFault, TooNew)
"""Why a folder that is there can't be used."""


class Folder(NamedTuple):
    """A folder that was found: its file and what that says about itself."""

    path: Path
    identity: Identity

    @property
    def name(self) -> str:
        return self.identity.name


class LeftOut(NamedTuple):
    """A file that might be a folder's and is not listed, and why, in one line; `name`: what the
    folder would be called if it did not say, `kind`: the error of whoever names it.
    """

    path: Path
    reason: str
    name: str = ""
    kind: type[GeniuzError] = FolderError


class Waiting(NamedTuple):
    """A folder whose move was interrupted and can't be finished or undone yet, and why."""

    name: str
    reason: str


class Seen(NamedTuple):
    """What there is. `folders`: those that can be used, the pinned ones first, then "My memory",
    then by name; `blocked`: the copies of each folder that is there more than once.
    """

    folders: list[Folder]
    blocked: list[list[Folder]]
    left_out: list[LeftOut]
    waiting: Sequence[Waiting] = ()

    def ids(self) -> set[str]:
        """The folders that are there, usable or not."""
        return {one.identity.id for one in (*self.folders, *(each[0] for each in self.blocked))}

    def warnings(self) -> list[str]:
        """What is not listed, a line each."""
        copies = [f"{_twice(copies)}, so neither is used" for copies in self.blocked]
        left_out = [f"{one.path} is left out: {one.reason}" for one in self.left_out]
        return copies + left_out + [reason for _name, reason in self.waiting]


def look(home: Path, clock: Clock) -> Seen:
    """Every folder there is. A file without an identity is given one. Raises StoreDamaged where
    it is not known where to look.
    """
    known = places.read(home)
    found: dict[FolderId, list[Folder]] = {}
    left_out: list[LeftOut] = []
    for directory in directories(home, known.added):
        path = directory / FILE
        if path.is_dir() and not path.is_symlink():
            reason = "it is a directory and no database"
            left_out.append(LeftOut(path, reason, _given(path, home), StoreDamaged))
    for path in files(home, known.added):
        try:
            folder = Folder(path, _identity(path, home, clock))
        except (GeniuzError, OSError) as error:
            if path.exists():  # else it was moved or put away at this moment
                kind = type(error) if isinstance(error, GeniuzError) else StoreFault
                left_out.append(LeftOut(path, str(error), _given(path, home), kind))
            continue
        found.setdefault(folder.identity.id, []).append(folder)
    single = [copies[0] for copies in found.values() if len(copies) == 1]
    folders, clashing = _with_names_of_their_own(home, single)
    return Seen(
        sorted(folders, key=lambda folder: _order(folder, home, known.pinned)),
        [copies for copies in found.values() if len(copies) > 1],
        left_out + clashing,
    )


def named(seen: Seen, name: str) -> Folder:
    """The folder of that name, ignoring case. Raises TwoCopies when it is there twice, Unfinished
    when its move is, and NotFound: never another one.
    """
    for copies in seen.blocked:
        if any(same_name(copy.name, name) for copy in copies):
            raise TwoCopies(f"{_twice(copies)}: move one of them away")
    for folder in seen.folders:
        if same_name(folder.name, name):
            return folder
    for moving, reason in seen.waiting:
        if same_name(moving, name):
            raise Unfinished(reason)
    for path, reason, given, kind in seen.left_out:
        # What a move has left, or who writes just now, is no folder of that name.
        if issubclass(kind, _DAMAGE) and same_name(given, name):
            raise kind(f"{path} can't be used: {reason}")
    known = ", ".join(repr(folder.name) for folder in seen.folders)
    raise NotFound(f"no folder is called {name!r}; there is {known or 'none yet'}")


def is_called(seen: Seen, name: str) -> bool:
    """Whether a folder has that name, ignoring case, one that is there twice too."""
    copies = (copy for copies in seen.blocked for copy in copies)
    return any(same_name(one.name, name) for one in (*seen.folders, *copies))


def identified(seen: Seen, id_: FolderId) -> Folder:
    """The folder of that identity. Raises TwoCopies and NotFound."""
    for copies in seen.blocked:
        if copies[0].identity.id == id_:
            raise TwoCopies(f"{_twice(copies)}: move one of them away")
    for folder in seen.folders:
        if folder.identity.id == id_:
            return folder
    raise NotFound("the folder is gone")


def at(path: Path, home: Path, clock: Clock) -> Folder:
    """The folder whose file is at `path`. Raises NotFound and what opening it raises."""
    return Folder(path, _identity(path, home, clock))


def file_in(directory: Path) -> Path:
    """The file of the folder that is, or would be, in a directory."""
    path, earlier = directory / FILE, directory / EARLIER
    return earlier if earlier.is_file() and not path.exists() else path


def begin(home: Path, clock: Clock) -> None:
    """Make the data directory and its first folder where there is none, nor one of that name
    elsewhere, which would be left out from then on; twice at once is safe, and beside a restore.
    Raises UnsafePlace where there can be no directory.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UnsafePlace(f"{home} can't be the data directory: {error.strerror}") from error
    if file_in(home).exists():
        return
    with places.alone(home):
        if not file_in(home).exists() and not is_called(look(home, clock), FIRST):
            Database.open(home / FILE, create=True).close()
            _identity(home / FILE, home, clock)


def files(home: Path, added: Iterable[Path]) -> Iterator[Path]:
    """The files that may be folders', each once, however many places lead to it."""
    met = set()
    for directory in directories(home, added):
        try:
            path = file_in(directory)
            there = path.is_file() and not path.is_symlink()
            status = directory.stat()
        except OSError:
            continue
        if there and (status.st_dev, status.st_ino) not in met:
            met.add((status.st_dev, status.st_ino))
            yield path


def directories(home: Path, added: Iterable[Path]) -> Iterator[Path]:
    """Where such files are looked for, those one level down after the one above."""
    table = mounts.mounts()
    for place in (home, *added):
        for directory in (place, *_below(place, table)):
            # By name alone: a place that hangs must not be touched.
            if mounts.unsafe(directory, table) is None:
                yield directory


def same_name(one: str, other: str) -> bool:
    """Whether two names are the same, ignoring case and how accents are composed."""
    return _folded(one) == _folded(other)


def fresh(name: str, clock: Clock) -> Identity:
    """Who a new folder is."""
    made = datetime.fromtimestamp(clock.now_ns() / 1e9, UTC)
    return Identity(
        FolderId(str(uuid.uuid4()).upper()), name, "", made.strftime("%Y-%m-%d %H:%M:%S")
    )


def names_a_file(id_: FolderId) -> bool:
    """Whether it can be the name of one, as records of moves and replicas are called by it: who has
    made the database may have put anything there.
    """
    return 0 < len(id_) <= _ID_LONGEST and id_.isprintable() and id_[0] != "." and "/" not in id_


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _below(place: Path, table: list[mounts.Mount]) -> list[Path]:
    if mounts.unsafe(place, table) is not None:
        return []
    try:
        return sorted(path for path in place.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError:  # not there at the moment, or not ours to read
        return []


def _identity(path: Path, home: Path, clock: Clock) -> Identity:
    name = _given(path, home)
    database = Database.open(path)
    try:
        elsewhere = copying.moved_to(database.view)
        if elsewhere is not None:
            raise FolderError(f"it is what a move to {elsewhere} has left")
        if copying.backed_up_at(database.view) is not None:
            raise FolderError("it is a backup: geniuzfs restore makes a folder of it")
        known = meta.identity(database.view)
        if known is None:
            with database.txn() as txn:
                known = meta.identify(txn, fresh(name, clock))
    finally:
        database.close()
    if not names_a_file(known.id):
        raise FolderError(f"its identity {known.id[:_ID_LONGEST]!r} can't be one")
    if known.name in ("", ".", "..") or "/" in known.name or "\0" in known.name:
        return known._replace(name=name)
    return known


def _given(path: Path, home: Path) -> str:
    """What a folder is called that has not been given a name."""
    return FIRST if path.parent == home else path.parent.name


def _with_names_of_their_own(
    home: Path, folders: list[Folder]
) -> tuple[list[Folder], list[LeftOut]]:
    """Of those with one name, the one that had it first."""
    kept: dict[str, Folder] = {}
    clashing = []
    for folder in sorted(
        folders, key=lambda one: (one.path.parent != home, one.identity.created_at, one.path)
    ):
        first = kept.setdefault(_folded(folder.name), folder)
        if first is not folder:
            reason = f"it has the name of {first.path}: geniuzfs folder rename gives it another"
            clashing.append(LeftOut(folder.path, reason, kind=AlreadyExists))
    return list(kept.values()), clashing


def _order(folder: Folder, home: Path, pinned: tuple[FolderId, ...]) -> tuple[int, bool, str]:
    id_ = folder.identity.id
    rank = pinned.index(id_) if id_ in pinned else len(pinned)
    return rank, folder.path.parent != home, folder.name.casefold()


def _twice(copies: list[Folder]) -> str:
    where = " and ".join(str(copy.path) for copy in copies)
    return f"{copies[0].name!r} is there twice, as {where}"
