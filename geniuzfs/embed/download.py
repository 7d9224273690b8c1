"""A model from Hugging Face, on request: the one thing here that uses the network.

Promises: the directory appears whole or not at all, with the weights' sha256 in its card.
"""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from geniuzfs.embed import cards, models
from geniuzfs.embed.cards import Card
from geniuzfs.errors import ModelUnavailable, UsageError

WEIGHTS = "model.onnx"


@dataclass(frozen=True, slots=True)
class Offer:
    """A model whose card is known. `weights`: the file in its repository."""

    repository: str
    weights: str
    pooling: Literal["mean", "cls"]
    max_tokens: int
    query_prefix: str
    passage_prefix: str
    dimension: int
    pad_id: int


OFFERS = {
    # What Geniuz itself uses, with as many tokens: its vectors are ours (geniuzfs.learn.shared).
    # Unsigned weights: exact on every CPU, where signed ones saturate without VNNI
    # (geniuzfs.embed.e5).
    "paraphrase-multilingual-MiniLM-L12-v2": Offer(
        repository="sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
        weights="onnx/model_quint8_avx2.onnx",
        pooling="mean",
        max_tokens=512,
        query_prefix="",
        passage_prefix="",
        dimension=384,
        pad_id=1,
    ),
}


def download(home: Path, name: str) -> Path:
    """Fetch the model called `name` into `models/` and return its directory. Raises UsageError
    for a name that is not offered, ModelUnavailable when it can't be fetched.
    """
    offer = OFFERS.get(name)
    if offer is None:
        raise UsageError(f"no model is called {name!r}; there is {', '.join(OFFERS)}")
    target = home / models.DIRECTORY / name
    if target.exists():
        models.checked(target)
        return target
    try:
        _make(target, offer)
    except OSError as error:
        raise ModelUnavailable(f"{target} can't be written: {error}") from error
    return target


def _make(target: Path, offer: Offer) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".download-") as temporary:
        made = Path(temporary, target.name)
        made.mkdir()
        for source, file in ((cards.TOKENIZER, cards.TOKENIZER), (offer.weights, WEIGHTS)):
            shutil.copyfile(_fetched(offer.repository, source, Path(temporary)), made / file)
        cards.write(made, _card(target.name, offer, made / WEIGHTS))
        os.rename(made, target)


def _fetched(repository: str, file: str, temporary: Path) -> str:
    try:
        from huggingface_hub import hf_hub_download  # an extra: no other command needs it
    except ImportError:
        raise ModelUnavailable(
            'huggingface-hub is not installed: pip install "geniuzfs[download]"'
        ) from None
    try:
        return str(hf_hub_download(repository, file, local_dir=temporary / "fetched"))
    except Exception as error:  # its own errors, its HTTP library's, the system's
        reason = " ".join(str(error).split())[:200]
        raise ModelUnavailable(f"{repository}/{file} can't be fetched: {reason}") from error


def _card(name: str, offer: Offer, weights: Path) -> Card:
    return Card(
        name=name,
        pooling=offer.pooling,
        max_tokens=offer.max_tokens,
        query_prefix=offer.query_prefix,
        passage_prefix=offer.passage_prefix,
        dimension=offer.dimension,
        pad_id=offer.pad_id,
        sha256=cards.sha256(weights),
    )
