"""What client and helper say to each other: frames of bytes.

Hides: their layout. Promises: decode(encode(message)) is the message, and bytes that
are no frame raise Malformed. A failure is a frame of its own kind: it can't be taken
for a vector.

A frame is a prefix (magic, length of the head, length of the body), a head (one JSON
object) and a body: the texts in UTF-8 one after another, or the vectors in rows of
float32, little-endian.
"""

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from geniuzfs.model import ModelId

_PREFIX = struct.Struct("<4sII")
_MAGIC = b"gzE1"
PREFIX_BYTES = _PREFIX.size

HEAD_MAX = 1 << 20
BODY_MAX = 1 << 26

TEXTS_MAX = 32
"""Texts in a frame: a quarter of a second's work on an idle machine."""
TEXT_BYTES_MAX = 1 << 20
"""Bytes of text in a frame, unless it is a single text."""

Kind = Literal["query", "passages"]

_ROW_TYPE = np.dtype("<f4")


class Malformed(Exception):
    """These bytes are no frame; what follows them can't be understood either."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Embed `texts` with `model`, which lies in `directory` (empty: the one that is shipped)."""

    kind: Kind
    model: ModelId
    directory: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AskState:
    """Who are you, and what do you hold?"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A row for each text, in their order."""

    model: ModelId
    rows: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class State:
    """The helper's process, and the models that are loaded."""

    pid: int
    models: tuple[ModelId, ...]


@dataclass(frozen=True, slots=True)
class Failure:
    """There are no vectors, and why: one line. `lasting`: because there is no model, so that the
    next question would fare no better; else it was for these texts.
    """

    reason: str
    lasting: bool


Message = Ask | AskState | Answer | State | Failure


def encode(message: Message) -> bytes:
    """The message as one frame. A text's lone surrogates become question marks."""
    head: dict[str, object]
    body = b""
    match message:
        case Ask(kind, model, directory, texts):
            encoded = [text.encode("utf-8", "replace") for text in texts]
            lengths = [len(text) for text in encoded]
            head = {"is": kind, "model": model, "directory": directory, "lengths": lengths}
            body = b"".join(encoded)
        case AskState():
            head = {"is": "ask-state"}
        case Answer(model, rows):
            head = {"is": "vectors", "model": model, "shape": list(rows.shape)}
            body = rows.astype(_ROW_TYPE).tobytes()
        case State(pid, models):
            head = {"is": "state", "pid": pid, "models": models}
        case Failure(reason, lasting):
            head = {"is": "failure", "reason": reason, "lasting": lasting}
    written = json.dumps(head).encode()
    return _PREFIX.pack(_MAGIC, len(written), len(body)) + written + body


def lengths(prefix: bytes) -> tuple[int, int]:
    """Bytes of head and body that follow these PREFIX_BYTES. Raises Malformed."""
    magic, head, body = _PREFIX.unpack(prefix)
    if magic != _MAGIC or head > HEAD_MAX or body > BODY_MAX:
        raise Malformed("not a frame of this version")
    return head, body


def decode(head: bytes, body: bytes) -> Message:
    """The message of a frame. Raises Malformed."""
    try:
        return _message(json.loads(head), body)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Malformed(f"a frame that makes no sense: {error}") from error


def frames(texts: Sequence[str]) -> list[range]:
    """The texts' indices, in runs that fit a frame each."""
    found: list[range] = []
    start = filled = 0
    for index, text in enumerate(texts):
        size = len(text.encode("utf-8", "replace"))
        if index > start and (index - start == TEXTS_MAX or filled + size > TEXT_BYTES_MAX):
            found.append(range(start, index))
            start, filled = index, 0
        filled += size
    return [*found, range(start, len(texts))] if texts else []


def _message(head: dict[str, Any], body: bytes) -> Message:
    match head["is"]:
        case "query" | "passages" as kind:
            texts = _texts(head["lengths"], body)
            return Ask(kind, ModelId(str(head["model"])), str(head["directory"]), texts)
        case "ask-state":
            return AskState()
        case "vectors":
            count, dimension = head["shape"]
            rows = np.frombuffer(body, _ROW_TYPE).reshape(count, dimension)
            return Answer(ModelId(str(head["model"])), rows.astype(np.float32))
        case "state":
            models = tuple(ModelId(str(model)) for model in head["models"])
            return State(int(head["pid"]), models)
        case "failure":
            return Failure(str(head["reason"]), bool(head["lasting"]))
        case other:
            raise ValueError(f"unknown kind {other!r}")


def _texts(sizes: list[int], body: bytes) -> tuple[str, ...]:
    texts, at = [], 0
    for size in sizes:
        if size < 0:
            raise ValueError("a text of negative length")
        texts.append(body[at : at + size].decode("utf-8"))
        at += size
    if at != len(body):
        raise ValueError("the texts' lengths are not the body's")
    return tuple(texts)
