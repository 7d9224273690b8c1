"""Whatever names come, go, are swapped and linked, and whatever is kept no longer: no text that
people see is lost by it, and each version reads as what was there.
"""

import stat
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from geniuzfs.model import CHUNK, NOBODY, ROOT, Exchange, InodeNumber, Writer
from geniuzfs.names import is_temporary
from geniuzfs.store import check, content, tree, versions
from geniuzfs.store.connection import Database
from geniuzfs.store.lineages import Replacing
from geniuzfs.store.transactions import View
from geniuzfs.store.versions import VersionId

SECOND = 1_000_000_000

VIM = Writer("vim", 10, 1)
NAMES = st.sampled_from([b"a.md", b"b.md", b"a.md~", b"x.tmp"])
WRITERS = st.sampled_from([NOBODY, NOBODY, VIM])
PLACES = st.sampled_from([0, 1, CHUNK - 2, CHUNK + 3, 2 * CHUNK])
SIZES = st.sampled_from([0, 1, CHUNK - 1, CHUNK + 4, 2 * CHUNK + 9])
DATA = st.sampled_from([b"", b"a", b"bb\0", b"\0\0\0"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("save"), NAMES, PLACES, DATA, SIZES, WRITERS),
        st.tuples(st.just("save"), NAMES, PLACES, DATA, SIZES, WRITERS),
        st.tuples(st.just("rename"), NAMES, NAMES, WRITERS),
        st.tuples(st.just("swap"), NAMES, NAMES),
        st.tuples(st.just("link"), NAMES, NAMES),
        st.tuples(st.just("symlink"), NAMES),
        st.tuples(st.just("remove"), NAMES),
        st.tuples(st.just("expire")),
        st.tuples(st.just("clock"), st.sampled_from([-3_600, 20, 70])),
    ),
    max_size=24,
)


class Folder:
    """A folder with a few names, and what was in it before the last step."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = 1_000_000 * SECOND
        self.written = 0

    # What it does

    def step(self, kind: str, *how: object) -> set[bytes]:
        """The texts that it may take away."""
        self.now += SECOND
        gone: set[bytes] = getattr(self, f"_{kind}")(*how)
        return gone

    def _save(self, name: bytes, at: int, data: bytes, size: int, by: Writer) -> set[bytes]:
        number = self._at(name)
        if number is not None and not self._is_file(number):
            return set()
        before = b"" if number is None else self.text(number)
        if data:
            self.written += 1
            data += b"%d" % self.written  # each text is one of its own
        after = bytearray(before.ljust(at + len(data) if data else 0, b"\0"))
        after[at : at + len(data)] = data
        after = bytearray(bytes(after[:size]).ljust(size, b"\0"))
        changed = {
            n: bytes(after[n * CHUNK : (n + 1) * CHUNK]).rstrip(b"\0")
            for n in range(-(-max(len(after), len(before)) // CHUNK))
            if after[n * CHUNK : (n + 1) * CHUNK] != before[n * CHUNK : (n + 1) * CHUNK]
        }
        with self.database.txn() as txn:
            if number is None:
                new = tree.New(0o100644, 0, 0)
                number = tree.create(txn, ROOT, name, new, self.now).number
            save = content.Save(len(after), self.now, self.now, changed, by)
            content.save(txn, number, save)
        return {before} if by.pid else set()

    def _rename(self, old: bytes, new: bytes, by: Writer) -> set[bytes]:
        there = self._at(new)
        gone = {self.text(there)} if there is not None and by.pid else set()
        if self._at(old) is not None:
            self._renamed(old, new, Exchange.REPLACE, by)
        return gone

    def _swap(self, old: bytes, new: bytes) -> set[bytes]:
        if self._at(old) is not None and self._at(new) is not None:
            self._renamed(old, new, Exchange.SWAP, NOBODY)
        return set()

    def _renamed(self, old: bytes, new: bytes, exchange: Exchange, by: Writer) -> None:
        with self.database.txn() as txn:
            places = (ROOT, old), (ROOT, new)
            tree.rename(txn, *places, exchange, self.now, who=lambda _: Replacing(by))

    def _link(self, old: bytes, new: bytes) -> set[bytes]:
        number = self._at(old)
        if number is not None and self._at(new) is None:
            with self.database.txn() as txn:
                tree.link(txn, number, ROOT, new, self.now)
        return set()

    def _symlink(self, name: bytes) -> set[bytes]:
        if self._at(name) is None:
            with self.database.txn() as txn:
                new = tree.New(stat.S_IFLNK | 0o777, 0, 0, target=b"a.md")
                tree.create(txn, ROOT, name, new, self.now)
        return set()

    def _remove(self, name: bytes) -> set[bytes]:
        if self._at(name) is not None:
            with self.database.txn() as txn:
                tree.remove(txn, ROOT, name, self.now, directory=False)
        return set()

    def _expire(self) -> set[bytes]:
        """The oldest version goes."""
        oldest = min(self.kept(), default=None)
        if oldest is None:
            return set()
        text = self.kept()[oldest]
        with self.database.txn() as txn:
            txn.run("DELETE FROM versions WHERE id = ?", (oldest,))
        return {text}

    def _clock(self, seconds: int) -> set[bytes]:
        self.now += seconds * SECOND
        return set()

    # What is in it

    def _at(self, name: bytes) -> InodeNumber | None:
        found = tree.child(self.view, ROOT, name)
        return None if found is None else found.number

    def _is_file(self, number: InodeNumber) -> bool:
        found = tree.inode(self.view, number)
        return found is not None and stat.S_ISREG(found.mode)

    @property
    def view(self) -> View:
        return self.database.view

    def text(self, number: InodeNumber) -> bytes:
        inode = tree.inode(self.view, number)
        assert inode is not None
        return content.read(self.view, number).ljust(inode.size, b"\0")

    def kept(self) -> dict[VersionId, bytes]:
        rows = self.view.rows(f"SELECT {versions.COLUMNS} FROM versions")
        every = map(versions.Version._make, rows)
        return {each.id: b"".join(versions.read(self.view, each)) for each in every}

    def seen(self) -> set[bytes]:
        """The texts of the files that are not only passing by."""
        entries = tree.listing(self.view, ROOT, 0, -1)
        return {
            self.text(each.inode)
            for each in entries
            if self._is_file(each.inode) and not is_temporary(each.name)
        }


@given(STEPS)
@settings(max_examples=120, deadline=None)
def test_no_text_is_lost(steps: list[tuple[str, ...]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        database = Database.open(Path(directory) / "memory.db", create=True)
        try:
            with database.txn() as txn:
                tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
            folder = Folder(database)
            for step in steps:
                kept, seen = folder.kept(), folder.seen()
                gone = folder.step(*step)
                now = folder.kept()
                assert {id_: now[id_] for id_ in kept if id_ in now} == {
                    id_: text for id_, text in kept.items() if id_ in now
                }
                there = {*now.values(), *folder.seen(), *gone, b""}
                assert {*kept.values(), *seen} <= there
                assert list(check.problems(database.view)) == []
        finally:
            database.close()
