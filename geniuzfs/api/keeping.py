"""Kept memories of one folder or several: keeping one, and finding one by its address.

Hides: which file a memory lies in. Promises: a memory is kept in one transaction that no model
has a part in: it is found by its words at once, by meaning when it has been learned. Refuses: to
guess which of several is meant.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from geniuzfs.addresses import SHORT, Address, address
from geniuzfs.errors import Moved, NotFound, StoreFault, UsageError
from geniuzfs.folders.registry import Folder
from geniuzfs.model import Memory
from geniuzfs.store import memories
from geniuzfs.store.connection import Database

Open = Callable[[Folder], Database]

T = TypeVar("T")

_PAUSES = (0.0, 0.0, 0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between looking for a folder that is on its way and looking again."""


_AGAIN = 2


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


def wherever(find_: Callable[[], Folder], use: Callable[[Folder], T]) -> T:
    """What `use` gives of the folder that `find_` finds. A folder that is moved between the two is
    looked for again: a move is seen for some milliseconds. It may be back by the time one looks, so
    what was not found, which changes nothing, is looked for _AGAIN times.
    """
    missed = 0
    for pause in _PAUSES:
        folder = find_()
        try:
            return use(folder)
        except NotFound:
            missed += 1
            if missed > _AGAIN and folder.path.exists():
                raise
        except StoreFault:
            if folder.path.exists():
                raise
        except Moved:
            pass
        time.sleep(pause)
    return use(find_())


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
    found = [held for folder in folders for held in matching(open_, folder, wanted)]
    if not found:
        raise NotFound(f"no memory is called {text}")
    if len(found) > 1:
        known = memories.listed([each.memory for each in found])
        raise UsageError(f"several memories begin with {text}: {known}")
    return found[0]


def matching(open_: Open, folder: Folder, wanted: Address) -> list[Held]:
    """The memories of that folder which have the address or ID."""
    if not folder.identity.id.upper().startswith(wanted.folder):
        return []
    database = open_(folder)
    try:
        return [Held(folder, one) for one in memories.by_prefix(database.view, wanted.memory)]
    finally:
        database.close()


def _within(folder: Folder, parent: str) -> str:
    """The ID in `parent`; what lies in another folder is not in this one, whatever its ID."""
    wanted = address(parent)
    if wanted is None or not folder.identity.id.upper().startswith(wanted.folder):
        return ""
    return wanted.memory
