"""Folders as people arrange them: found, meant, chosen, made and put away.

Hides: in which order it is decided which folder a command means. Promises: a name that matches
nothing is an error, wherever the name stood.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from geniuzfs.config import Config
from geniuzfs.errors import GeniuzError, NotFound, UsageError
from geniuzfs.folders import lifecycle, moving, places, registry
from geniuzfs.folders.registry import FIRST, Folder, Seen
from geniuzfs.model import FolderId
from geniuzfs.ports import Clock
from geniuzfs.store.copying import Told

HERE = ".geniuz-folder"
"""A file that holds a folder's name: commands beneath its directory mean that folder."""

_LONGEST = 1024
"""Bytes of such a file that are read: a name has 255."""

_PAUSES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
"""Seconds before looking again for a folder that is on its way: seen nowhere for milliseconds."""

_log = logging.getLogger(__name__)


class Arranging:
    """The use cases about folders themselves, on the data directory that `config` names."""

    def __init__(self, config: Config, clock: Clock) -> None:
        self._home = config.home
        self._owner = config.owner
        self._database = config.database
        self._clock = clock
        self._told: set[str] = set()

    def seen(self) -> Seen:
        """What there is now, when moves that were interrupted are finished or undone. What is
        not listed is told in the log, once.
        """
        seen = self._look()
        warnings = set(seen.warnings())
        for line in sorted(warnings - self._told):
            _log.warning("%s", line)
        self._told = warnings
        return seen

    def _look(self) -> Seen:
        """A folder that another process moves at this moment may be seen neither where it was nor
        where it goes: then look again.
        """
        for pause in _PAUSES:
            before = moving.trace(self._home)
            seen = self._look_once()
            after = moving.trace(self._home)
            moved = before.ids | after.ids
            if seen.waiting or (moved <= seen.ids() and (moved or before == after)):
                return seen
            time.sleep(pause)
        return self._look_once()

    def _look_once(self) -> Seen:
        waiting = moving.recover(self._home)
        return registry.look(self._home, self._clock)._replace(waiting=waiting)

    def directories(self) -> list[Path]:
        """Where a folder would be seen if one came. Raises StoreDamaged."""
        return list(registry.directories(self._home, places.read(self._home).added))

    def meant(self, name: str | None, here: Path | None) -> Folder:
        """The folder that a command means, run in the directory `here`: the one called `name`,
        else the one that was `chosen`, else "My memory". Raises as `chosen` does.
        """
        seen = self.seen()
        if name is not None:
            return registry.named(seen, name)
        return self._chosen(seen, here) or self._first(seen)

    def chosen(self, here: Path | None) -> Folder | None:
        """The first that applies of GENIUZ_DB, a file `.geniuz-folder` in the directory `here` or
        above, and `use`; None where nobody has chosen. Raises NotFound, TwoCopies, and UsageError
        for a file that holds no name.
        """
        return self._chosen(self.seen(), here)

    def given(self) -> Folder | None:
        """The folder of GENIUZ_DB, where it is none of those that are found anyhow."""
        if self._database is None:
            return None
        seen = self.seen()
        try:
            folder = self._at(seen, self._database)
        except GeniuzError:  # commands that need it say so
            return None
        known = {one.identity.id for one in seen.folders}
        blocked = {copies[0].identity.id for copies in seen.blocked}
        return None if folder.identity.id in known | blocked else folder

    def _chosen(self, seen: Seen, here: Path | None) -> Folder | None:
        if self._database is not None:
            return self._at(seen, self._database)
        written = None if here is None else _written(here)
        if written is not None:
            path, name = written
            with _naming(path):
                return registry.named(seen, name)
        used = places.read(self._home).used
        if used is not None:
            with _naming("what geniuzfs folder use has chosen"):
                return registry.identified(seen, used)
        return None

    def called(self, name: str) -> Folder:
        """The folder of that name, or, where `name` has a slash, the one at that path, which may
        be one of two copies. Raises NotFound and TwoCopies.
        """
        seen = self.seen()
        if "/" not in name:
            return registry.named(seen, name)
        path = Path(name).absolute()
        copies = (copy for copies in seen.blocked for copy in copies)
        for folder in (*seen.folders, *copies):
            if path in (folder.path, folder.path.parent):
                return folder
        for left_out in seen.left_out:
            if path in (left_out.path, left_out.path.parent):
                return registry.at(left_out.path, self._home, self._clock)
        raise NotFound(f"no folder is at {path}")

    def new(self, name: str, within: Path | None = None) -> Folder:
        """Make a folder, in the directory `within` or the data directory. Raises UsageError and
        AlreadyExists for the name, NotFound and UnsafePlace for the place.
        """
        return lifecycle.new(self._home, self._clock, self._owner, name, within)

    def add(self, directory: Path) -> list[Folder]:
        """Look for folders in `directory` too; those that are in it. Raises AlreadyExists when
        one is here already, NotFound when there is none, and UnsafePlace.
        """
        return lifecycle.add(self._home, self._clock, directory)

    def rename(self, folder: Folder, name: str) -> Folder:
        """Raises UsageError and AlreadyExists for the name."""
        return lifecycle.rename(self._home, self._clock, folder, name)

    def describe(self, folder: Folder, text: str) -> Folder:
        return lifecycle.describe(folder, text)

    def use(self, folder: Folder | None) -> None:
        """Have commands mean this folder where nothing nearer says otherwise; None: no longer."""
        id_ = None if folder is None else folder.identity.id
        places.change(self._home, lambda known: known._replace(used=id_))

    def pin(self, folder: Folder, *, pinned: bool) -> None:
        """Have the folder come first in every list, after those pinned before; or no longer."""
        id_ = folder.identity.id

        def changed(known: places.Places) -> places.Places:
            others = tuple(one for one in known.pinned if one != id_)
            again = known.pinned if id_ in known.pinned else (*others, id_)
            return known._replace(pinned=again if pinned else others)

        places.change(self._home, changed)

    def pinned(self) -> tuple[FolderId, ...]:
        """The pinned folders, in the order of pinning."""
        return places.read(self._home).pinned

    def move(self, folder: Folder, into: Path, told: Told = lambda done, of: None) -> Folder:
        """Move the folder's directory into the directory `into`, on any local disk. `told`: how
        much of it is copied, and of how much, where that is another one. Raises
        FolderError, AlreadyExists, NotFound and UnsafePlace, and Busy when it is written to
        without end.
        """
        return moving.move(self._home, folder, into, told)

    def archive(self, folder: Folder) -> Path:
        """Put the folder away, whole; the directory where it is then. Raises FolderError."""
        return lifecycle.archive(self._home, folder)

    def archived(self) -> list[Folder]:
        """The folders that were put away, by name."""
        return lifecycle.archived(self._home, self._clock)

    def restore(self, name: str) -> Folder:
        """Bring a folder back, by name or by path. Raises NotFound, UsageError where several
        have the name, and AlreadyExists where the folder or its name is here already.
        """
        chosen = Path(name).absolute() if "/" in name else name
        return lifecycle.restore(self._home, self._clock, chosen)

    def _first(self, seen: Seen) -> Folder:
        """That of the data directory; where it has none, the one that has come back elsewhere."""
        path = registry.file_in(self._home)
        if not path.exists() and registry.is_called(seen, FIRST):
            return registry.named(seen, FIRST)
        return self._at(seen, path)

    def _at(self, seen: Seen, path: Path) -> Folder:
        copies = (copy for copies in seen.blocked for copy in copies)
        for folder in (*seen.folders, *copies):
            if folder.path == path or (path.exists() and folder.path.samefile(path)):
                return registry.identified(seen, folder.identity.id)
        return registry.at(path, self._home, self._clock)


@contextmanager
def _naming(source: Path | str) -> Iterator[None]:
    """What was not found within it was named by `source`."""
    try:
        yield
    except NotFound as error:
        raise NotFound(f"{source}: {error}") from error


def _written(here: Path) -> tuple[Path, str] | None:
    """The nearest file that names a folder, and the name."""
    for directory in (here, *here.parents):
        path = directory / HERE
        try:
            with path.open("rb") as file:
                name = file.read(_LONGEST).decode().strip()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            raise UsageError(f"{path} can't be read: {error}") from error
        if not name or "\n" in name:
            raise UsageError(f"{path} must hold the name of a folder, and nothing else")
        return path, name
    return None
