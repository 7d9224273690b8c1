"""class Ollama: vectors from an Ollama that runs on this machine.

Hides: its HTTP interface (/api/tags, /api/embed). Promises: vectors are stamped with the
model's name and digest, so those of another model, or of a newer pull, are never
compared with them. Refuses: any address that is not this machine's own. Notes go there
as they are, and nothing may leave. No proxy is used and no redirect followed.
"""

import http.client
import ipaddress
import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

from geniuzfs.embed import wire
from geniuzfs.errors import ModelUnavailable, TooLate, UsageError
from geniuzfs.model import ModelId
from geniuzfs.ports import Vectors

PATIENCE_SECONDS = 120.0
LOOK_SECONDS = 2.0
"""For the list of models, which is at hand."""

DEFAULT_PORT = 11434


class Ollama:
    """Implements ports.Embedder. May be used from several threads at once."""

    def __init__(self, host: str, port: int, name: str) -> None:
        self._host = host
        self._port = port
        self._name = name

    @classmethod
    def at(cls, url: str) -> "Ollama":
        """The model that `http://127.0.0.1:11434#NAME` names. Raises UsageError."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port or DEFAULT_PORT
        except ValueError:
            raise UsageError(f"GENIUZ_EMBED_URL is no URL: {url!r}") from None
        name = unquote(parts.fragment)
        if parts.scheme != "http" or parts.path not in ("", "/") or not name:
            raise UsageError(
                f"GENIUZ_EMBED_URL must be like http://127.0.0.1:{DEFAULT_PORT}#MODEL, not {url!r}"
            )
        return cls(_own_address(host), port, name)

    def model(self) -> ModelId:
        """See ports.Embedder."""
        return self._pulled(LOOK_SECONDS)

    def passages(self, texts: Sequence[str], model: ModelId) -> Vectors:
        """See ports.Embedder."""
        self._check(model, LOOK_SECONDS)
        rows = [
            self._embed([texts[index] for index in frame], PATIENCE_SECONDS)
            for frame in wire.frames(texts)
        ]
        return np.concatenate(rows) if rows else np.empty((0, 0), np.float32)

    def query(self, text: str, model: ModelId, seconds: float) -> Vectors:
        """See ports.Embedder."""
        until = time.monotonic() + seconds
        self._check(model, min(seconds, LOOK_SECONDS))
        row: Vectors = self._embed([text], until - time.monotonic())[0]
        return row

    def _pulled(self, seconds: float) -> ModelId:
        found = self._ask("GET", "/api/tags", None, seconds)
        wanted = {self._name, f"{self._name}:latest"}
        for known in found.get("models", ()):
            if known.get("name") in wanted:
                digest = str(known.get("digest", "")).removeprefix("sha256:")
                return ModelId(f"ollama:{self._name}@{digest[:12]}")
        raise ModelUnavailable(f"Ollama has no model {self._name}: ollama pull {self._name}")

    def _check(self, model: ModelId, seconds: float) -> None:
        now = self._pulled(seconds)
        if now != model:
            raise ModelUnavailable(f"Ollama's model is now {now}, not {model}")

    def _embed(self, texts: list[str], seconds: float) -> Vectors:
        asked = {"model": self._name, "input": texts, "truncate": True}
        found = self._ask("POST", "/api/embed", asked, seconds)
        try:
            rows = np.array(found["embeddings"], np.float32)
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        except (KeyError, ValueError, TypeError) as error:
            raise ModelUnavailable(f"Ollama's answer makes no sense: {error}") from error
        if len(rows) != len(texts) or not np.isfinite(lengths).all() or not lengths.all():
            raise ModelUnavailable("Ollama's answer makes no sense: not a vector for each text")
        unit: Vectors = rows / lengths
        return unit

    def _ask(self, method: str, path: str, asked: Any, seconds: float) -> dict[str, Any]:
        if seconds <= 0:
            raise TooLate("Ollama did not answer in time")
        connection = http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        try:
            body = None if asked is None else json.dumps(asked)
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            found = json.loads(answer.read())
        except TimeoutError as error:
            raise TooLate("Ollama did not answer in time") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ModelUnavailable(f"Ollama can't be reached: {error}") from error
        finally:
            connection.close()
        if answer.status != 200 or not isinstance(found, dict):
            raise ModelUnavailable(f"Ollama refuses: {answer.status} {str(found)[:200]}")
        return found


def _own_address(host: str) -> str:
    if host == "localhost":
        return "127.0.0.1"  # whatever the resolver thinks of it
    try:
        own = ipaddress.ip_address(host).is_loopback
    except ValueError:
        own = False
    if not own:
        raise UsageError(f"GENIUZ_EMBED_URL: {host!r} is not this machine, and notes stay on it")
    return host
