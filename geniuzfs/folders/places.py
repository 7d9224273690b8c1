"""Where folders are looked for beside the data directory, which come first, which one is in use.

Hides: `folders.json` in the data directory. Promises: it is written whole or not at all, and of
two processes that change it at once neither undoes what the other did. Refuses to guess: a file
that makes no sense is StoreDamaged, since without it folders would be missing without a word.
"""

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from geniuzfs import durable
from geniuzfs.errors import Busy, StoreDamaged
from geniuzfs.model import FolderId

FILE = "folders.json"


class Places(NamedTuple):
    """`added`: directories, absolute, in the order of adding; `pinned`: folders, likewise."""

    added: tuple[Path, ...] = ()
    pinned: tuple[FolderId, ...] = ()
    used: FolderId | None = None
    """What `geniuzfs folder use` has chosen."""


def read(home: Path) -> Places:
    """What is on record. Raises StoreDamaged."""
    path = home / FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Places()
    except (OSError, ValueError) as error:
        raise StoreDamaged(f"{path} can't be read: mend it or remove it: {error}") from error
    if not isinstance(found, dict):
        raise StoreDamaged(f"{path} makes no sense: mend it or remove it")
    added, pinned, used = found.get("added"), found.get("pinned"), found.get("used")
    if not _are_texts(added) or not _are_texts(pinned) or not isinstance(used, str | None):
        raise StoreDamaged(f"{path} makes no sense: mend it or remove it")
    return Places(
        tuple(Path(place) for place in added),
        tuple(FolderId(id_) for id_ in pinned),
        None if used is None else FolderId(used),
    )


def change(home: Path, changed: Callable[[Places], Places]) -> None:
    """Record what `changed` makes of what is on record. Raises StoreDamaged and StoreError."""
    with alone(home):
        record(home, changed(read(home)))


def record(home: Path, known: Places) -> None:
    """The same for who is `alone` already."""
    kept = {**known._asdict(), "added": [str(place) for place in known.added]}
    durable.write(home / FILE, json.dumps(kept, indent=2) + "\n")


@contextmanager
def alone(home: Path, *, wait: bool = True) -> Iterator[None]:
    """Within it no other process changes which folders there are, or where. Waits for its turn,
    or raises Busy; a process that is killed gives its own back.
    """
    with durable.translating(home):
        held = FileIO(home / ".folders-lock", "wb")
    with held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy("another process is arranging folders: try again") from error
        yield


def _are_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)
