"""Frames: what is decoded is what was encoded, and other bytes are refused."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from geniuzfs.embed import wire
from geniuzfs.model import ModelId
from geniuzfs.ports import Vectors

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
MODEL = TEXT.map(ModelId)
ROWS = arrays.arrays(
    np.float32,
    st.tuples(st.integers(0, 5), st.integers(1, 9)),
    elements=st.floats(-1, 1, width=32),
)
MESSAGES = st.one_of(
    st.builds(
        wire.Ask,
        st.sampled_from(["query", "passages"]),
        MODEL,
        TEXT,
        st.lists(TEXT, max_size=9).map(tuple),
    ),
    st.builds(wire.AskState),
    st.builds(wire.State, st.integers(1, 1 << 22), st.lists(MODEL, max_size=3).map(tuple)),
    st.builds(wire.Failure, TEXT, st.booleans()),
)


def decoded(frame: bytes) -> wire.Message:
    head, body = wire.lengths(frame[: wire.PREFIX_BYTES])
    rest = frame[wire.PREFIX_BYTES :]
    assert len(rest) == head + body
    return wire.decode(rest[:head], rest[head:])


@given(MESSAGES)
def test_a_message_is_itself_again(message: wire.Message) -> None:
    assert decoded(wire.encode(message)) == message


@given(MODEL, ROWS)
def test_vectors_are_themselves_again(model: ModelId, rows: Vectors) -> None:
    found = decoded(wire.encode(wire.Answer(model, rows)))
    assert isinstance(found, wire.Answer)
    assert found.model == model
    assert found.rows.dtype == np.float32
    assert np.array_equal(found.rows, rows)


def test_half_a_character_becomes_a_question_mark() -> None:
    ask = wire.Ask("query", ModelId("m"), "", ("a\ud800b",))
    assert decoded(wire.encode(ask)) == wire.Ask("query", ModelId("m"), "", ("a?b",))


@given(st.binary(min_size=wire.PREFIX_BYTES, max_size=wire.PREFIX_BYTES))
def test_a_prefix_of_other_bytes_is_refused(prefix: bytes) -> None:
    if prefix[:4] != b"gzE1":
        with pytest.raises(wire.Malformed):
            wire.lengths(prefix)


@pytest.mark.parametrize("sizes", [(wire.HEAD_MAX + 1, 0), (0, wire.BODY_MAX + 1)])
def test_a_frame_that_would_fill_the_memory_is_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(wire.Malformed):
        wire.lengths(struct.pack("<4sII", b"gzE1", *sizes))


@given(st.binary(max_size=60), st.binary(max_size=20))
def test_a_head_of_other_bytes_is_refused(head: bytes, body: bytes) -> None:
    with pytest.raises(wire.Malformed):
        wire.decode(b"!" + head, body)


@pytest.mark.parametrize(
    "head",
    [
        b"[]",
        b"null",
        b"{}",
        b'{"is": "other"}',
        b'{"is": "query", "model": "m", "directory": "", "lengths": [5]}',
        b'{"is": "query", "model": "m", "directory": "", "lengths": [-1, 3]}',
        b'{"is": "query", "model": "m", "directory": "", "lengths": "ab"}',
        b'{"is": "vectors", "model": "m", "shape": [1, 2]}',
        b'{"is": "vectors", "model": "m", "shape": [1]}',
        b'{"is": "state", "pid": "x", "models": []}',
    ],
)
def test_a_head_that_makes_no_sense_is_refused(head: bytes) -> None:
    with pytest.raises(wire.Malformed):
        wire.decode(head, b"ab")


@given(st.lists(st.text(max_size=40), max_size=200))
def test_frames_hold_all_texts_in_order(texts: list[str]) -> None:
    found = wire.frames(texts)
    assert [index for frame in found for index in frame] == list(range(len(texts)))
    assert all(0 < len(frame) <= wire.TEXTS_MAX for frame in found)


def test_a_frame_ends_where_its_texts_would_be_too_long() -> None:
    large = "é" * (wire.TEXT_BYTES_MAX // 4)
    assert wire.frames([large] * 3) == [range(2), range(2, 3)]
    assert wire.frames([large * 9, "b"]) == [range(1), range(1, 2)]
