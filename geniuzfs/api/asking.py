"""A question to one folder or several, from its text to the answer.

Hides: that folders are held in memory between questions, and how long each part may take. Promises:
whatever was saved before the question is found, at least by its words (`CATCH_UP_SECONDS`
permitting; the answer counts what is left); a model that is slow or away costs its deadline, and
the answer says that it was not asked. No transaction is open while the model works.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from threading import Lock
from typing import NamedTuple

from geniuzfs.addresses import Address, address
from geniuzfs.api.asked import Asked as Asked
from geniuzfs.errors import ModelUnavailable, NotFound, StoreDamaged, StoreError
from geniuzfs.folders.registry import Folder
from geniuzfs.learn.backlog import Backlog
from geniuzfs.model import FolderId, InodeNumber, ModelId
from geniuzfs.ports import Embedder, Vectors
from geniuzfs.recall import remembered, search
from geniuzfs.recall.hits import Answer, Hit, Searched
from geniuzfs.recall.parts import Part, Shelf, part
from geniuzfs.recall.query import Mode, Query
from geniuzfs.recall.search import Result
from geniuzfs.store import memories, passages
from geniuzfs.store.connection import Database

CATCH_UP_SECONDS = 2.0
"""For the words of what was saved just now: some 4,000 passages."""

MODEL_SECONDS = 3.0
"""For the question's vector: 10 ms, and 2 s where the helper has to start first."""

CLOSE_SECONDS = 1.0

_REMEMBERED = 256
"""Questions whose vectors are kept."""

_BY_MEANING = (Mode.AUTO, Mode.MEANING, Mode.THREAD)

_log = logging.getLogger(__name__)


class _Open(NamedTuple):
    """A folder that is held in memory."""

    lock: Lock
    shelf: Shelf
    backlog: Backlog


