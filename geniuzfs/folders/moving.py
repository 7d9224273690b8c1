"""A folder is moved to another directory, on the same disk or another.

Hides: that a move takes several steps, and the record of each in the data directory. Promises:
killed at any step, the next run finishes the move or undoes it: no folder is lost, and never are
two of it live. On one disk the directory is renamed. To another the database is copied and
compared while writers are held off; then the original is sealed, in one transaction, which
decides that the copy is the folder; then it goes to `archive/`, with whatever else its directory
held.
Refuses to decide while the original is out of reach and the record does not say that it is sealed.
"""

import errno
import json
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from geniuzfs import durable
from geniuzfs.errors import (
    AlreadyExists,
    Busy,
    GeniuzError,
    IntoItself,
    StoreDamaged,
    StoreFault,
    Unfinished,
)
from geniuzfs.folders import lifecycle, places
from geniuzfs.folders.registry import ARCHIVE, FILE, Folder, Waiting, file_in
from geniuzfs.model import FolderId
from geniuzfs.store import copying, meta
from geniuzfs.store.connection import Database
from geniuzfs.store.copying import Told

DIRECTORY = ".moves"
_WAIT_SECONDS = 5.0


class Step(StrEnum):
    """How far a move is at least."""

    RENAMING = "renaming"
    COPYING = "copying"
    SEALING = "sealing"
    SEALED = "sealed"


class Move(NamedTuple):
    """The record. Directories: the folder's own before and after, and where the original of a
    copy is kept.
    """

    id: FolderId
    name: str
    origin: Path
    target: Path
    archived: Path
    step: Step


def move(home: Path, folder: Folder, into: Path, told: Told = lambda done, of: None) -> Folder:
    """Have the folder's directory in the directory `into`. Raises FolderError for the first
    folder and for links, AlreadyExists when `into` has a directory of that name, and Busy. `told`:
    how much is copied, where it is.
    """
    origin = lifecycle.movable(home, folder)
    place = lifecycle.existing(into)
    with places.alone(home):
        target = place / origin.name
        if place.is_relative_to(origin):
            raise IntoItself(f"{place} lies in the folder {folder.name!r} itself")
        if target.exists() or (home / DIRECTORY / _file(folder.identity.id)).exists():
            raise AlreadyExists(f"{target} is there already, or a move is unfinished")
        kept = lifecycle.free_directory(origin.parent / ARCHIVE, origin.name)
        begun = Move(folder.identity.id, folder.name, origin, target, kept, Step.RENAMING)
        _record(home, begun)
        try:
            _carry_out(home, begun, told)
        except GeniuzError:
            with suppress(GeniuzError):  # what can't be undone now is by the next run
                _settle(home, _read(home / DIRECTORY / _file(begun.id)))
            raise
    return folder._replace(path=file_in(target))


class Trace(NamedTuple):
    """The moves on record at a moment: two that are equal mean that none began or ended between."""

    changed_ns: int
    ids: frozenset[str]


def trace(home: Path) -> Trace:
    """Which folders are on their way, and when that changed last."""
    try:
        changed_ns = (home / DIRECTORY).stat().st_mtime_ns
    except OSError:  # nothing was ever moved
        return Trace(0, frozenset())
    return Trace(changed_ns, frozenset(path.stem for path in _records(home)))


def recover(home: Path) -> list[Waiting]:
    """Finish or undo what was interrupted; what can't be yet. A move that goes on at this moment
    is left alone, or waited for where it is nearly done.
    """
    if not any(_records(home)):
        return []
    try:
        with places.alone(home, wait=_is_short(home)):
            return list(_settled(home))
    except Busy:
        return []


def _settled(home: Path) -> Iterator[Waiting]:
    for path in _records(home):
        name = path.stem
        try:
            found = _read(path)
            name = found.name
            _settle(home, found)
        except GeniuzError as error:
            yield Waiting(name, str(error))


def _carry_out(home: Path, begun: Move, told: Told) -> None:
    lifecycle.make_read(home, begun.target)
    try:
        with lifecycle.held(file_in(begun.origin)):
            durable.rename(begun.origin, begun.target)
    except StoreFault as error:
        if not (isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EXDEV):
            raise
        begun = _copy(home, begun, told)
    _finish(home, begun)


def _copy(home: Path, begun: Move, told: Told) -> Move:
    begun = _record(home, begun._replace(step=Step.COPYING))
    path, staged = file_in(begun.origin), _staged(begun)
    with durable.translating(begun.target):
        begun.target.mkdir(mode=0o700)
    original = Database.open(path, wait=_WAIT_SECONDS)
    try:
        with suppress(Busy):  # a reader of an old state: the copy has what is in the log
            original.checkpoint(hold_writers=True)
        with original.txn() as txn:
            copying.copy(path, staged, told)
            with durable.translating(staged):
                staged.chmod(path.stat().st_mode & 0o777)
            durable.sync(staged)
            durable.sync(begun.target)
            durable.sync(begun.target.parent)
            begun = _record(home, begun._replace(step=Step.SEALING))
            copying.seal(txn, str(begun.target))
        durable.sync(original.wal_path)
    finally:
        original.close()
    return _record(home, begun._replace(step=Step.SEALED))


