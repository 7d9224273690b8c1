"""class Helper: the helper process, as whoever wants vectors sees it.

Hides: its socket, that it is started when it is needed, and that it may die at any time.
Promises: a vector is of the model that was asked for, or there is none. A helper that
can't be started, or a model that it can't load, is not tried again for some seconds,
so that a recall without a model is as fast as one with it.
"""

import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO

import numpy as np

from geniuzfs.config import Config
from geniuzfs.embed import models, place, wire
from geniuzfs.embed.stream import receive, send
from geniuzfs.errors import ModelUnavailable, TooLate, UnsafePlace
from geniuzfs.model import ModelId
from geniuzfs.ports import Embedder, Vectors

RETRY_SECONDS = 5.0
"""After a failure nothing is tried for so long."""

PATIENCE_SECONDS = 600.0
"""A helper that needs longer for one frame of passages hangs. On a busy machine it is given a
sixtieth of a CPU, so a quarter of a second's work may take 15.
"""

FRAMES_AHEAD = 2
"""Frames that are asked for at the same time, so that the helper never waits for the next."""

LOG = "embed.log"

_log = logging.getLogger(__name__)


def embedder(config: Config) -> Embedder:
    """What `config` says: a local Ollama, or the helper. Raises UsageError for a bad URL."""
    url = config.embedding.url
    if not url:
        return Helper(config)
    from geniuzfs.embed.ollama import Ollama  # here, since it brings http: 8 ms

    return Ollama.at(url)


class Helper:
    """Implements ports.Embedder. May be used from several threads at once: each call has a
    connection to itself.
    """

    def __init__(self, config: Config) -> None:
        self._home = config.home
        self._settings = config.embedding
        self._idle: list[socket.socket] = []
        self._changing = threading.Lock()
        self._away: dict[ModelId | None, tuple[float, str]] = {}  # until when, and why

    def model(self) -> ModelId:
        """See ports.Embedder."""
        return models.chosen(self._home)

    def passages(self, texts: Sequence[str], model: ModelId) -> Vectors:
        """See ports.Embedder. When the helper dies the frame that it had is asked for again, once;
        no vector is lost or doubled.
        """

        def embedded(frame: range) -> Vectors:
            asked = [texts[index] for index in frame]
            return self._embed("passages", asked, model, PATIENCE_SECONDS)

        frames = wire.frames(texts)
        if len(frames) <= 1:
            return embedded(frames[0]) if frames else np.empty((0, 0), np.float32)
        with ThreadPoolExecutor(FRAMES_AHEAD, "passages") as pool:
            return np.concatenate(list(pool.map(embedded, frames)))

    def query(self, text: str, model: ModelId, seconds: float) -> Vectors:
        """See ports.Embedder."""
        row: Vectors = self._embed("query", [text], model, seconds)[0]
        return row

    def state(self, seconds: float) -> wire.State | None:
        """The helper's process and its models; None when none runs. Starts none. Raises
        ModelUnavailable.
        """
        if not place.is_running(self._settings.runtime):
            return None
        try:
            connection = place.connect(self._settings.runtime, seconds)
            if connection is None:
                return None
            with connection:
                send(connection, wire.AskState())
                found = receive(connection, time.monotonic() + seconds)
        except ConnectionError:  # it has just ended
            return None
        except (OSError, wire.Malformed) as error:
            raise ModelUnavailable(f"the helper can't be reached: {error}") from error
        return found if isinstance(found, wire.State) else None

    def close(self) -> None:
        """Close the connections. The helper goes on for others, and ends when it is idle."""
        with self._changing:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _embed(self, kind: wire.Kind, texts: list[str], model: ModelId, seconds: float) -> Vectors:
        until = time.monotonic() + seconds
        self._check_away(model)
        directory = models.directory(self._home, model)
        ask = wire.Ask(kind, model, str(directory or ""), tuple(texts))
        answer = self._answer(ask, until)
        if isinstance(answer, wire.Failure):
            if answer.lasting:
                raise self._failed(model, answer.reason)
            raise ModelUnavailable(answer.reason)
        if (
            not isinstance(answer, wire.Answer)
            or answer.model != model
            or len(answer.rows) != len(texts)
        ):
            raise ModelUnavailable("the helper's answer makes no sense: is it of another version?")
        return answer.rows

    def _answer(self, ask: wire.Ask, until: float) -> wire.Message:
        """Ask; and once more, of a new helper, when this one dies meanwhile."""
        try:
            try:
                return self._asked_once(ask, until)
            except (OSError, wire.Malformed) as gone:
                if isinstance(gone, TimeoutError):
                    raise
                _log.info("the helper is gone (%s): asking again", gone)
                self.close()  # the other connections were to the same one
                return self._asked_once(ask, until)
        except TimeoutError as late:
            raise TooLate("the helper did not answer in time") from late
        except UnsafePlace as unsafe:
            raise self._failed(None, str(unsafe)) from unsafe
        except (OSError, wire.Malformed) as error:
            reason = f"the helper that holds the model ended or can't be reached: {error}"
            raise self._failed(None, reason) from error

    def _asked_once(self, ask: wire.Ask, until: float) -> wire.Message:
        connection = self._connection(until)
        try:
            connection.settimeout(_left(until))
            send(connection, ask)
            answer = receive(connection, until)
            if answer is None:
                raise ConnectionResetError("it closed the connection")
        except BaseException:
            connection.close()  # half an answer may be on its way: of no use to the next call
            raise
        with self._changing:
            self._idle.append(connection)
        return answer

    def _connection(self, until: float) -> socket.socket:
        """One that is idle, or a new one. Raises TimeoutError, OSError and UnsafePlace."""
        with self._changing:
            if self._idle:
                return self._idle.pop()
        while (connection := place.connect(self._settings.runtime, _left(until))) is None:
            self._start()
        return connection

    def _start(self) -> None:
        """Start a helper, unless another process has just done so."""
        import subprocess  # here, since the helper runs already most of the time: 1 ms

        listening = place.listen(self._settings.runtime)
        if listening is None:
            return
        command = [
            # -P: no module out of whatever directory this happens to be.
            *(sys.executable, "-P", "-m", "geniuzfs.cli.serve"),
            f"--listen-fd={listening.fileno()}",
            f"--idle={self._settings.idle_seconds}",
            f"--threads={self._settings.threads}",
        ]
        running = place.running(self._settings.runtime)
        with listening, self._log() as log, open(running, "rb"):
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(listening.fileno(), running),
                start_new_session=True,  # a scheduling group of its own, and no terminal
            )
        # So that it is no zombie when it ends, whenever that is.
        threading.Thread(target=process.wait, name="helper", daemon=True).start()

    def _log(self) -> BinaryIO:
        try:
            return open(self._home / LOG, "ab", opener=lambda path, how: os.open(path, how, 0o600))
        except OSError:  # no data directory yet
            return open(os.devnull, "wb")

    def _failed(self, model: ModelId | None, reason: str) -> ModelUnavailable:
        self._away[model] = (time.monotonic() + RETRY_SECONDS, reason)
        return ModelUnavailable(reason)

    def _check_away(self, model: ModelId) -> None:
        for key in (None, model):
            until, reason = self._away.get(key, (0.0, ""))
            if time.monotonic() < until:
                raise ModelUnavailable(reason)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
