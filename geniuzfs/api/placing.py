"""Which file of which folder a path on the command line means.

Hides: that a mount shows one folder or all of them. Promises: a path beneath a mount of this data
directory, there or removed, means the file of that folder; any other, and with a folder's name
each that is not absolute, is counted from the top of the folder that is meant. Refuses: to touch
what the path names.
"""

from pathlib import Path

from geniuzfs import disk
from geniuzfs.api.arranging import Arranging
from geniuzfs.errors import NotFound, UsageError
from geniuzfs.folders import mounts, registry
from geniuzfs.folders.registry import Folder, Seen
from geniuzfs.model import FOLDER_ATTRIBUTE


def place(
    arranging: Arranging, home: Path, path: str, name: str | None, here: Path | None
) -> tuple[Folder, bytes]:
    """The folder, and the path from its top. Raises NotFound, UsageError for a path that leads out
    of the folder or into another than `name`, and what Arranging.meant does.
    """
    found = None if name is not None and not path.startswith("/") else _beneath(home, path, here)
    if found is None:
        return arranging.meant(name, here), _inner(path, path.split("/"))
    mountpoint, parts = found
    folder = _alone(arranging.seen(), mountpoint)
    if folder is None:
        if not parts:
            raise UsageError(f"{path} is the mount of all folders: name what is in one of them")
        folder, parts = registry.named(arranging.seen(), parts[0]), parts[1:]
    if name is not None and not registry.same_name(folder.name, name):
        raise UsageError(f"{path} is in the folder {folder.name!r}, not in {name!r}")
    return folder, _inner(path, parts)


def _beneath(home: Path, path: str, here: Path | None) -> tuple[Path, list[str]] | None:
    """The mount that it is in, and the names that lead to it from there; None: it is in none."""
    given = Path(path) if here is None else here / path
    targets = [mount.target for mount in mounts.ours(home)]
    if not targets or not given.is_absolute():
        return None
    try:
        # Of a link the link, not what it points to.
        whole = given.parent.resolve() / given.name if given.name not in ("", "..") else None
        whole = given.resolve() if whole is None else whole
    except OSError as error:
        raise NotFound(f"{path} can't be looked up: {error.strerror}") from error
    found = max((each for each in targets if whole.is_relative_to(each)), default=None, key=_depth)
    return None if found is None else (found, list(whole.relative_to(found).parts))


def _depth(path: Path) -> int:
    return len(path.parts)


def _alone(seen: Seen, mountpoint: Path) -> Folder | None:
    """The one folder that is mounted there; None where there are all of them. Raises NotFound."""
    id_ = disk.attribute(bytes(mountpoint), FOLDER_ATTRIBUTE)
    if id_ is None:
        return None
    for folder in seen.folders:
        if folder.identity.id.encode() == id_:
            return folder
    raise NotFound(f"the folder that is mounted at {mountpoint} is gone")


def _inner(path: str, parts: list[str]) -> bytes:
    if ".." in parts:
        raise UsageError(f"{path} leads out of the folder")
    names = [part for part in parts if part not in ("", ".")]
    return "/".join(names).encode("utf-8", "surrogateescape")
