"""Learning of some folders: until nothing is due, or for as long as there is somebody to wake it.

Hides: which process learns which folder: the one that holds its `Turn`; another only watches.
Promises: new folders are taken in as they appear.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from geniuzfs.embed.standing import lowest_priority
from geniuzfs.folders.registry import Folder
from geniuzfs.learn.learner import Learner, Turn
from geniuzfs.learn.waking import Stream, Waking
from geniuzfs.model import FolderId
from geniuzfs.ports import Embedder
from geniuzfs.store.connection import Database
from geniuzfs.store.passages import Waiting

LOOK_SECONDS = 0.5
"""Between two looks at what another process learns."""


class Progress(NamedTuple):
    """How much is due in all folders together, and why vectors can't be had, or ""."""

    sources: int
    passages: int
    model_note: str


class _Folder(NamedTuple):
    database: Database
    learner: Learner
    turn: Turn


class Learning:
    """Learns the folders that `folders` names. Use as a context manager, from one thread."""

    def __init__(
        self,
        folders: Callable[[], Sequence[Folder]],
        open_: Callable[[Folder], Database],
        embedder: Embedder,
    ) -> None:
        self._folders = folders
        self._open_folder = open_
        self._embedder = embedder
        self._held: dict[FolderId, _Folder] = {}
        self._mine: set[FolderId] = set()

    def __enter__(self) -> "Learning":
        self._take_in()
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self._held.values():
            folder.turn.give_back()
            folder.learner.close()
        self._held.clear()
        self._mine.clear()

    def until_done(self) -> Iterator[Progress]:
        """Tell how much is due, again and again, until that is nothing, or nothing more can be
        done without a model. Where another process learns a folder, wait for it.
        """
        waking = Waking(None)
        try:
            while True:
                worked = self._step()
                progress = self.progress()
                yield progress
                if not progress.sources and (not progress.passages or progress.model_note):
                    while self._step():  # the index in order
                        pass
                    return
                if not worked:
                    self._claim()
                    waking.wait(LOOK_SECONDS)
        finally:
            waking.close()

    def follow(self, parent: Stream) -> None:
        """Learn what is due whenever something is, at the lowest priority, until `parent`, a pipe,
        is closed at its other end.
        """
        lowest_priority()
        waking = Waking(parent)
        while True:
            self._take_in()
            waking.watch(folder.database.wal_path for folder in self._held.values())
            while self._step():
                if not waking.wait(0):
                    return
            if not waking.wait():
                return

    def progress(self) -> Progress:
        """How much is due now."""
        due = [folder.learner.waiting() for folder in self._held.values()]
        total = Waiting(sum(one.sources for one in due), sum(one.passages for one in due))
        notes = [folder.learner.model_note for folder in self._held.values()]
        return Progress(*total, next((note for note in notes if note), ""))

    def _step(self) -> bool:
        """A step in each folder that is ours; whether any had something to do."""
        worked = [self._held[id_].learner.step() for id_ in self._mine]
        return any(worked)

    def _take_in(self) -> None:
        for folder in self._folders():
            if folder.identity.id not in self._held:
                database = self._open_folder(folder)
                learner = Learner(database, self._embedder)
                self._held[folder.identity.id] = _Folder(database, learner, Turn(database))
        self._claim()

    def _claim(self) -> None:
        for id_, folder in self._held.items():
            if id_ not in self._mine and folder.turn.take():
                self._mine.add(id_)
                folder.learner.begin()
