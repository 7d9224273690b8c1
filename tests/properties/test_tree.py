"""The store's tree answers as a plain dict of files would, in whatever order things come."""

import copy
import stat
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from geniuzfs.errors import (
    GeniuzError,
    NoSuchAttribute,
    NotFound,
)
from geniuzfs.fs.buffers import Buffer
from geniuzfs.model import CHUNK, ROOT, Exchange, Inode, InodeNumber
from geniuzfs.store import check, content, tree, xattrs
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import Txn
from tests.properties.plain_tree import File, Model

LIMIT = 64 * CHUNK
GOOD_NAMES = [b"a", b"b", b"c", b"d", b"\xc3\xa9", b"e\xcc\x81", b"\xff", b"n" * 255]
NAMES = st.sampled_from([*GOOD_NAMES * 3, b"n" * 256, b"..", b"a/b"])
TYPES = st.sampled_from([*[0o100644, 0o40755] * 3, 0o120777, 0o10600, 0o140600, 0o20600, 0o60600])
UNDO = st.integers(0, 7)
ATTRIBUTES = st.sampled_from([b"user.a", b"user.b", b"security.capability"])
OFFSETS = st.one_of(
    st.integers(0, 100), st.sampled_from([CHUNK - 1, CHUNK, 2 * CHUNK - 1, 3 * CHUNK + 5])
)
SIZES = st.sampled_from([0, 1, 50, CHUNK, CHUNK + 1, 3 * CHUNK + 10, 1 << 40])
# Spread out, since hypothesis likes small numbers and each bit here chooses something.
PICK = st.integers(0, 0xFFFF).map(lambda number: number * 40503 % 0x10000)


class Undone(Exception):
    """Raised to have a transaction undone."""


