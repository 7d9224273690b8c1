"""One folder's learner: words first, then vectors, then order in the index.

Hides: in which order things are learned, and that there is one learner a folder. Promises: what
is due comes before what is merely useful; a model that is away delays vectors alone, and is
asked again every RETRY_SECONDS. A learner that is killed leaves everything still due.
"""

import fcntl
import logging
import time
from contextlib import suppress
from io import FileIO

from geniuzfs.errors import Busy, ModelUnavailable
from geniuzfs.learn.backlog import Backlog
from geniuzfs.learn.embedding import Embedding
from geniuzfs.ports import Embedder
from geniuzfs.store.connection import Database
from geniuzfs.store.passages import Waiting

RETRY_SECONDS = 30.0

_log = logging.getLogger(__name__)


class Learner:
    """Learns one folder. For one thread."""

    def __init__(self, database: Database, embedder: Embedder) -> None:
        self._database = database
        self._backlog = Backlog(database)
        self._embedding = Embedding(database, embedder)
        self._asked_again = 0.0
        self.model_note = ""
        """Why there are no vectors at the moment; "" while there are."""

    def begin(self) -> None:
        """Clear what a killed learner has left. Only with the folder's `Turn`."""
        self._backlog.begin()

    def step(self) -> bool:
        """Do some of what there is to do; False when there is nothing, or nothing can be done."""
        try:
            return self._backlog.step() or self._embed() or self._backlog.tidy()
        except Busy:  # another holds the lock for longer than the database waits
            return True

    def waiting(self) -> Waiting:
        """How much is due."""
        return self._backlog.waiting()

    def close(self) -> None:
        self._embedding.close()
        self._database.close()

    def _embed(self) -> bool:
        if self.model_note and time.monotonic() < self._asked_again:
            return False
        try:
            done = self._embedding.step()
        except ModelUnavailable as error:
            if str(error) != self.model_note:
                _log.info("no vectors: %s", error)
            self.model_note = str(error)
            self._asked_again = time.monotonic() + RETRY_SECONDS
            return False
        self.model_note = ""
        return done


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
