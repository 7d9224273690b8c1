"""What a question is asked of."""

from typing import NamedTuple

from geniuzfs.folders.registry import Folder
from geniuzfs.model import InodeNumber


class Asked(NamedTuple):
    """A folder, and the directory in it beneath which to look."""

    folder: Folder
    directory: InodeNumber
