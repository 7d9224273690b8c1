"""Vectors for what was learned, newest first.

Hides: that the next passages are being embedded while the last ones are stored. Promises: no
transaction spans a call of the model; a vector is stored with its model's id and only if
its passage is still there; without a model nothing is lost but time.
"""

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from geniuzfs.model import ModelId, PassageId
from geniuzfs.ports import Embedder, Vectors
from geniuzfs.store import vectors
from geniuzfs.store.connection import Database

AT_ONCE = 64
"""Passages of one call: about a second's work, and what is done anew after a crash."""

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
        self._ahead: _Ahead | None = None

    def step(self) -> bool:
        """Embed some of what waits; False when nothing does. Raises ModelUnavailable and Busy."""
        model = self._embedder.model()
        self._choose(model)
        now = self._ahead or self._begin(model, [])
        self._ahead = None
        if now is None:
            return self._tidy(model)
        # The next ones first, so that the model has something to do while these are stored.
        self._ahead = self._begin(model, now.passages) if now.model == model else None
        found = now.vectors.result()
        if now.model == model:
            self._store(model, now.passages, found)
        return True

    def close(self) -> None:
        """End the thread; what is on its way is dropped and still waits in the database."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self, model: ModelId, after: list[PassageId]) -> _Ahead | None:
        rows = vectors.awaiting(self._database.view, AT_ONCE + len(after))
        rows = [row for row in rows if row[0] not in set(after)][:AT_ONCE]
        if not rows:
            return None
        texts = [text for _, text in rows]
        call = self._thread.submit(self._embedder.passages, texts, model)
        return _Ahead(model, [passage for passage, _ in rows], call)

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
