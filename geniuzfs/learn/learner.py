"""One folder's learner: words first, then vectors, then order in the index and in the history.

Hides: in which order things are learned, and that there is one learner a folder. Promises: what
is due comes before what is merely useful; a model that is away delays vectors alone, and is
asked again every RETRY_SECONDS, or at once when another one is chosen. A learner that is killed
leaves everything still due.
"""

import fcntl
import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from io import FileIO

from geniuzfs.errors import Busy, ModelUnavailable, Moved
from geniuzfs.learn.backlog import Aside, Backlog, here
from geniuzfs.learn.embedding import Embedding
from geniuzfs.model import ModelId
from geniuzfs.ports import Embedder
from geniuzfs.store import retention, versions
from geniuzfs.store.connection import Database
from geniuzfs.store.passages import Waiting

RETRY_SECONDS = 30.0

LOG_PAGES = 4_000
"""Pages (16 MiB) in the write-ahead log that start a checkpoint: a mount counts its own alone."""

_log = logging.getLogger(__name__)


class Learner:
    """Learns one folder. For one thread."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        now_ns: Callable[[], int],
        retry_seconds: float = RETRY_SECONDS,
        aside: Aside = here,
    ) -> None:
        self._database = database
        self._now_ns = now_ns
        self._retry_seconds = retry_seconds
        self._backlog = Backlog(database, aside)
        self._embedding = Embedding(database, embedder)
        self._embedder = embedder
        self._version: object = None
        self._away: ModelId | None = None
        self._asked_again = 0.0
        self._expires_at = -math.inf
        self.model_note = ""
        """Why there are no vectors at the moment; "" while there are."""

    def begin(self) -> None:
        """Clear what a killed learner has left. Only with the folder's `Turn`."""
        self._backlog.begin()

    def step(self) -> bool:
        """Do some of what there is to do; False when there is nothing, or nothing can be done."""
        try:
            worked = self._backlog.step() or self._embed() or self._backlog.tidy() or self._expire()
            if self._database.wal_pages > LOG_PAGES:
                self._database.checkpoint(hold_writers=False)
        except Moved:  # nothing here is to be learned any more
            return False
        except Busy:  # another holds the lock for longer than the database waits
            return True
        return worked

    def waiting(self) -> Waiting:
        """How much is due."""
        return self._backlog.waiting()

    def others_wrote(self) -> bool:
        """Whether anybody else has committed something since the last call."""
        before, self._version = self._version, self._database.version()
        return before != self._version

    def close(self) -> None:
        self._embedding.close()
        self._database.close()

    def _expire(self) -> bool:
        """Remove some versions that are kept no longer: a folder may never be mounted."""
        if time.monotonic() < self._expires_at or not any(
            versions.oldest_and_newest(self._database.view)
        ):
            return False
        with self._database.txn() as txn:
            more = retention.expire(txn, self._now_ns())
        if not more:
            self._expires_at = time.monotonic() + retention.CHECK_SECONDS
        return more

    def _embed(self) -> bool:
        early = time.monotonic() < self._asked_again
        if self.model_note and early and self._away == self._chosen():
            return False
        try:
            done = self._embedding.step()
        except ModelUnavailable as error:
            if str(error) != self.model_note:
                _log.info("no vectors: %s", error)
            self.model_note = str(error)
            self._away = self._chosen()
            self._asked_again = time.monotonic() + self._retry_seconds
            return False
        self.model_note = ""
        return done

    def _chosen(self) -> ModelId | None:
        """None: that can't be read."""
        try:
            return self._embedder.model()
        except ModelUnavailable:
            return None


class Turn:
    """The right to be the one learner of a folder, among all processes: a lock on a file
    beside its database, which ends with the process.
    """

    def __init__(self, database: Database) -> None:
        self._path = database.path.with_name(database.path.name + "-learner")
        self._file: FileIO | None = None

    def take(self) -> bool:
        """Whether it could be had; at once."""
        held = FileIO(self._path, "wb")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.close()
            return False
        self._file = held
        return True

    def give_back(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None
