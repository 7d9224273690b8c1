"""The helper: one process for each user, which holds the models and embeds.

Hides: threads, priority and what is loaded. Promises: a question waits for no passage
(they have threads of their own, at the lowest priority), every failure is answered with
a Failure, and the process ends when nobody has asked it anything for some time, which
gives the memory back. Refuses: connections of other users.
"""

import logging
import os
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from geniuzfs.embed import onnx, wire
from geniuzfs.embed.place import is_ours
from geniuzfs.embed.standing import Standing, keep_small, lowest_priority
from geniuzfs.embed.stream import receive, send
from geniuzfs.errors import GeniuzError, ModelUnavailable
from geniuzfs.model import ModelId
from geniuzfs.ports import Vectors

MODELS_KEPT = 2
"""The one that is chosen now, and the one before it, which answers until all is embedded anew."""

_log = logging.getLogger(__name__)


def serve(listening: socket.socket, *, idle_seconds: float, threads: int) -> None:
    """Answer until nobody has asked for `idle_seconds`. `threads` embed passages."""
    keep_small()
    standing = Standing()
    helper = _Helper(threads, standing)
    # Started before this thread steps back: what it starts inherits its priority, so questions
    # keep the normal one. Passages take the lowest for themselves.
    threading.Thread(target=helper.accept, args=(listening,), daemon=True).start()
    lowest_priority()
    standing.step_back()
    helper.wait_until_idle(idle_seconds)
    # The socket closes with the process. Whoever waits in its queue is reset, and starts anew.


class _Models:
    """What is loaded, the most recently used last."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[ModelId, onnx.Model] = OrderedDict()
        self._changing = threading.Lock()
        self._loading = threading.Lock()

    def ids(self) -> tuple[ModelId, ...]:
        with self._changing:
            return tuple(self._loaded)

    def get(self, model: ModelId, directory: str) -> onnx.Model:
        """The model, loaded if it is not. Raises ModelUnavailable. Others answer meanwhile."""
        found = self._known(model)
        if found is not None:
            return found
        with self._loading:
            found = self._known(model)
            if found is None:
                found = onnx.load(Path(directory) if directory else None)
                if found.card.id != model:
                    raise ModelUnavailable(
                        f"{directory or 'the model'} is now {found.card.id}, not {model}:"
                        " choose it anew"
                    )
                self._keep(found)
        return found

    def _known(self, model: ModelId) -> onnx.Model | None:
        with self._changing:
            found = self._loaded.get(model)
            if found is not None:
                self._loaded.move_to_end(model)
            return found

    def _keep(self, model: onnx.Model) -> None:
        with self._changing:
            self._loaded[model.card.id] = model
            while len(self._loaded) > MODELS_KEPT:
                self._loaded.popitem(last=False)


class _Helper:
    def __init__(self, threads: int, standing: Standing) -> None:
        self._models = _Models()
        self._standing = standing
        self._passages = ThreadPoolExecutor(threads, "passages", initializer=lowest_priority)
        self._activity = threading.Condition()
        self._asked = 0
        self._last = time.monotonic()

    def accept(self, listening: socket.socket) -> None:
        listening.setblocking(True)
        while True:
            connection, _ = listening.accept()
            if is_ours(connection):
                threading.Thread(target=self._converse, args=(connection,), daemon=True).start()
            else:
                connection.close()

    def wait_until_idle(self, seconds: float) -> None:
        with self._activity:
            while self._asked or time.monotonic() < self._last + seconds:
                rest = self._last + seconds - time.monotonic()
                self._activity.wait(seconds if self._asked else rest)

    def _converse(self, connection: socket.socket) -> None:
        with connection:
            try:
                while (asked := receive(connection)) is not None:
                    send(connection, self._answer(asked))
            except (OSError, wire.Malformed) as error:
                _log.debug("a connection ended: %s", error)

    @contextmanager
    def _busy(self) -> Iterator[None]:
        with self._activity:
            self._asked += 1
        try:
            yield
        finally:
            with self._activity:
                self._asked -= 1
                self._last = time.monotonic()
                self._activity.notify_all()

    def _answer(self, asked: wire.Message) -> wire.Message:
        try:
            match asked:
                case wire.AskState():  # keeps nobody awake
                    return wire.State(os.getpid(), self._models.ids())
                case wire.Ask():
                    with self._busy():
                        return self._embedded(asked)
                case _:
                    return wire.Failure("the helper answers, it does not ask", lasting=False)
        except GeniuzError as error:
            return wire.Failure(str(error), lasting=False)
        except Exception as error:  # noqa: BLE001 - whatever it is, whoever asked must be told
            _log.exception("embedding failed")
            return wire.Failure(f"the helper failed: {error!r}"[:300], lasting=False)

    def _embedded(self, asked: wire.Ask) -> wire.Message:
        if asked.kind == "query":
            self._standing.step_forward()  # loading the model included
        try:
            model = self._models.get(asked.model, asked.directory)
        except ModelUnavailable as error:
            return wire.Failure(str(error), lasting=True)
        if asked.kind == "query":
            rows = [model.query(text) for text in asked.texts]
        else:
            rows = self._passage_rows(model, asked.texts)
        return wire.Answer(asked.model, np.array(rows).reshape(-1, model.card.dimension))

    def _passage_rows(self, model: onnx.Model, texts: Sequence[str]) -> list[Vectors]:
        def embedded(index: int) -> tuple[int, Vectors]:
            self._standing.step_back()
            return index, model.passage(texts[index])

        # The longest first: so all threads end at about the same time.
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        found = dict(self._passages.map(embedded, order))
        return [found[index] for index in range(len(texts))]
