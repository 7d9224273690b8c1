"""Builds `geniuzfs/embed/e5-small.onnx`: multilingual-e5-small's graph, without its weights.

    python tests/embed/graph.py

The graph begins with the sum of word and place vectors of ONE text, so it knows no padding
and has no mask: with two texts in two threads that gave 158 passages a second where 16 padded
texts at once, in two threads, gave 121. The 8-bit products quantise their input as a whole, so
a vector depends on its text alone, not on what happened to be in the same batch.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from geniuzfs.embed.e5 import GRAPH, HIDDEN, INNER, LAYERS, norms, products

HEADS = 12
EPSILON = 1e-12
_FUSED = "com.microsoft"


def build(*, masked: bool = False) -> bytes:
    """The file's bytes. `masked`: with an input "mask" that hides padding, (batch, 1, 1, pieces),
    0 or a large negative number: for comparisons.
    """
    shape: list[str | int | None] = ["batch", "pieces", HIDDEN]
    inputs = [helper.make_tensor_value_info("embedded", TensorProto.FLOAT, shape)]
    if masked:
        hidden: list[str | int | None] = ["batch", 1, 1, "pieces"]
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.FLOAT, hidden))
    graph = helper.make_graph(
        list(_nodes(masked)),
        "multilingual-e5-small",
        inputs,
        [helper.make_tensor_value_info("states", TensorProto.FLOAT, shape)],
        [*_constants(), *given()],
    )
    versions = [helper.make_opsetid("", 21), helper.make_opsetid(_FUSED, 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=10)
    return bytes(model.SerializeToString(deterministic=True))


def _nodes(masked: bool) -> Iterator[NodeProto]:
    gain, shift = "embedding.norm.gain", "embedding.norm.shift"
    state = "embedding.norm"
    yield _node("LayerNormalization", ["embedded", gain, shift], [state], epsilon=EPSILON)
    for layer in range(LAYERS):
        name = f"l{layer}."
        yield from _attention(name, state, masked)
        yield from _added(name + "out", name + "attended", state)
        yield _product(name + "up", name + "out.norm")
        yield _node("Gelu", [name + "up"], [name + "gelu"], fused=True)
        yield from _added(name + "down", name + "gelu", name + "out.norm")
        state = name + "down.norm"
    yield _node("Identity", [state], ["states"])


def _attention(name: str, state: str, masked: bool) -> Iterator[NodeProto]:
    query, key, value = (name + part for part in ("query", "key", "value"))
    yield _product(name + "qkv", state)
    yield _node("Reshape", [name + "qkv", "to_heads"], [name + "heads"])
    yield _node("Transpose", [name + "heads"], [name + "by_head"], perm=[0, 2, 1, 3])
    split = [query, key, value]
    yield _node("Split", [name + "by_head"], split, axis=1, num_outputs=3)
    yield _node("Mul", [query, "scale"], [name + "scaled"])
    yield _node("Transpose", [key], [name + "across"], perm=[0, 1, 3, 2])
    yield _node("MatMul", [name + "scaled", name + "across"], [name + "scores"])
    seen = name + "scores"
    if masked:
        seen = name + "seen"
        yield _node("Add", [name + "scores", "mask"], [seen])
    yield _node("Softmax", [seen], [name + "shares"], axis=-1)
    yield _node("MatMul", [name + "shares", value], [name + "mixed"])
    yield _node("Transpose", [name + "mixed"], [name + "by_piece"], perm=[0, 2, 1, 3])
    yield _node("Reshape", [name + "by_piece", "to_states"], [name + "attended"])


def _added(name: str, source: str, state: str) -> Iterator[NodeProto]:
    """norm(state + source x matrix)."""
    norm = f"{name}.norm"
    yield _product(name, source)
    inputs = [state, name, f"{norm}.gain", f"{norm}.shift"]
    yield _node("SkipLayerNormalization", inputs, [norm], fused=True, epsilon=EPSILON)


def _product(name: str, source: str) -> NodeProto:
    inputs = [source, f"{name}.weights", f"{name}.scales", "", f"{name}.bias"]
    return _node("DynamicQuantizeMatMul", inputs, [name], fused=True)


def _node(
    kind: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    fused: bool = False,
    **attributes: Any,
) -> NodeProto:
    domain = _FUSED if fused else ""
    return helper.make_node(kind, inputs, outputs, domain=domain, **attributes)


def _constants() -> list[TensorProto]:
    size = HIDDEN // HEADS
    return [
        numpy_helper.from_array(np.array([0, 0, 3 * HEADS, size], np.int64), "to_heads"),
        numpy_helper.from_array(np.array([0, 0, HIDDEN], np.int64), "to_states"),
        numpy_helper.from_array(np.array(size**-0.5, np.float32), "scale"),
    ]


def given() -> Iterator[TensorProto]:
    """The tensors that come from memory."""
    for name, _source in norms():
        for part in ("gain", "shift"):
            yield _outside(f"{name}.{part}", TensorProto.FLOAT, [HIDDEN])
    for product in products():
        shape = [product.inputs, product.outputs]
        yield _outside(f"{product.name}.weights", TensorProto.INT8, shape)
        for part in ("scales", "bias"):
            yield _outside(f"{product.name}.{part}", TensorProto.FLOAT, [product.outputs])


def _outside(name: str, kind: int, shape: list[int]) -> TensorProto:
    tensor = TensorProto(name=name, data_type=kind, dims=shape)
    tensor.data_location = TensorProto.EXTERNAL
    bytes_each = 1 if kind == TensorProto.INT8 else 4
    for key, value in (
        ("location", "given from memory"),
        ("offset", "0"),
        ("length", str(bytes_each * int(np.prod(shape)))),
    ):
        tensor.external_data.add(key=key, value=value)
    return tensor


if __name__ == "__main__":
    assert INNER == 4 * HIDDEN
    GRAPH.write_bytes(build())
