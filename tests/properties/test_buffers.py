"""A buffer over pieces reads and saves as plain bytes would, in whatever order things come."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from geniuzfs.errors import FileTooLarge
from geniuzfs.fs import buffers
from geniuzfs.fs.buffers import Buffer
from geniuzfs.model import Piece

CHUNK = 16
"""Bytes in a piece here: with few, every edge is met often, and a counterexample is short."""

LARGEST = 6 * CHUNK
LIMIT = 3 * CHUNK
CLEAN = 2
"""Clean pieces that may be kept here, so that letting go of them happens often."""

# At and beside the edges of pieces, where mistakes live.
OFFSETS = st.one_of(
    st.integers(0, LARGEST),
    st.builds(
        lambda piece, beside: max(piece * CHUNK + beside, 0), st.integers(0, 6), st.integers(-3, 3)
    ),
)
LENGTHS = st.one_of(
    st.integers(0, 20), st.sampled_from([CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 7])
)


def pieces_of(stored: dict[int, bytes], size: int) -> bytearray:
    """What the store holds, as plain bytes."""
    whole = bytearray(size)
    for number, piece in stored.items():
        assert 0 < len(piece) <= CHUNK
        assert number * CHUNK + len(piece) <= size
        whole[number * CHUNK : number * CHUNK + len(piece)] = piece
    return whole


class BufferMachine(RuleBasedStateMachine):
    """`plain` is the file as its writers see it, `saved` as the store has it."""

    @initialize(
        size=OFFSETS, held=st.dictionaries(st.integers(0, 5), st.integers(1, CHUNK), max_size=3)
    )
    def begin(self, size: int, held: dict[int, int]) -> None:
        self.store = {
            number: bytes([65 + number]) * length
            for number, length in held.items()
            if number * CHUNK + length <= size
        }
        self.plain = pieces_of(self.store, size)
        self.saved = bytes(self.plain)
        self.sent: dict[int, Piece] | None = None
        self.sent_plain = b""
        self.byte = 0
        self.cut_since_save = False
        self.loaded_all = False
        self.buffer = Buffer(
            size, {number: len(piece) for number, piece in self.store.items()}, self.load, LIMIT
        )

    def load(self, number: int, length: int) -> bytes:
        piece = self.store[number]
        assert len(piece) == length, "a piece is asked for with the length that it has"
        return piece

    @rule(offset=OFFSETS, length=LENGTHS)
    def read(self, offset: int, length: int) -> None:
        assert bytes(self.buffer.read(offset, length)) == self.plain[offset : offset + length]

    @rule(offset=OFFSETS, length=LENGTHS)
    def write(self, offset: int, length: int) -> None:
        self.byte = self.byte % 255 + 1
        data = bytes([self.byte]) * length
        before = (self.buffer.stored, self.buffer.size, self.buffer.changed, self.buffer.only_grown)
        growth = self.buffer.growth(offset, length) if length else 0
        if before[0] + growth > LIMIT:
            with pytest.raises(FileTooLarge):
                self.buffer.write(offset, data)
            after = self.buffer
            assert before == (after.stored, after.size, after.changed, after.only_grown)
            return
        self.buffer.write(offset, data)
        assert self.buffer.stored == before[0] + growth
        if length:
            self.cut_since_save |= offset < self.base_size()
            self.plain.extend(bytes(max(offset + length - len(self.plain), 0)))
            self.plain[offset : offset + length] = data

    @rule(size=OFFSETS)
    def truncate(self, size: int) -> None:
        self.buffer.truncate(size)
        self.cut_since_save |= size < self.base_size()
        del self.plain[size:]
        self.plain.extend(bytes(size - len(self.plain)))

    @rule()
    def load_all(self) -> None:
        self.buffer.load_all()
        assert self.buffer.changed
        self.shows_the_same_file()

    @precondition(lambda self: self.sent is None)
    @rule()
    def begin_save(self) -> None:
        unsaved = self.buffer.unsaved_bytes()
        self.sent = dict(self.buffer.begin_save())
        assert unsaved == sum(map(len, self.sent.values()))
        assert not self.buffer.changed
        self.sent_plain, self.sent_stored = bytes(self.plain), self.buffer.stored

    @precondition(lambda self: self.sent is not None)
    @rule()
    def end_save_well(self) -> None:
        assert self.sent is not None
        for number, piece in self.sent.items():
            if piece:
                self.store[number] = bytes(piece)
            else:
                self.store.pop(number, None)
        assert pieces_of(self.store, len(self.sent_plain)) == self.sent_plain
        assert sum(map(len, self.store.values())) == self.sent_stored
        self.saved, self.sent = self.sent_plain, None
        self.buffer.end_save(saved=True)
        self.cut_since_save = self.cut_since_save and self.buffer.changed

    @precondition(lambda self: self.sent is not None)
    @rule()
    def end_save_badly(self) -> None:
        self.sent = None
        self.buffer.end_save(saved=False)
        assert self.buffer.changed

    def base_size(self) -> int:
        """Up to here, a write changes what is saved or on its way."""
        return len(self.saved if self.sent is None else self.sent_plain)

    @invariant()
    def shows_the_same_file(self) -> None:
        assert self.buffer.size == len(self.plain)
        assert bytes(self.buffer.read(0, LARGEST + 3 * CHUNK)) == self.plain

    @invariant()
    def what_differs_is_unsaved(self) -> None:
        if self.sent is None and bytes(self.plain) != self.saved:
            assert self.buffer.changed

    @invariant()
    def knows_whether_it_only_grew(self) -> None:
        assert self.buffer.only_grown == (not self.cut_since_save)
        if self.buffer.only_grown:
            base = self.saved if self.sent is None else self.sent_plain
            assert self.plain[: len(base)] == base

    @invariant()
    def keeps_few_clean_pieces(self) -> None:
        assert len(self.buffer._pieces) <= CLEAN + len(self.buffer._unsaved | self.buffer._sent)


def test_a_buffer_behaves_as_plain_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "CHUNK", CHUNK)
    monkeypatch.setattr(buffers, "CLEAN_PIECES", CLEAN)
    run_state_machine_as_test(
        BufferMachine,
        settings=settings(
            max_examples=300, stateful_step_count=40, deadline=None, derandomize=True, database=None
        ),
    )