class Asking:
    """Answers questions. May be used from several threads: those to one folder take turns."""

    def __init__(self, open_: Callable[[Folder], Database], embedder: Embedder) -> None:
        self._open_folder = open_
        self._embedder = embedder
        self._lock = Lock()
        self._folders: dict[FolderId, _Open] = {}
        self._vectors: dict[tuple[ModelId, str], Vectors] = {}
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="question")

    def ask(self, asked: Sequence[Asked], query: Query) -> Answer:
        """The answer; of several folders those that are damaged are left out of it, which it says.
        Raises NotFound for a path and for an address that is not there, and what opening a folder
        raises.
        """
        try:
            return self._answered(asked, query)
        except StoreDamaged:
            sound, damaged = self._told_apart(asked, query)
            if not sound:
                raise
        answer = self._answered(sound, query)
        return answer._replace(searched=answer.searched._replace(left_out=tuple(damaged)))

    def _told_apart(
        self, asked: Sequence[Asked], query: Query
    ) -> tuple[list[Asked], list[tuple[str, str]]]:
        """The folders that can answer, and why the others can't: each is asked alone."""
        sound: list[Asked] = []
        damaged: list[tuple[str, str]] = []
        for each in asked:
            try:
                with suppress(NotFound):  # a path may be in another one
                    self._answered([each], query)
            except StoreDamaged as error:
                damaged.append((each.folder.name, str(error)))
            else:
                sound.append(each)
        return sound, damaged

    def _answered(self, asked: Sequence[Asked], query: Query) -> Answer:
        wanted = address(query.text) if query.means_a_memory() else None
        if wanted is not None and (answer := self._named(asked, query, wanted)) is not None:
            return answer
        question = _Question(self._embedder, self._vectors, query)
        if query.mode in _BY_MEANING:
            question.begin(self._threads)
        with ExitStack() as held:
            opened = [self._opened(each.folder) for each in asked]
            for one in sorted(opened, key=lambda one: one.shelf.identity.id):
                held.enter_context(one.lock)
            for one in opened:
                _catch_up(one)
            if query.mode in _BY_MEANING:
                question.finish(_models(opened))
            with ExitStack() as snapshots:
                parts = [
                    _part(snapshots, one, each, query)
                    for one, each in zip(opened, asked, strict=True)
                ]
                result = search.search(parts, query, question.vectors)
                waiting = sum(_waiting(part) for part in parts)
        question.finish(set())  # may know by now why there is no model
        self._remember(query.text, question.vectors)
        return _answer(asked, query, result, question, waiting)

    def _named(self, asked: Sequence[Asked], query: Query, wanted: Address) -> Answer | None:
        """The memory, or all its thread, that the question is the name of. None: an ID that is no
        memory's may be any word. Where several have it, all of them are the answer.
        """
        hits: list[Hit] = []
        for each in asked:
            if each.folder.identity.id.upper().startswith(wanted.folder):
                one = self._opened(each.folder)
                with one.lock, one.shelf.database.snapshot() as view:
                    for memory in memories.by_prefix(view, wanted.memory):
                        if query.mode is Mode.THREAD:
                            identity, limit = one.shelf.identity, query.limit
                            hits += remembered.thread(identity, view, memory.id, limit)
                        else:
                            hits.append(remembered.hit(one.shelf.identity, memory))
        if not hits and wanted.folder:
            raise NotFound(f"no memory has the address {query.text}")
        if not hits:
            return None
        names = tuple(each.folder.name for each in asked)
        searched = Searched(0, len(hits), query.mode, False, False, folders=names, named=True)
        return Answer(query.asked, tuple(hits), searched, full=True)

    def state(self, folder: Folder, inode: InodeNumber) -> str | None:
        """What learning has made of a file (store.passages.state)."""
        one = self._opened(folder)
        with one.lock:
            return passages.state(one.shelf.database.view, inode)

    def close(self) -> None:
        """Give all folders back, but for those that are being asked still."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for one in self._folders.values():
            if one.lock.acquire(timeout=CLOSE_SECONDS):
                one.shelf.database.close()
                one.lock.release()
        self._folders.clear()

    def let_go(self, present: Sequence[Folder]) -> None:
        """Give back the folders that are not present any more."""
        paths = {folder.identity.id: folder.path for folder in present}
        with self._lock:
            for id_, one in list(self._folders.items()):
                if id_ not in paths or not one.shelf.database.is_at(paths[id_]):
                    self._give_back(id_)

    def _give_back(self, id_: FolderId) -> None:
        """A folder that is being asked is closed when the last who asks drops it."""
        one = self._folders.pop(id_)
        if one.lock.acquire(blocking=False):
            one.shelf.database.close()
            one.lock.release()

    def _opened(self, folder: Folder) -> _Open:
        with self._lock:
            one = self._folders.get(folder.identity.id)
            if one is not None and not one.shelf.database.is_at(folder.path):
                self._give_back(folder.identity.id)
                one = None
            if one is None:
                database = self._open_folder(folder)
                one = _Open(Lock(), Shelf(folder.identity, database), Backlog(database))
                self._folders[folder.identity.id] = one
            one.shelf.identity = folder.identity  # its name may have changed
            return one

    def _remember(self, text: str, vectors: dict[ModelId, Vectors]) -> None:
        with self._lock:
            for model, vector in vectors.items():
                self._vectors[model, text] = vector
            while len(self._vectors) > _REMEMBERED:
                self._vectors.pop(next(iter(self._vectors)))


class _Question:
    """A question's vectors, by the models that are needed, within MODEL_SECONDS each."""

    def __init__(
        self,
        embedder: Embedder,
        known: dict[tuple[ModelId, str], Vectors],
        query: Query,
    ) -> None:
        self._embedder = embedder
        self._known = known
        self._text = query.text
        self._early: Future[tuple[ModelId, Vectors]] | None = None
        self.vectors: dict[ModelId, Vectors] = {}
        self.note = ""

    def begin(self, threads: ThreadPoolExecutor) -> None:
        """Have the chosen model work while the folders catch up."""
        self._early = threads.submit(self._by_chosen)

    def finish(self, models: set[ModelId]) -> None:
        """Have the vectors of `models` there, or a note that says why not. Where nothing has a
        vector yet, nobody waits for a model that may still be starting.
        """
        if self._early is None or not (models or self._early.done()):
            return
        try:
            model, vector = self._early.result()
            self.vectors[model] = vector
        except ModelUnavailable as error:
            self.note = str(error)
        for model in models:
            if model not in self.vectors:
                try:
                    self.vectors[model] = self._by(model)
                except ModelUnavailable as error:
                    self.note = str(error)

    def _by_chosen(self) -> tuple[ModelId, Vectors]:
        model = self._embedder.model()
        return model, self._by(model)

    def _by(self, model: ModelId) -> Vectors:
        known = self._known.get((model, self._text))
        if known is not None:
            return known
        return self._embedder.query(self._text, model, MODEL_SECONDS)


def _catch_up(one: _Open) -> None:
    try:
        one.backlog.catch_up(CATCH_UP_SECONDS)
    except StoreError as error:  # what is left is counted in the answer
        _log.info("%s: not caught up: %s", one.shelf.database.path, error)


def _models(opened: Sequence[_Open]) -> set[ModelId]:
    names = set()
    for one in opened:
        with one.shelf.database.snapshot() as view:
            names.add(one.shelf.refreshed(view).nearest.name)
    return {name for name in names if name is not None}


def _part(snapshots: ExitStack, one: _Open, asked: Asked, query: Query) -> Part:
    view = snapshots.enter_context(one.shelf.database.snapshot())
    return part(one.shelf, view, asked.directory, query)


def _waiting(part: Part) -> int:
    waiting = passages.waiting(part.view)
    return waiting.sources + waiting.passages


def _answer(
    asked: Sequence[Asked], query: Query, result: Result, question: _Question, waiting: int
) -> Answer:
    return Answer(
        query.asked,
        result.hits,
        Searched(
            result.passages,
            result.memories,
            query.mode,
            words=query.mode is not Mode.MEANING,
            meaning=result.meant,
            since=query.since,
            until=query.until,
            path=query.path,
            labels=query.labels,
            quoted=query.quoted,
            model_note=question.note,
            waiting=waiting,
            folders=tuple(each.folder.name for each in asked),
        ),
        query.full,
    )
