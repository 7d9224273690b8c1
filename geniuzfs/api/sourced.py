"""What a folder's knowledge comes from: its files and kept memories, by their external ids.

Hides: that one is an inode and the other a row. Promises: files in the order of their paths, then
memories in the order of keeping. Refuses: to remove a kept memory.
"""

from bisect import bisect_right

from geniuzfs.api import requests
from geniuzfs.api.connections import Connections
from geniuzfs.api.filed import Source, Sources, file_source, memory_source
from geniuzfs.api.files import Files, found, named
from geniuzfs.api.requests import PAGE
from geniuzfs.errors import NotFound, UsageError
from geniuzfs.model import MemoryId
from geniuzfs.store import labels as labelled
from geniuzfs.store import memories
from geniuzfs.store.transactions import View

FILE, MEMORY = "file:", "memory:"
"""What external ids begin with."""


class SourcesOf:
    """The sources of one folder. May be used from several threads at once."""

    def __init__(self, connections: Connections, files: Files) -> None:
        self._connections = connections
        self._files = files

    def list(self, limit: int = PAGE, cursor: str | None = None) -> Sources:
        """Files and kept memories, learned or not. `cursor`: the page before's `next`. Raises
        UsageError.
        """
        most, after = requests.page(limit, cursor)
        if after and not after.startswith((FILE, MEMORY)):
            raise UsageError("the cursor is what .next of the page before says")
        return self._connections.read(lambda view: _page(view, most, after))

    def delete(self, external_id: str) -> int:
        """Forget the source at once, as Files.delete does; 1. Raises NotFound, and UsageError for
        a kept memory, which stays.
        """
        if requests.text(external_id).startswith(FILE):
            return self._files.delete(external_id.removeprefix(FILE))
        if not external_id.startswith(MEMORY):
            raise UsageError("an external id is file:/notes.md or memory:<ID>")
        id_ = MemoryId(external_id.removeprefix(MEMORY))
        if self._connections.read(lambda view: memories.memory(view, id_)) is None:
            raise NotFound(f"there is no source {external_id[:60]}")
        raise UsageError(
            "a kept memory stays: keep another that says what has changed; what must not be there"
            " at all is erased by geniuzfs forget --memory alone"
        )


def _page(view: View, most: int, after: str) -> Sources:
    files, _ = named(view, "/")
    kept_after = after.removeprefix(MEMORY) if after.startswith(MEMORY) else "0"
    if not kept_after.isdecimal():
        raise UsageError("the cursor is what .next of the page before says")
    first = len(files)
    if kept_after == "0":
        first = bisect_right(files, after.removeprefix(FILE), key=lambda each: each[0])
    shown = [(f"{FILE}{path}", _of_file(view, path)) for path, _ in files[first : first + most]]
    for each in memories.page(view, int(kept_after), most + 1 - len(shown)):
        shown.append((f"{MEMORY}{each.number}", memory_source(each.memory)))
    left = len(files) - first > most or len(shown) > most
    more = shown[most - 1][0] if left else None
    total = len(files) + memories.count(view)
    return Sources(tuple(source for _, source in shown[:most]), total, more)


def _of_file(view: View, path: str) -> Source:
    inode = found(view, path)
    return file_source(path, inode, labelled.labels(view, inode.number))