def _settle(home: Path, found: Move) -> None:
    """Finish or undo. Raises Unfinished when that can't be decided, or not be done, yet."""
    if found.step is Step.RENAMING:
        if _holds(found.origin, found.id):
            _undo(home, found)
        elif _holds(found.target, found.id):
            _finish(home, found)
        else:
            raise Unfinished(_out_of_reach(found, found.origin))
    elif _is_final(found):
        _finish(home, found)
    else:
        _undo(home, found)


def _is_final(found: Move) -> bool:
    """Whether the copy is the folder."""
    for directory in (found.origin, found.archived):
        if _holds(directory, found.id):
            return _moved_to(file_in(directory)) is not None
    if found.step is not Step.SEALED:
        raise Unfinished(_out_of_reach(found, found.origin))
    return True


def _finish(home: Path, found: Move) -> None:
    if found.step is Step.RENAMING:
        lifecycle.empty_log(file_in(found.target))
    else:
        staged = _staged(found)
        if staged.is_file():
            if file_in(found.target).exists():  # somebody has put something there meanwhile
                raise Unfinished(f"the copy at {staged} is final: move away what is beside it")
            durable.rename(staged, found.target / FILE)
        elif not _holds(found.target, found.id):
            raise Unfinished(_out_of_reach(found, found.target))
        if _holds(found.origin, found.id):
            with durable.translating(found.archived):
                found.archived.parent.mkdir(mode=0o700, exist_ok=True)
            durable.rename(found.origin, found.archived)
        if not _holds(found.archived, found.id):
            raise Unfinished(_out_of_reach(found, found.origin))
        lifecycle.empty_log(file_in(found.archived))
    _forget(home, found, found.origin)


def _undo(home: Path, found: Move) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):  # a disk that is away keeps a file that nobody will read
            _staged(found, suffix).unlink(missing_ok=True)
    with suppress(OSError):  # not made yet, or somebody has put something there
        found.target.rmdir()
    _forget(home, found, found.target)


def _staged(found: Move, suffix: str = "") -> Path:
    """The copy, until it is the folder. By a name of its own: undone, nobody else's copy goes."""
    return found.target / f"{FILE}.{found.id}.moving{suffix}"


def _forget(home: Path, found: Move, left: Path) -> None:
    """The record goes, and `left` is no place any more."""
    known = places.read(home)
    if left in known.added:
        places.record(home, known._replace(added=tuple(p for p in known.added if p != left)))
    durable.remove(home / DIRECTORY / _file(found.id))


def _holds(directory: Path, id_: FolderId) -> bool:
    """Whether the folder of that identity lies there, sealed or not."""
    path = file_in(directory)
    if not path.is_file():
        return False
    database = Database.open(path)
    try:
        known = meta.identity(database.view)
    finally:
        database.close()
    return known is not None and known.id == id_


def _moved_to(path: Path) -> str | None:
    database = Database.open(path)
    try:
        return copying.moved_to(database.view)
    finally:
        database.close()


def _out_of_reach(found: Move, directory: Path) -> str:
    return (
        f"the move of {found.name!r} from {found.origin} to {found.target} is unfinished:"
        f" it goes on when {directory} is there"
    )


def _records(home: Path) -> list[Path]:
    return sorted((home / DIRECTORY).glob("*.json"))


def _is_short(home: Path) -> bool:
    """Whether all moves on record are nearly done, if another process is at them."""
    for path in _records(home):
        with suppress(GeniuzError):
            if _read(path).step is Step.COPYING:
                return False
    return True


def _file(id_: FolderId) -> str:
    return f"{id_}.json"


def _record(home: Path, found: Move) -> Move:
    directory = home / DIRECTORY
    with durable.translating(directory):
        directory.mkdir(mode=0o700, exist_ok=True)
    durable.sync(home)
    kept = {key: str(value) for key, value in found._asdict().items()}
    durable.write(directory / _file(found.id), json.dumps(kept, indent=2) + "\n")
    return found


def _read(path: Path) -> Move:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return Move(
            FolderId(kept["id"]),
            kept["name"],
            Path(kept["origin"]),
            Path(kept["target"]),
            Path(kept["archived"]),
            Step(kept["step"]),
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StoreDamaged(f"{path} makes no sense: mend it or remove it: {error!r}") from error
