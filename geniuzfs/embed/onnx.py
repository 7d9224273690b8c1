"""A loaded model: the only place that runs one. Imported by the helper alone.

Hides: onnxruntime and tokenizers, and whether the model is the one that is shipped or
one in a directory. Promises: a vector depends on its text alone, is finite and of length
1, or there is none (ModelUnavailable). May be used from several threads at once: each
runs its text by itself, in one thread (tests/embed/graph.py says why).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from geniuzfs.embed import cards, e5
from geniuzfs.embed.cards import Card
from geniuzfs.embed.standing import give_back
from geniuzfs.errors import ModelUnavailable, UsageError
from geniuzfs.ports import Vectors

Feed = Callable[[str], dict[str, NDArray[Any]]]
"""Makes of a text, with its prefix, what the graph is given."""


class Model:
    """A model in memory. Make one with `load`."""

    def __init__(self, card: Card, session: onnxruntime.InferenceSession, feed: Feed) -> None:
        self.card = card
        self._session = session
        self._feed = feed
        self._output = _output(session)

    def passage(self, text: str) -> Vectors:
        """The vector of a passage: (dimension,). Raises ModelUnavailable."""
        return self._vector(self.card.passage_prefix + text)

    def query(self, text: str) -> Vectors:
        """The vector of a question: (dimension,). Raises ModelUnavailable."""
        return self._vector(self.card.query_prefix + text)

    def _vector(self, text: str) -> Vectors:
        try:
            states = self._session.run([self._output], self._feed(text))[0][0]
        except Exception as error:  # onnxruntime raises classes of its own, straight from Exception
            raise ModelUnavailable(f"the model {self.card.name} failed: {_line(error)}") from error
        pooled = states[0] if self.card.pooling == "cls" else states.mean(axis=0)
        length = float(np.linalg.norm(pooled))
        if pooled.shape != (self.card.dimension,) or not 0 < length < np.inf:
            raise ModelUnavailable(
                f"the model {self.card.name} gave no vector of {self.card.dimension} numbers"
            )
        unit: Vectors = (pooled / np.float32(length)).astype(np.float32)
        return unit


def load(directory: Path | None) -> Model:
    """The model in `directory`; None: the one that is shipped. Raises ModelUnavailable when it
    is missing, damaged or can't be run.
    """
    model = _shipped() if directory is None else _from_directory(directory)
    # What loading needed goes back to the system: 20 MB of weights that now exist as packed.
    give_back()
    return model


def _shipped() -> Model:
    parts = e5.E5(e5.find())
    limit = cards.DEFAULT.max_tokens - 2
    tensors = parts.tensors()
    options = _options()
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(tensor) for tensor in tensors.values()]
    options.add_external_initializers(list(tensors), values)

    def feed(text: str) -> dict[str, NDArray[Any]]:
        numbers = [e5.BEGIN, *parts.segmenter.segment(text, limit), e5.END]
        return {"embedded": parts.embedded(numbers)}

    return Model(cards.DEFAULT, _session(e5.GRAPH, options), feed)


def _from_directory(directory: Path) -> Model:
    try:
        card, weights = cards.read(directory), cards.weights(directory)
        if cards.sha256(weights) != card.sha256:
            raise ModelUnavailable(f"{weights} is not what its card says: the sha256 differs")
        tokenizer = Tokenizer.from_file(str(directory / cards.TOKENIZER))
    except UsageError as error:
        raise ModelUnavailable(str(error)) from error
    except ModelUnavailable:
        raise
    except Exception as error:  # tokenizers raises a bare Exception
        raise ModelUnavailable(f"{directory} can't be read: {_line(error)}") from error
    tokenizer.enable_truncation(card.max_tokens)
    tokenizer.no_padding()
    session = _session(weights, _options())
    return Model(card, session, _tokenized(tokenizer, session))


def _tokenized(tokenizer: Tokenizer, session: onnxruntime.InferenceSession) -> Feed:
    wanted = {given.name for given in session.get_inputs()}

    def feed(text: str) -> dict[str, NDArray[Any]]:
        encoded = tokenizer.encode(text)
        ids = np.array([encoded.ids], np.int64)
        given = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        return {name: value for name, value in given.items() if name in wanted}

    return feed


def _output(session: onnxruntime.InferenceSession) -> str:
    names = [output.name for output in session.get_outputs()]
    return "last_hidden_state" if "last_hidden_state" in names else str(names[0])


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    # The arena never gives back what the longest text needed: 182 MB against 114, same speed.
    options.enable_cpu_mem_arena = False
    return options


def _session(graph: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises classes of its own, straight from Exception
        raise ModelUnavailable(f"{graph.name} can't be run: {_line(error)}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
