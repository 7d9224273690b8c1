"""The one place where the parts are put together."""

from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.embed.client import embedder
from geniuzfs.ports import SystemClock


def geniuz(config: Config | None = None) -> Geniuz:
    """The program as the environment wants it, or as `config` says."""
    config = config or Config.from_environment()
    return Geniuz(config, SystemClock(), embedder(config))
