"""One folder, held open: all that can be asked of this program about it. What a program gets that
says `geniuzfs.open()`, and what a door that is pinned to a folder calls.

Hides: where the folder is; it may be renamed and moved meanwhile. Promises: may be used from
several threads at once, while the folder is mounted and while other processes write; what was put
or kept before a question is found by it, at least by its words.
"""

import math
import time
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Self, Unpack

from geniuzfs import processes
from geniuzfs.api import keeping, requests
from geniuzfs.api.connections import Connections
from geniuzfs.api.directories import Directories
from geniuzfs.api.files import Files
from geniuzfs.api.keeping import Held
from geniuzfs.api.requests import Filters
from geniuzfs.api.sourced import SourcesOf
from geniuzfs.api.witnessing import Witness
from geniuzfs.folders.registry import Folder
from geniuzfs.recall import render
from geniuzfs.recall.hits import Answer, Hit
from geniuzfs.recall.query import Format

if TYPE_CHECKING:
    from geniuzfs.api import Geniuz
    from geniuzfs.api.exchange import Exported


class Opened:
    """Use it as a context manager, or `close` it. Every call raises NotFound when the folder is
    gone, and UsageError after `close`.
    """

    def __init__(self, geniuz: "Geniuz", connections: Connections, *, owns: bool = False) -> None:
        """`owns`: `geniuz` is closed with this. Raises what opening the folder raises."""
        self._geniuz = geniuz
        self._connections = connections
        self._owns = owns
        witness = Witness(processes.this())
        self.files = Files(connections, geniuz.config, geniuz.clock, witness)
        self.directories = Directories(connections, geniuz.config, geniuz.clock)
        self.sources = SourcesOf(connections, self.files)
        connections.folder()  # what is wrong with it is told now

    @property
    def folder(self) -> Folder:
        """Its name and where it is."""
        return self._connections.folder()

    # Kept memories

    def keep(self, text: str, gist: str | None = None, parent: str | None = None) -> Held:
        """Keep a memory, which nothing can change any more. `gist`: what it says in short;
        `parent`: the address or ID of what it continues; where there is none, it begins a thread
        (`.parent_unknown`). Raises UsageError for text that can't be kept.
        """
        for given in (text, *(each for each in (gist, parent) if each is not None)):
            requests.text(given)
        open_, now_ns = self._connections.open, self._geniuz.clock.now_ns()
        return keeping.wherever(
            self._connections.folder,
            lambda folder: keeping.keep(open_, folder, text, gist, parent, now_ns),
        )

    def open_memory(self, address: str) -> Held:
        """The memory of that address, or whose ID begins so. Raises NotFound, and UsageError where
        it is no address or several have it.
        """
        wanted = requests.text(address)
        return keeping.find(self._connections.open, [self.folder], wanted)

    def thread(self, address: str) -> list[Hit]:
        """All memories of the thread that this one is in, root first. Raises as `open_memory`."""
        held = self.open_memory(address)
        named = f"{held.folder.identity.id}:{held.memory.id}"
        return list(self.ask(named, mode="thread").hits)

    # Questions

    def recall(
        self, query: str = "", limit: int | None = None, **filters: Unpack[Filters]
    ) -> list[Hit]:
        """What answers the question, the best first. `filters` are what may stand among its words:
        `since="7d"`, `path="/drafts/"`, `mode="words"`. Raises UsageError for one that makes no
        sense, NotFound for a path where nothing is.
        """
        return list(self.ask(query, limit, **filters).hits)

    def ask(self, query: str = "", limit: int | None = None, **filters: Unpack[Filters]) -> Answer:
        """The same with the account of what was searched, how, and what is still being learned."""
        return self._ask(query, {"limit": limit, **filters})[0]

    def context(
        self,
        question: str,
        limit: int | None = None,
        *,
        prefix: str = "",
        **filters: Unpack[Filters],
    ) -> str:
        """The same as the text that `.recall` gives in a mount: hits with where they stand, then
        what was searched. Never empty: where nothing is found, it says so. `prefix` stands before
        the paths: where whoever reads it finds the folder.
        """
        answer, form = self._ask(question, {"limit": limit, **filters})
        return render.written(answer, form, prefix=prefix)

    def recent(self, limit: int | None = None, **filters: Unpack[Filters]) -> list[Hit]:
        """What was written or kept last, the newest first."""
        wanted: Filters = {**filters, "mode": "recent"}
        return self.recall("", limit, **wanted)

    # Learning

    def wait(self, timeout: float | None = None) -> bool:
        """Have all of it learned, here or by the mount that does so already, in `timeout` seconds
        (and the batch that is under way). False: there was not enough time, or no model, and words
        alone are learned.
        """
        seconds = math.inf if timeout is None else timeout
        end = time.monotonic() + seconds
        with self._geniuz.learning_of(lambda: [self.folder]) as learning:
            for progress in learning.until_done(max(seconds, 0.1)):
                if not progress.sources and not progress.passages:
                    return True
                if time.monotonic() >= end:
                    return False
        return False

    def export(self, out: IO[bytes], *, packed: bool = False) -> "Exported":
        """Write all of it, as it is at one moment, as a tar archive to a stream of bytes; `packed`:
        compressed (zstd). How many files and memories there are in it. `geniuzfs import` brings
        them back.
        """
        exchange = self._geniuz.copies.exchange()
        return exchange.export(self.folder, out, lambda done, of: None, packed=packed)[0]

    def close(self) -> None:
        """Give back what is open. Calls that are under way end as if it were not."""
        self._connections.close()
        if self._owns:
            self._geniuz.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, query: str, filters: Mapping[str, object]) -> tuple[Answer, Format]:
        given = requests.operators(filters)
        parsed = self._geniuz.parse(requests.text(query), given)
        return self._geniuz.ask(self.folder, parsed), parsed.format
