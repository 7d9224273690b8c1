"""Stand-ins for a model: one in this process, and a tiny real one for a helper process."""

import json
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from geniuzfs.embed import cards
from geniuzfs.embed.cards import Card
from geniuzfs.errors import ModelUnavailable
from geniuzfs.model import ModelId
from geniuzfs.ports import Vectors

DIMENSION = 384
_SEED = 20


class FakeEmbedder:
    """Implements ports.Embedder with hashed words: texts that share words are similar, and the
    same text always has the same vector. Counts the texts, and can be `away`.
    """

    def __init__(self, name: str = "fake@1", dimension: int = DIMENSION) -> None:
        self.id = ModelId(name)
        self.dimension = dimension
        self.away: str | None = None
        """Why there is no model just now, if there is none."""
        self.passages_embedded = 0
        self.queries_embedded = 0

    def model(self) -> ModelId:
        self._here()
        return self.id

    def passages(self, texts: Sequence[str], model: ModelId) -> Vectors:
        self._here()
        self.passages_embedded += len(texts)
        rows = [self._vector(text, model) for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), self.dimension)

    def query(self, text: str, model: ModelId, seconds: float) -> Vectors:
        self._here()
        self.queries_embedded += 1
        return self._vector(text, model)

    def _here(self) -> None:
        if self.away is not None:
            raise ModelUnavailable(self.away)

    def _vector(self, text: str, model: ModelId) -> Vectors:
        found = np.zeros(self.dimension, np.float32)
        found[0] = 0.1  # a text without words has a vector too
        for word in text.casefold().split():
            key = f"{model} {word.strip('.,;:!?')}"
            bit = zlib.crc32(key.encode("utf-8", "replace"))
            found[bit % self.dimension] += 1.0
        unit: Vectors = found / np.linalg.norm(found)
        return unit


def tiny_model(
    directory: Path,
    *,
    name: str = "tiny",
    dimension: int = 64,
    max_tokens: int = 64,
    query_prefix: str = "",
    passage_prefix: str = "",
    pooling: str = "mean",
    token_types: bool = False,
    words: Sequence[str] = (),
    broken: bool = False,
) -> Path:
    """Make a model directory that a real helper can load in some milliseconds, and return it.

    A piece is a word of `words`, or else a character; each has a random vector, and a text has
    the mean of its pieces': texts that share words are similar. `token_types`: the graph wants
    them too. `broken`: it fails on texts with one of the words.
    """
    directory.mkdir(parents=True, exist_ok=True)
    size = _tokenizer(words, directory / cards.TOKENIZER)
    weights = directory / "model.onnx"
    rows = size - len(words) if broken else size  # a piece without a row can't be looked up
    weights.write_bytes(_graph(rows, dimension, token_types=token_types))
    known = {
        "name": name,
        "pooling": pooling,
        "max_tokens": max_tokens,
        "query_prefix": query_prefix,
        "passage_prefix": passage_prefix,
        "dimension": dimension,
        "pad_id": 0,
        "sha256": cards.sha256(weights),
    }
    (directory / cards.FILE).write_text(json.dumps(known))
    assert isinstance(cards.read(directory), Card)
    return directory


def _tokenizer(words: Sequence[str], path: Path) -> int:
    characters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    pieces = dict.fromkeys(["[PAD]", "[UNK]", *characters, *("##" + c for c in characters), *words])
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(path))
    return len(vocabulary)


def _graph(size: int, dimension: int, *, token_types: bool) -> bytes:
    random = np.random.default_rng(_SEED)
    table = random.standard_normal((size, dimension)).astype(np.float32)
    constants = [numpy_helper.from_array(table, "table")]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["rows"])]
    inputs = ["input_ids", "attention_mask"]
    last = "rows"
    if token_types:
        # Their sum is 0: the vectors are the same as without.
        inputs.append("token_type_ids")
        axis = numpy_helper.from_array(np.array([-1], np.int64), "axis")
        constants.append(axis)
        nodes += [
            helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["types", "axis"], ["type"]),
            helper.make_node("Add", ["rows", "type"], ["typed"]),
        ]
        last = "typed"
    nodes.append(helper.make_node("Identity", [last], ["last_hidden_state"]))
    shape: list[str | int | None] = ["batch", "pieces"]
    given = [helper.make_tensor_value_info(one, TensorProto.INT64, shape) for one in inputs]
    states = [*shape, dimension]
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, states)
    graph = helper.make_graph(nodes, "tiny", given, [out], constants)
    versions = [helper.make_opsetid("", 17)]
    return bytes(helper.make_model(graph, opset_imports=versions, ir_version=8).SerializeToString())
