"""What makes vectors, without asking it: no helper is started, and no server called."""

from typing import NamedTuple

from geniuzfs.config import Config
from geniuzfs.embed import models, place
from geniuzfs.errors import ModelUnavailable


class Learns(NamedTuple):
    """What makes vectors. `helper`: whether its process runs, which is started when it is needed;
    None: Ollama does without."""

    model: str
    helper: bool | None
    trouble: str
    """Why there is no model, or ""."""

    def line(self) -> str:
        """In a line, for people."""
        if self.trouble:
            return f"model: none: {self.trouble}"
        state = "runs" if self.helper else "sleeps"
        return f"model: {self.model}" + ("" if self.helper is None else f", helper {state}")


def learns(config: Config) -> Learns:
    """As it is now."""
    if config.embedding.url is not None:
        return Learns(f"Ollama at {config.embedding.url}", None, "")
    try:
        model = models.chosen(config.home)
    except ModelUnavailable as error:
        return Learns("", None, str(error))
    return Learns(model, place.is_running(config.embedding.runtime), "")
