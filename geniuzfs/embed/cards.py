"""Model cards: what has to be known of a model to use it, and its identity.

A model directory holds `tokenizer.json`, `model*.onnx` and the card, `model.json`:

    {"name": "paraphrase-multilingual-MiniLM-L12-v2", "pooling": "mean", "max_tokens": 512,
     "query_prefix": "", "passage_prefix": "", "dimension": 384, "pad_id": 1,
     "sha256": "<of the .onnx file>"}

Refuses: a directory without a card. Pooling and prefixes can't be guessed, and wrong
ones give vectors that look well and find little.
"""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from geniuzfs.errors import UsageError
from geniuzfs.model import ModelId

FILE = "model.json"
TOKENIZER = "tokenizer.json"

_SHAPE = (
    '"name", "pooling" ("mean" or "cls"), "max_tokens", "query_prefix", "passage_prefix",'
    ' "dimension", "pad_id" and "sha256" (of the .onnx file)'
)


@dataclass(frozen=True, slots=True)
class Card:
    """What has to be known of a model. `max_tokens` counts the special tokens too."""

    name: str
    pooling: Literal["mean", "cls"]
    max_tokens: int
    query_prefix: str
    passage_prefix: str
    dimension: int
    pad_id: int
    """For whoever pads. Here every text runs by itself, without padding."""
    sha256: str
    """Of the file with the weights."""

    @property
    def id(self) -> ModelId:
        """Name, weights, and how they are used: whatever makes other vectors makes another id."""
        used = _use(self.pooling, self.max_tokens, self.query_prefix, self.passage_prefix)
        return ModelId(f"{self.name}@{self.sha256[:12]}-{used}")


def _use(pooling: str, max_tokens: int, query_prefix: str, passage_prefix: str) -> str:
    used = [pooling, max_tokens, query_prefix, passage_prefix]
    return hashlib.sha256(json.dumps(used).encode()).hexdigest()[:4]


_GENIUZ = re.compile(
    rf"paraphrase-multilingual-MiniLM-L12-v2@[0-9a-f]{{12}}-{_use('mean', 512, '', '')}"
)


def is_of_geniuz(model: ModelId) -> bool:
    """Whether it is the model of Geniuz, used as Geniuz does: 512 tokens, though it was made for
    128. Its weights are those for the machine.
    """
    return _GENIUZ.fullmatch(model) is not None


DEFAULT = Card(
    name="multilingual-e5-small",
    pooling="mean",
    max_tokens=512,
    query_prefix="query: ",
    passage_prefix="passage: ",
    dimension=384,
    pad_id=1,
    sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
)
"""The model that comes with the program (geniuzfs.embed.e5)."""


def read(directory: Path) -> Card:
    """The card of the model in `directory`. Raises UsageError, which says what it must contain."""
    try:
        found = json.loads((directory / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{directory / FILE} is missing: write one with {_SHAPE}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{directory / FILE} can't be read: {error}") from error
    return _checked(found, directory)


def write(directory: Path, card: Card) -> None:
    """Put the card into `directory`."""
    (directory / FILE).write_text(json.dumps(asdict(card), indent=2) + "\n", encoding="utf-8")


def weights(directory: Path) -> Path:
    """The one `model*.onnx`. Raises UsageError when there is none, or more."""
    found = sorted(directory.glob("model*.onnx"))
    if len(found) != 1:
        named = ", ".join(path.name for path in found) or "none"
        raise UsageError(f"{directory} must hold exactly one model*.onnx; there is {named}")
    return found[0]


def sha256(path: Path) -> str:
    """Of the file's bytes, in hexadecimal. Read, not mapped: mapped pages would stay resident."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked(found: Any, directory: Path) -> Card:
    names = {field.name for field in fields(Card)}
    if not isinstance(found, dict) or not names <= found.keys() or not _sensible(found):
        raise UsageError(f"{directory / FILE} must contain {_SHAPE}")
    return Card(**{name: found[name] for name in names})


def _sensible(found: dict[str, Any]) -> bool:
    texts = ("name", "query_prefix", "passage_prefix", "sha256")
    numbers = ("max_tokens", "dimension", "pad_id")
    return (
        all(isinstance(found[name], str) for name in texts)
        and all(type(found[name]) is int and found[name] >= 0 for name in numbers)
        and found["pooling"] in ("mean", "cls")
        and found["max_tokens"] > 2
        and found["dimension"] > 0
        and re.fullmatch(r"[^\s@]{1,200}", found["name"]) is not None
        and re.fullmatch(r"[0-9a-f]{64}", found["sha256"]) is not None
    )
