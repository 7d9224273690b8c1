"""Kept memories of one folder or several: keeping one, and finding one by its address.

Hides: which file a memory lies in. Promises: a memory is kept in one transaction that no model
has a part in: it is found by its words at once, by meaning when it has been learned. Refuses: to
guess which of several is meant.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from geniuzfs.addresses import SHORT, address
from geniuzfs.errors import NotFound, UsageError
from geniuzfs.folders.registry import Folder
from geniuzfs.model import Memory
from geniuzfs.store import memories
from geniuzfs.store.connection import Database

Open = Callable[[Folder], Database]


class Held(NamedTuple):
    """A memory and the folder that holds it."""

    folder: Folder
    memory: Memory
    parent_unknown: bool = False
    """It was kept just now, and what it was to continue is not there: it begins a thread."""

    @property
    def address(self) -> str:
        """`13625F6B:3487B9B0`"""
        return f"{self.folder.identity.id[:SHORT]}:{self.memory.id[:SHORT].upper()}"


def keep(
    open_: Open, folder: Folder, text: str, gist: str | None, parent: str | None, now_ns: int
) -> Held:
    """Keep `text` in `folder`. `parent`: an ID, its beginning, or an address. Raises UsageError as
    store.memories.keep does.
    """
    database = open_(folder)
    try:
        with database.txn() as txn:
            within = None if parent is None else _within(folder, parent)
            kept = memories.keep(txn, text, gist, within, now_ns)
    finally:
        database.close()
    return Held(folder, kept.memory, kept.parent_unknown)


def find(open_: Open, folders: Sequence[Folder], text: str) -> Held:
    """The memory that `text`, an address or an ID's beginning, names in one of the folders.
    Raises NotFound, and UsageError where several have it.
    """
    wanted = address(text)
    if wanted is None:
        raise UsageError(f"{text!r} is no address of a memory: write 13625F6B:3487B9B0 or 3487B9B0")
    found: list[Held] = []
    for folder in folders:
        if folder.identity.id.upper().startswith(wanted.folder):
            database = open_(folder)
            try:
                matches = memories.by_prefix(database.view, wanted.memory)
            finally:
                database.close()
            found += [Held(folder, memory) for memory in matches]
    if not found:
        raise NotFound(f"no memory is called {text}")
    if len(found) > 1:
        known = memories.listed([each.memory for each in found])
        raise UsageError(f"several memories begin with {text}: {known}")
    return found[0]


def _within(folder: Folder, parent: str) -> str:
    """The ID in `parent`; what lies in another folder is not in this one, whatever its ID."""
    wanted = address(parent)
    if wanted is None or not folder.identity.id.upper().startswith(wanted.folder):
        return ""
    return wanted.memory
