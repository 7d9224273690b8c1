"""Vectors for what was learned, newest first.

Hides: that the next passages are being embedded while the last ones are stored. Promises: no
transaction spans a call of the model; a vector is stored with its model's id and only if
its passage is still there; without a model nothing is lost but time.
"""

import logging
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import NamedTuple

from geniuzfs.errors import ModelUnavailable
from geniuzfs.learn.shared import Shared
from geniuzfs.model import ModelId, PassageId
from geniuzfs.ports import Embedder, Vectors
from geniuzfs.store import vectors
from geniuzfs.store.connection import Database

AT_ONCE = 64
"""Passages of one call: about a second's work, and what is done anew after a crash."""

CALLS_AHEAD = 2
"""One that the model works at, and one that is next."""

WAIT_SECONDS = 0.25
"""On a busy machine a call may take a minute: words that are due meanwhile don't wait for it."""

STORED_AT_ONCE = 64
"""Vectors of one transaction: it holds the write lock for 2 ms."""

_log = logging.getLogger(__name__)


class _Ahead(NamedTuple):
    """A call of the model that is on its way."""

    model: ModelId
    passages: list[PassageId]
    vectors: "Future[Vectors]"


class Embedding:
    """Embeds the passages of one folder. For one thread; uses one of its own for the model."""

    def __init__(self, database: Database, embedder: Embedder) -> None:
        self._database = database
        self._embedder = embedder
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embedding")
        self._ahead: list[_Ahead] = []
        self._shared = Shared(database, embedder)

    def step(self) -> bool:
        """Embed some of what waits; False when nothing does. Where the model needs longer than
        WAIT_SECONDS, a later step stores what it gives. Raises ModelUnavailable and Busy.
        """
        model = self._embedder.model()
        self._choose(model)
        self._ahead = [call for call in self._ahead if call.model == model]
        if not self._ahead and self._shared.step(model):
            return True
        if len(self._ahead) < CALLS_AHEAD:
            self._begin(model)
        if not self._ahead:
            return self._tidy(model)
        first = self._ahead[0]
        if first.vectors not in wait([first.vectors], WAIT_SECONDS).done:
            return True
        try:
            found = first.vectors.result()
        except ModelUnavailable:
            self._ahead.clear()  # after a failure all is asked for anew
            raise
        self._begin(model)  # so that the model has something to do while these are stored
        self._ahead.remove(first)
        self._store(model, first.passages, found)
        return True

    def close(self) -> None:
        """End the thread; what is on its way is dropped and still waits in the database."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self, model: ModelId) -> None:
        """Have the model embed the next ones, beyond those that are on their way."""
        ahead = {passage for call in self._ahead for passage in call.passages}
        rows = vectors.awaiting(self._database.view, AT_ONCE + len(ahead))
        rows = [row for row in rows if row[0] not in ahead][:AT_ONCE]
        if rows:
            texts = [text for _, text in rows]
            call = self._thread.submit(self._embedder.passages, texts, model)
            self._ahead.append(_Ahead(model, [passage for passage, _ in rows], call))

    def _choose(self, model: ModelId) -> None:
        """Have passages wait for `model`, if they wait for another one."""
        wanted = vectors.wanted(self._database.view)
        if wanted is None or wanted[1] != model:
            with self._database.txn() as txn:
                vectors.want(txn, model)

    def _store(self, model: ModelId, passages: list[PassageId], found: Vectors) -> None:
        for first in range(0, len(passages), STORED_AT_ONCE):
            part = slice(first, first + STORED_AT_ONCE)
            with self._database.txn() as txn:
                wanted = vectors.wanted(txn)
                if wanted is None or wanted[1] != model:
                    return  # another was chosen meanwhile
                vectors.put(txn, wanted[0], passages[part], found[part])

    def _tidy(self, model: ModelId) -> bool:
        with self._database.txn() as txn:
            wanted = vectors.wanted(txn)
            if wanted is None:
                return False
            vectors.drop_unwanted(txn)
            return vectors.seal(txn, wanted[0]) or vectors.thin(txn, wanted[0])
