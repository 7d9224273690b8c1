"""The one place where the parts are put together."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from geniuzfs.api import Geniuz
from geniuzfs.config import Config, here
from geniuzfs.model import ModelId
from geniuzfs.ports import Embedder, SystemClock, Vectors

if TYPE_CHECKING:
    from geniuzfs.api.opened import Opened


def geniuz(config: Config | None = None) -> Geniuz:
    """The program as the environment wants it, or as `config` says."""
    config = config or Config.from_environment()
    return Geniuz(config, SystemClock(), _InTime(config))


def opened(name: str | None = None) -> "Opened":
    """The folder called `name`, or the one that is meant in the current directory, held open."""
    return geniuz().opened(name, here=here(), owns=True)


class _InTime:
    """The embedder that `config` says, imported when something is embedded: what need not wait for
    numpy, 0.1 s, does not. Implements ports.Embedder.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        if config.embedding.url is not None:  # a bad one is told at once
            _ = self._embedder

    @cached_property
    def _embedder(self) -> Embedder:
        from geniuzfs.embed.client import embedder

        return embedder(self._config)

    def model(self) -> ModelId:
        return self._embedder.model()

    def passages(self, texts: Sequence[str], model: ModelId) -> Vectors:
        return self._embedder.passages(texts, model)

    def query(self, text: str, model: ModelId, seconds: float) -> Vectors:
        return self._embedder.query(text, model, seconds)
