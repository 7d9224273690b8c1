"""Folders are made, named, put away and brought back; nothing is deleted.

Hides: directories and their names. Promises: whoever has the folder open meanwhile loses nothing:
its directory is renamed whole, with the log beside the database. Refuses: to archive the first
folder, which stays where it is, and whatever would give two folders one name.
"""

import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from geniuzfs import durable
from geniuzfs.errors import AlreadyExists, Busy, FolderError, GeniuzError, NotFound, UsageError
from geniuzfs.folders import mounts, places, registry
from geniuzfs.folders.registry import ARCHIVE, EARLIER, FILE, Folder, Seen, file_in
from geniuzfs.model import NAME_MAX
from geniuzfs.ports import Clock
from geniuzfs.store import meta, tree
from geniuzfs.store.connection import Database

_SUFFIXES = ("", "-wal", "-shm", "-journal", "-learner")
_TAKEN = {ARCHIVE, "models", places.FILE, "mount.log", "embed.log"}
_TAKEN |= {f"{file}{suffix}" for file in (FILE, EARLIER) for suffix in _SUFFIXES}
"""Names in the data directory of something else, there or not yet: SQLite opens no database beside
a directory that is called as its log.
"""

_WAIT_SECONDS = 5.0


def new(
    home: Path, clock: Clock, owner: tuple[int, int], name: str, within: Path | None = None
) -> Folder:
    """A folder of `owner`, user and group, in a directory of its own: in the data directory, or
    `within` another, so that it is found. Raises UsageError and AlreadyExists for the name.
    """
    check_name(name)
    parent = home if within is None else existing(within)
    with places.alone(home):
        check_free(registry.look(home, clock), name)
        directory = free_directory(parent, name)
        with durable.translating(directory):
            directory.mkdir(mode=0o700)
        database = Database.open(directory / FILE, create=True)
        try:
            with database.txn() as txn:
                identity = meta.identify(txn, registry.fresh(name, clock))
                tree.make_root(txn, tree.New(stat.S_IFDIR | 0o755, *owner), clock.now_ns())
        finally:
            database.close()
        durable.sync(parent)
        make_read(home, directory)
    return Folder(directory / FILE, identity)


def add(home: Path, clock: Clock, directory: Path) -> list[Folder]:
    """Read `directory` as well, and tell the folders in it. Raises AlreadyExists when it holds
    one that is here already, or one with the name of another, and NotFound when it holds none.
    """
    place = existing(directory)
    with places.alone(home):
        known = places.read(home)
        seen = registry.look(home, clock)
        found = [registry.at(path, home, clock) for path in registry.files(place, ())]
        if place == home.resolve() or place in known.added:
            raise AlreadyExists(f"{place} is read already")
        if not found:
            raise NotFound(
                f"{place} holds no folder, nor does a directory in it: geniuzfs folder new"
                f" NAME --at '{place}' makes one there"
            )
        for folder in found:
            _check_new(seen, folder)
        places.record(home, known._replace(added=(*known.added, place)))
    return found


def rename(home: Path, clock: Clock, folder: Folder, name: str) -> Folder:
    """Give the folder another name; its directory keeps its own. Raises UsageError and
    AlreadyExists for the name.
    """
    check_name(name)
    with places.alone(home):
        seen = registry.look(home, clock)
        others = [one for one in seen.folders if one.identity.id != folder.identity.id]
        check_free(seen._replace(folders=others), name)
        _write(folder, "name", name)
    return folder._replace(identity=folder.identity._replace(name=name))


def describe(folder: Folder, text: str) -> Folder:
    """Give the folder a description."""
    _write(folder, "description", text)
    return folder._replace(identity=folder.identity._replace(description=text))


def archive(home: Path, folder: Folder) -> Path:
    """Put the folder's directory into `archive/` beside itself; where it is now. Raises
    FolderError for the first folder and for a link.
    """
    directory = movable(home, folder)
    within = directory.parent / ARCHIVE
    with places.alone(home), durable.translating(within):
        within.mkdir(mode=0o700, exist_ok=True)
        put = free_directory(within, directory.name)
        with held(folder.path):
            durable.rename(directory, put)
    empty_log(file_in(put))
    return put


def archived(home: Path, clock: Clock) -> list[Folder]:
    """What is in the archives beside the folders that are read; what can't be read is left out."""
    known = places.read(home)
    found = []
    for path in _archived_files(home, known.added):
        with suppress(GeniuzError, OSError):
            found.append(registry.at(path, home, clock))
    return sorted(found, key=lambda folder: (folder.name.casefold(), folder.path))


def restore(home: Path, clock: Clock, name: str | Path) -> Folder:
    """Bring an archived folder back, by its name or, where several have it, its directory.
    Raises NotFound, UsageError for several, AlreadyExists when its name is taken or it is here.
    """
    with places.alone(home):
        folder = _chosen(archived(home, clock), name)
        _check_new(registry.look(home, clock), folder)
        put = folder.path.parent
        directory = free_directory(put.parent.parent, put.name)
        with held(folder.path):
            durable.rename(put, directory)
    empty_log(file_in(directory))
    return folder._replace(path=file_in(directory))