class TreeMachine(RuleBasedStateMachine):
    """Each step is done to both, or to neither: one in eight is undone after all."""

    def __init__(self) -> None:
        super().__init__()
        self.place = TemporaryDirectory()
        self.path = Path(self.place.name) / "memory.db"
        self.database = Database.open(self.path, create=True)
        self.model = Model()
        self.ever = [int(ROOT)]
        self.clock = 1
        with self.database.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)

    @initialize(depth=st.integers(0, 3))
    def make_some(self, depth: int) -> None:
        """Directories in each other, with something beside: most mistakes need them."""
        for level in range(depth):
            for name, mode in ((b"a", 0o40755), (b"b", 0o100644), (b"c", 0o40755)):
                self.create_at(1, InodeNumber(self.ever[-1] if level else ROOT), name, mode, level)

    def teardown(self) -> None:
        self.database.close()
        self.place.cleanup()

    def any(self, pick: int) -> InodeNumber:
        """Mostly a number that is there; one in eight may be gone."""
        numbers = self.ever if pick % 8 == 0 else sorted(self.model.files)
        return InodeNumber(numbers[(pick >> 3) % len(numbers)])

    def parent(self, pick: int) -> InodeNumber:
        """Mostly a directory."""
        directories = [number for number, file in self.model.files.items() if file.is_directory]
        return (
            self.any(pick)
            if pick % 8 < 1
            else InodeNumber(directories[(pick >> 3) % len(directories)])
        )

    def place_of(self, pick: int, name: bytes) -> tuple[InodeNumber, bytes]:
        """Mostly a directory and a name in it."""
        parent = self.parent(pick)
        entries = list(self.model.files[parent].entries) if parent in self.model.files else []
        return parent, entries[(pick >> 8) % len(entries)] if entries and pick % 5 else name

    def step(
        self, undo: int, real: Callable[[Txn, int], Any], plain: Callable[[Model, int], None]
    ) -> Any:
        """Do both, in a transaction that is undone where `undo` is 0; compare how they fail."""
        self.clock += 1
        before = copy.deepcopy(self.model)
        failed: type[BaseException] | None = None
        result = None
        try:
            with self.database.txn() as txn:
                result = real(txn, self.clock)
                if not undo:
                    raise Undone
        except (GeniuzError, Undone) as error:
            failed = type(error)
        expected: type[BaseException] | None
        try:
            plain(self.model, self.clock)
            expected = None if undo else Undone
        except GeniuzError as error:
            expected = type(error)
        if expected is not None:
            self.model = before
        assert failed == expected
        return result if failed is None else None

    @rule(undo=UNDO, pick=PICK, name=NAMES, mode=TYPES)
    def create(self, undo: int, pick: int, name: bytes, mode: int) -> None:
        self.create_at(undo, self.parent(pick), name, mode, pick)

    def create_at(self, undo: int, parent: InodeNumber, name: bytes, mode: int, pick: int) -> None:
        target = b"to %d" % pick if stat.S_ISLNK(mode) else None
        rdev = pick if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) else 0
        new = tree.New(mode, pick, pick + 1, rdev, target)
        number = max(self.ever) + 1
        made = self.step(
            undo,
            lambda txn, now: tree.create(txn, parent, name, new, now),
            lambda model, now: model.create(parent, name, number, new, now),
        )
        if made is not None:
            assert made == tree.inode(self.database.view, made.number)
            assert made.number == number, "numbers go up by one, and one undone was never given"
            self.ever.append(number)

    @rule(undo=UNDO, pick=PICK, other=PICK, name=NAMES)
    def link(self, undo: int, pick: int, other: int, name: bytes) -> None:
        number, parent = self.any(other), self.parent(pick)
        self.step(
            undo,
            lambda txn, now: tree.link(txn, number, parent, name, now),
            lambda model, now: model.link(number, parent, name, now),
        )

    @rule(undo=UNDO, pick=PICK, name=NAMES, wrong=st.integers(0, 5))
    def remove(self, undo: int, pick: int, name: bytes, wrong: int) -> None:
        parent, name = self.place_of(pick, name)
        number = self.model.child(parent, name)
        directory = number is not None and self.model.files[number].is_directory
        directory = directory if wrong else not directory
        kept: list[bytes] = []

        def keep(found: Inode) -> None:
            kept.append(content.read(self.database.view, found.number).rstrip(b"\0"))

        had = self.model.files[number].bytes_.rstrip(b"\0") if number is not None else b""
        left = self.step(
            undo,
            lambda txn, now: tree.remove(txn, parent, name, now, directory=directory, losing=keep),
            lambda model, now: model.remove(parent, name, now, directory),
        )
        if left is not None:
            assert (left.nlink == 0) == (number not in self.model.files)
            assert kept == ([] if left.nlink else [had])

    @rule(
        undo=UNDO,
        picks=st.tuples(PICK, PICK),
        names=st.tuples(NAMES, NAMES),
        exchange=st.sampled_from(Exchange),
    )
    def rename(
        self, undo: int, picks: tuple[int, int], names: tuple[bytes, bytes], exchange: Exchange
    ) -> None:
        old, new = self.place_of(picks[0], names[0]), self.place_of(picks[1], names[1])
        self.rename_at(undo, old, new, exchange)

    @rule(undo=UNDO, picks=st.tuples(PICK, PICK), exchange=st.sampled_from(Exchange))
    def rename_onto(self, undo: int, picks: tuple[int, int], exchange: Exchange) -> None:
        """From a name that is there to another that is there."""
        there = [
            (InodeNumber(number), name)
            for number, file in self.model.files.items()
            for name in file.entries
        ]
        if there:
            old, new = (there[pick % len(there)] for pick in picks)
            self.rename_at(undo, old, new, exchange)

    def rename_at(
        self,
        undo: int,
        old: tuple[InodeNumber, bytes],
        new: tuple[InodeNumber, bytes],
        exchange: Exchange,
    ) -> None:
        done = self.step(
            undo,
            lambda txn, now: tree.rename(txn, old, new, exchange, now),
            lambda model, now: model.rename(old, new, exchange, now),
        )
        if done is not None:
            for inode in done:
                if inode is not None and inode.nlink:
                    assert inode == tree.inode(self.database.view, inode.number)

    @rule(
        undo=UNDO,
        pick=PICK,
        mode=st.none() | st.integers(0, 0o7777),
        owner=st.none() | PICK,
        times=st.tuples(st.none() | PICK, st.none() | PICK),
    )
    def change(
        self,
        undo: int,
        pick: int,
        mode: int | None,
        owner: int | None,
        times: tuple[int | None, int | None],
    ) -> None:
        number = self.any(pick)

        def plain(model: Model, now: int) -> None:
            if number not in model.files:
                raise NotFound
            file = model.files[number]
            if mode is not None:
                file.mode = stat.S_IFMT(file.mode) | mode
            file.uid = file.uid if owner is None else owner
            given = [
                old if new is None else new for old, new in zip(file.times, times, strict=False)
            ]
            file.times = [*given, now]

        fields = tree.Fields(mode, owner, None, *times)
        self.step(undo, lambda txn, now: tree.change(txn, number, fields, now), plain)

    @rule(
        undo=UNDO,
        pick=PICK,
        writes=st.lists(st.tuples(OFFSETS, st.binary(min_size=1, max_size=9)), max_size=3),
        cut=st.none() | SIZES,
    )
    def save(self, undo: int, pick: int, writes: list[tuple[int, bytes]], cut: int | None) -> None:
        number = self.any(pick)
        file = self.model.files.get(number)
        if file is not None and not stat.S_ISREG(file.mode):
            return
        old = file or File(0, 0, 0, 0, None, [])
        view = self.database.view
        buffer = Buffer(
            old.size,
            content.lengths(view, number),
            lambda index, _length: content.piece(view, number, index),
            LIMIT,
        )
        whole, size = bytearray(old.bytes_), old.size
        if cut is not None:
            buffer.truncate(cut)
            del whole[cut:]
            size = cut
        for offset, data in writes:
            buffer.write(offset, data)
            whole.extend(bytes(max(offset + len(data) - len(whole), 0)))
            whole[offset : offset + len(data)] = data
            size = max(size, offset + len(data))

        def real(txn: Txn, now: int) -> None:
            pieces = buffer.begin_save()
            content.save(txn, number, content.Save(buffer.size, now, now, pieces))

        def plain(model: Model, now: int) -> None:
            if number not in model.files:
                raise NotFound
            saved = model.files[number]
            saved.bytes_, saved.size, saved.times[1:] = bytes(whole), size, [now, now]

        self.step(undo, real, plain)

    @rule(undo=UNDO, pick=PICK, name=ATTRIBUTES, value=st.binary(max_size=5))
    def put_attribute(self, undo: int, pick: int, name: bytes, value: bytes) -> None:
        number = self.any(pick)

        def plain(model: Model, now: int) -> None:
            if number not in model.files:
                raise NotFound
            model.files[number].attributes[name] = value
            model.files[number].times[2] = now

        self.step(undo, lambda txn, now: xattrs.put(txn, number, name, value, now), plain)

    @rule(undo=UNDO, pick=PICK, name=ATTRIBUTES)
    def remove_attribute(self, undo: int, pick: int, name: bytes) -> None:
        number = self.any(pick)

        def plain(model: Model, now: int) -> None:
            file = model.files.get(number)
            if file is None or name not in file.attributes:
                raise NoSuchAttribute
            del file.attributes[name]
            file.times[2] = now

        self.step(undo, lambda txn, now: xattrs.remove(txn, number, name, now), plain)

    @rule()
    def reopen(self) -> None:
        self.database.close()
        self.database = Database.open(self.path)

    @invariant()
    def both_are_the_same(self) -> None:
        with self.database.snapshot() as view:
            rows = view.rows("SELECT number FROM inodes ORDER BY number")
            assert [row[0] for row in rows] == sorted(self.model.files)
            for number, file in self.model.files.items():
                found = tree.inode(view, InodeNumber(number))
                assert found is not None
                assert found[:6] == (number, *self.plain_fields(number, file))
                assert [found.size, *found[-3:]] == [file.size, *file.times]
                listed = tree.listing(view, InodeNumber(number), 0, 1000)
                assert [(one.name, one.inode) for one in listed] == list(file.entries.items())
                held = content.read(view, InodeNumber(number))
                assert held.rstrip(b"\0") == file.bytes_.rstrip(b"\0")
                assert xattrs.names(view, InodeNumber(number)) == sorted(file.attributes)
                for name, value in file.attributes.items():
                    assert xattrs.get(view, InodeNumber(number), name) == value
                if file.target is not None:
                    assert tree.target(view, InodeNumber(number)) == file.target
            assert list(check.problems(view)) == []

    def plain_fields(self, number: int, file: File) -> tuple[int, ...]:
        return file.mode, file.uid, file.gid, self.model.links(number), file.rdev


def test_the_tree_behaves_as_a_dict_of_files() -> None:
    run_state_machine_as_test(
        TreeMachine,
        settings=settings(
            max_examples=120, stateful_step_count=50, deadline=None, derandomize=True, database=None
        ),
    )
