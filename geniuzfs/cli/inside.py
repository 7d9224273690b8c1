"""Which file of which folder a path on the command line means.

Hides: that a folder may be mounted alone or beside others. Promises: a path beneath a mount is the
file there; any other one is counted from the top of the folder that is meant.
"""

import os
from pathlib import Path
from typing import NamedTuple

from geniuzfs.api import Geniuz

FOLDER = "user.geniuz.folder"
"""The attribute of a directory in a mount that says which folder it is in."""


class Inside(NamedTuple):
    """A folder's name (None: the one that is meant here), and a path from its top."""

    folder: str | None
    path: str


def inside(geniuz: Geniuz, name: str | None, path: str) -> Inside:
    """Where `path` leads. `name`: the folder, where that was said."""
    if name is not None:
        return Inside(name, path)
    wanted = Path(os.path.abspath(path))
    for mountpoint in geniuz.mounted():
        if not wanted.is_relative_to(mountpoint):
            continue
        rest = wanted.relative_to(mountpoint)
        alone = _folder_at(geniuz, mountpoint)
        if alone is not None:
            return Inside(alone, str(rest))
        if rest.parts:
            return Inside(rest.parts[0], "/".join(rest.parts[1:]))
    return Inside(None, path)


def _folder_at(geniuz: Geniuz, mountpoint: Path) -> str | None:
    """The one folder that is mounted there; None where there are several."""
    try:
        id_ = os.getxattr(mountpoint, FOLDER).decode()
    except OSError:  # several, or the mount is dead
        return None
    names = [folder.name for folder in geniuz.folders() if folder.identity.id == id_]
    return names[0] if names else None
