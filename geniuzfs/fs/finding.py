"""What `.find/<query>/` lists: symbolic links to the files found, ranked by their names.

Pure. Promises: `01 notes.md` and so on, each name once and of at most 255 bytes; every
target is relative, so it is right wherever the folder is mounted.
"""

import re
from typing import NamedTuple

from geniuzfs.model import NAME_MAX

_RANKED = re.compile(rb"\d+ .", re.DOTALL)
_UP = b"../"


class Hit(NamedTuple):
    """A link: its name and where it points."""

    name: bytes
    target: bytes


def is_ranked(name: bytes) -> bool:
    """Whether a hit can be called `name`. What is looked for beside it is not worth a question."""
    return _RANKED.match(name) is not None


def hits(paths: list[bytes], depth: int) -> list[Hit]:
    """The links to `paths`, which are relative to the folder's top, out of a directory
    that lies `depth` directories below it and holds all of them.
    """
    width = max(2, len(str(len(paths))))
    return [
        Hit(_name(b"%0*d " % (width, rank), path), _target(path, depth))
        for rank, path in enumerate(paths, 1)
    ]


def _name(rank: bytes, path: bytes) -> bytes:
    name = rank + path.rpartition(b"/")[2]
    end = min(len(name), NAME_MAX)
    while len(name) - end and name[end] & 0xC0 == 0x80:  # amid a character
        end -= 1
    return name[:end]


def _target(path: bytes, depth: int) -> bytes:
    """Up to the directory and down to the file. A file that was moved out of the directory
    just now is reached by way of the top.
    """
    parts = path.split(b"/", depth)
    if len(parts) > depth:
        return _UP * 2 + parts[depth]
    return _UP * (2 + depth) + path
