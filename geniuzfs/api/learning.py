"""Learning of some folders: until nothing is due, or for as long as there is somebody to wake it.

Hides: which process learns which folder: the one that holds its `Turn`; another only watches.
Promises: new folders are taken in as they appear, and those that go are let go.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple, TypeVar

from geniuzfs.embed.standing import lowest_priority
from geniuzfs.errors import ModelUnavailable, TooLate
from geniuzfs.folders.registry import Folder
from geniuzfs.learn.learner import RETRY_SECONDS, Learner, Turn
from geniuzfs.learn.waking import SAFETY_SECONDS, Stream, Waking
from geniuzfs.model import FolderId
from geniuzfs.ports import Embedder
from geniuzfs.store import passages
from geniuzfs.store.connection import Database
from geniuzfs.store.passages import Waiting

RESTS = 4
"""For each second of work, while others save: the kernel shares the CPU among sessions, so beside
a saver of another one the lowest priority alone does little. Nobody waits for what is learned:
a question learns the words that it needs.
"""

T = TypeVar("T")

LOOK_SECONDS = 0.5
"""Between two looks at what another process learns."""

MODEL_SECONDS = 60.0
"""For a helper that has to start on a busy machine."""


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
        now_ns: Callable[[], int],
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._retry_seconds = retry_seconds
        self._folders = folders
        self._open_folder = open_
        self._embedder = embedder
        self._now_ns = now_ns
        self._held: dict[FolderId, _Folder] = {}
        self._mine: set[FolderId] = set()
        self._others_note = ""
        self._preparing = ThreadPoolExecutor(1, thread_name_prefix="preparing")

    def __enter__(self) -> "Learning":
        self._take_in()
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self._held.values():
            folder.turn.give_back()
            folder.learner.close()
        self._held.clear()
        self._mine.clear()
        self._preparing.shutdown()

    def again(self) -> None:
        """Have every file and memory looked at again; texts that are known keep their vectors."""
        for folder in self._held.values():
            with folder.database.txn() as txn:
                passages.everything_again(txn)

    def until_done(self, patience: float = MODEL_SECONDS) -> Iterator[Progress]:
        """Tell how much is due, again and again, until that is nothing, or nothing more can be
        done without a model. Where another process learns a folder, wait for it; `patience`: how
        many seconds for a sign of the model when that one gets no further.
        """
        before: Progress | None = None
        with closing(Waking(None)) as waking:
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
                    self._others_note = ""
                    if progress == before:
                        self._others_note = self._model_note(min(patience, MODEL_SECONDS))
                    before = progress
                    waking.wait(LOOK_SECONDS)

    def follow(self, parent: Stream) -> None:
        """Learn what is due whenever something is, until `parent`, a pipe, is closed at its other
        end. At the lowest priority, but for the transactions.
        """
        # A thread of the lowest priority that loses the CPU while it holds the write lock keeps
        # every saver waiting: on a busy machine for 100 ms, where the work were 5.
        self._preparing.submit(lowest_priority).result()
        with closing(Waking(parent)) as waking:
            while True:
                self._take_in()
                waking.watch(folder.database.wal_path for folder in self._held.values())
                while (rest := self._step_in_turn()) is not None:
                    if waking.over(rest):
                        return
                if not waking.wait(min(SAFETY_SECONDS, self._retry_seconds)):
                    return

    def progress(self) -> Progress:
        """How much is due now."""
        due = [folder.learner.waiting() for folder in self._held.values()]
        total = Waiting(sum(one.sources for one in due), sum(one.passages for one in due))
        notes = [folder.learner.model_note for folder in self._held.values()]
        return Progress(*total, next((note for note in notes if note), self._others_note))

    def _step(self) -> bool:
        """A step in each folder that is ours; whether any had something to do."""
        worked = [self._held[id_].learner.step() for id_ in self._mine]
        return any(worked)

    def _model_note(self, seconds: float) -> str:
        """Why another process, which learns in our place, gets no vectors; "" while it may."""
        try:
            self._embedder.query("?", self._embedder.model(), seconds)
        except TooLate:
            return ""
        except ModelUnavailable as error:
            return str(error)
        return ""

    def _aside(self, work: Callable[[], T]) -> T:
        return self._preparing.submit(work).result()

    def _step_in_turn(self) -> float | None:
        """A step, and how many seconds to rest after it; None: there was nothing to do."""
        begun = time.process_time()
        if not self._step():
            return None
        others = [self._held[id_].learner.others_wrote() for id_ in self._mine]
        return RESTS * (time.process_time() - begun) if any(others) else 0.0

    def _take_in(self) -> None:
        shown = {folder.identity.id: folder for folder in self._folders()}
        for id_, held in list(self._held.items()):
            if id_ not in shown or not held.database.is_at(shown[id_].path):
                self._let_go(id_)
        for folder in shown.values():
            if folder.identity.id not in self._held:
                database = self._open_folder(folder)
                retry = self._retry_seconds
                learner = Learner(database, self._embedder, self._now_ns, retry, self._aside)
                self._held[folder.identity.id] = _Folder(database, learner, Turn(database))
        self._claim()

    def _let_go(self, id_: FolderId) -> None:
        """The folder is gone, or somewhere else: its database is open still."""
        held = self._held.pop(id_)
        self._mine.discard(id_)
        held.turn.give_back()
        held.learner.close()

    def _claim(self) -> None:
        for id_, folder in self._held.items():
            if id_ not in self._mine and folder.turn.take():
                self._mine.add(id_)
                folder.learner.begin()
