"""Folders for tests."""

from pathlib import Path

from geniuzfs.folders import registry
from geniuzfs.ports import SystemClock
from geniuzfs.store import meta
from geniuzfs.store.connection import Database


def made(directory: Path, name: str | None = None) -> None:
    """A folder's directory; without a name the folder has that of the directory."""
    directory.mkdir(parents=True)
    database = Database.open(directory / registry.FILE, create=True)
    if name is not None:
        with database.txn() as txn:
            known = meta.identify(txn, registry.fresh(name, SystemClock()))
        assert known.name == name
    database.close()
