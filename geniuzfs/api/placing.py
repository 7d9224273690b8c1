"""Which file of which folder a path on the command line means.

Hides: that the kernel's number of a file tells whether its mount shows one folder or all of them.
Promises: a path beneath a mount of this data directory means that very file; any other is looked
up from the top of the folder that is meant.
"""

from pathlib import Path

from geniuzfs.api.arranging import Arranging
from geniuzfs.errors import NotFound, UsageError
from geniuzfs.folders import mounts, registry
from geniuzfs.folders.registry import Folder

_NUMBER_BITS = 36
"""Of a file's number in a mount; above them is its folder's slot, 0 where that is mounted alone."""


def place(
    arranging: Arranging, home: Path, path: str, name: str | None, here: Path | None
) -> tuple[Folder, str]:
    """The folder, and the path from its top. Raises NotFound, and what Arranging.meant does."""
    within = _within_mount(home, path, here)
    if within is None:
        return arranging.meant(name, here), path
    number, parts = within
    if number >> _NUMBER_BITS == 0:  # mounted alone: its top does not say which folder it is
        return arranging.meant(name, here), "/".join(parts)
    folder = registry.named(arranging.seen(), parts[0])
    if name is not None and not registry.same_name(folder.name, name):
        raise UsageError(f"{path} is in the folder {folder.name!r}, not in {name!r}")
    return folder, "/".join(parts[1:])


def _within_mount(home: Path, path: str, here: Path | None) -> tuple[int, tuple[str, ...]] | None:
    """The file's number there, and the names that lead to it from the mount's top."""
    given = Path(path) if here is None else here / path
    targets = [mount.target for mount in mounts.ours(home)]
    if not targets or not given.is_absolute() or not given.name:
        return None
    try:
        whole = given.parent.resolve() / given.name  # of a link the link, not what it points to
        for target in targets:
            if whole.is_relative_to(target) and whole != target:
                return whole.lstat().st_ino, whole.relative_to(target).parts
    except FileNotFoundError as error:
        raise NotFound(f"there is nothing at {path}") from error
    except OSError as error:
        raise NotFound(f"{path} can't be looked up: {error.strerror}") from error
    return None
