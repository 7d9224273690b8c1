"""geniuzfs with the made-up model of tests.bench.corpus in place of the helper: `python -m
tests.bench.made_up mount ...`. A question's vector takes no time then, so what is measured is all
the rest.
"""

import zlib
from collections.abc import Sequence

import numpy as np

from geniuzfs import cli, runtime
from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.model import ModelId
from geniuzfs.ports import SystemClock, Vectors
from tests.bench.corpus import MODEL, TOPICS, Corpus


class MadeUp:
    """Implements ports.Embedder: a text has the vector of a topic, by its hash."""

    def __init__(self) -> None:
        self._vectors = Corpus(3).vectors(list(range(TOPICS)))

    def model(self) -> ModelId:
        return MODEL

    def passages(self, texts: Sequence[str], model: ModelId) -> Vectors:
        return np.array([self.query(text, model, 0) for text in texts], np.float32)

    def query(self, text: str, model: ModelId, seconds: float) -> Vectors:
        row: Vectors = self._vectors[zlib.crc32(text.encode()) % TOPICS]
        return row


def geniuz(config: Config | None = None) -> Geniuz:
    return Geniuz(config or Config.from_environment(), SystemClock(), MadeUp())


if __name__ == "__main__":
    runtime.geniuz = geniuz
    cli.main()