def check_name(name: str) -> None:
    """Raises UsageError for what can't be a folder's name: a directory of the mount has it, and
    file managers and editors make names that begin with a dot.
    """
    if (
        not name.strip()
        or name.startswith(".")
        or "/" in name
        or not name.isprintable()
        or len(name.encode()) > NAME_MAX
    ):
        raise UsageError(
            f"{name!r} can't be the name of a folder: it must be printable, have no slash, not"
            f" begin with a dot and take at most {NAME_MAX} bytes"
        )


def check_free(seen: Seen, name: str) -> None:
    """Raises AlreadyExists where a folder has that name."""
    copies = [copy for copies in seen.blocked for copy in copies]
    for folder in (*seen.folders, *copies):
        if registry.same_name(folder.name, name):
            raise AlreadyExists(f"{folder.name!r} is the name of {folder.path}: choose another")


def free_directory(within: Path, name: str) -> Path:
    """A directory that is not there yet, called as the folder is or nearly so."""
    for number in count(1):
        called = name if number == 1 else f"{name.encode()[:240].decode(errors='ignore')}~{number}"
        if called not in _TAKEN and not (within / called).exists():
            return within / called
    raise AssertionError("numbers do not end")


def movable(home: Path, folder: Folder) -> Path:
    """The directory of a folder that may be moved. Raises FolderError."""
    directory = folder.path.parent
    if directory == home:
        raise FolderError(f"{folder.name!r} is the first folder and stays in {home}")
    if folder.path.is_symlink() or directory.is_symlink():
        raise FolderError(f"{folder.path} is reached by a link: move what it points to, by hand")
    # Those would go along, and into an archive beneath which nobody looks for them.
    others = (path for path in registry.files(directory, ()) if path.parent != directory)
    if any(others) or any(registry.files(directory / ARCHIVE, ())):
        raise FolderError(f"{directory} holds other folders too: move those away first")
    return directory


def make_read(home: Path, directory: Path) -> None:
    """Have the folder in `directory` found: for who is `alone`."""
    known = places.read(home)
    if directory.parent not in (home, *known.added) and directory not in known.added:
        places.record(home, known._replace(added=(*known.added, directory)))


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Within it nobody writes to the database, and its log is nearly empty. Raises Busy."""
    database = Database.open(path, wait=_WAIT_SECONDS)
    try:
        with suppress(Busy):  # a reader of an old state: the log goes along
            database.checkpoint(hold_writers=True)
        with database.txn():
            yield
    finally:
        database.close()


def empty_log(path: Path) -> None:
    """SQLite leaves the log of a database that was moved while it was open; this takes it in."""
    Database.open(path).close()


def existing(given: Path) -> Path:
    """The directory, resolved. Raises NotFound and UnsafePlace."""
    mounts.check_safe(given)
    place = given.resolve()
    mounts.check_safe(place)
    if not place.is_dir():
        raise NotFound(f"{given} is no directory")
    return place


def _check_new(seen: Seen, folder: Folder) -> None:
    """Raises AlreadyExists when the folder is here, or its name."""
    for other in (*seen.folders, *(copy for copies in seen.blocked for copy in copies)):
        if other.identity.id == folder.identity.id:
            raise AlreadyExists(
                f"{folder.path} is the folder {other.name!r}, which is here as {other.path}"
            )
    check_free(seen, folder.name)


def _write(folder: Folder, key: str, value: str) -> None:
    database = Database.open(folder.path, wait=_WAIT_SECONDS)
    try:
        with database.txn() as txn:
            meta.put(txn, key, value)
    finally:
        database.close()


def _archived_files(home: Path, added: tuple[Path, ...]) -> Iterator[Path]:
    table = mounts.mounts()
    for place in (home, *added):
        if mounts.unsafe(place, table) is None:
            for name in (FILE, EARLIER):
                found = sorted((place / ARCHIVE).glob(f"*/{name}"))
                yield from (path for path in found if path == file_in(path.parent))
            alone = file_in(place.parent / ARCHIVE / place.name)
            if alone.exists() and place.parent not in (home, *added):
                yield alone


def _chosen(among: list[Folder], name: str | Path) -> Folder:
    if isinstance(name, Path):
        chosen = [one for one in among if name in (one.path, one.path.parent)]
    else:
        chosen = [one for one in among if registry.same_name(one.name, name)]
    if len(chosen) > 1:
        where = " and ".join(f"'{one.path.parent}'" for one in chosen)
        raise UsageError(f"several archived folders are called {name!r}: restore one of {where}")
    if not chosen:
        known = ", ".join(repr(one.name) for one in among)
        raise NotFound(f"no archived folder is called {str(name)!r}; there is {known or 'none'}")
    return chosen[0]
