"""Which folders there are: the data directory's own file and those one level down."""

import logging
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from geniuzfs.errors import GeniuzError, NotFound
from geniuzfs.model import FolderId, Identity
from geniuzfs.ports import Clock
from geniuzfs.store import meta
from geniuzfs.store.connection import Database

FILE = "memory.db"
FIRST = "My memory"

_log = logging.getLogger(__name__)


class Folder(NamedTuple):
    """A folder that was found: its file and what that says about itself."""

    path: Path
    identity: Identity

    @property
    def name(self) -> str:
        return self.identity.name


def found(home: Path, clock: Clock) -> list[Folder]:
    """Every folder that can be read, the data directory's own first, then by name.

    Left out, with a warning: what can't be read, and what has the name or the
    identity of one that is listed already. A file without an identity is given one.
    """
    listed: list[Folder] = []
    for path in _files(home):
        try:
            folder = Folder(path, _identity(path, home, clock))
        except GeniuzError as error:
            _log.warning("%s is left out: %s", path, error)
            continue
        twin = next((other for other in listed if _clash(folder, other)), None)
        if twin is None:
            listed.append(folder)
        else:
            _log.warning("%s is left out: it has the name or identity of %s", path, twin.path)
    return sorted(listed, key=lambda folder: (folder.path.parent != home, folder.name.casefold()))


def named(folders: list[Folder], name: str) -> Folder:
    """The folder of that name, ignoring case. Raises NotFound, never another one."""
    for folder in folders:
        if folder.name.casefold() == name.casefold():
            return folder
    known = ", ".join(repr(folder.name) for folder in folders)
    raise NotFound(f"no folder is called {name!r}; there is {known or 'none yet'}")


def begin(home: Path, clock: Clock) -> None:
    """Make the data directory and its first folder where there is none; twice at once is safe."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (home / FILE).exists():
        Database.open(home / FILE, create=True).close()
        _identity(home / FILE, home, clock)


def _files(home: Path) -> Iterator[Path]:
    if (home / FILE).is_file():
        yield home / FILE
    for directory in sorted(home.iterdir()) if home.is_dir() else ():
        if directory.is_dir() and not directory.is_symlink() and (directory / FILE).is_file():
            yield directory / FILE


def _identity(path: Path, home: Path, clock: Clock) -> Identity:
    name = FIRST if path.parent == home else path.parent.name
    database = Database.open(path)
    try:
        known = meta.identity(database.view)
        if known is None:
            with database.txn() as txn:
                known = meta.identify(txn, _fresh(name, clock))
    finally:
        database.close()
    if known.name in ("", ".", "..") or "/" in known.name or "\0" in known.name:
        return known._replace(name=name)
    return known


def _fresh(name: str, clock: Clock) -> Identity:
    made = datetime.fromtimestamp(clock.now_ns() / 1e9, UTC)
    return Identity(
        FolderId(str(uuid.uuid4()).upper()), name, "", made.strftime("%Y-%m-%d %H:%M:%S")
    )


def _clash(one: Folder, other: Folder) -> bool:
    return one.identity.id == other.identity.id or one.name.casefold() == other.name.casefold()
