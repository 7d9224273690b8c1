"""Whatever is saved, cut, grown, renamed and removed: each version reads as the file once did."""

import tempfile
from pathlib import Path
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from geniuzfs.model import CHUNK, NOBODY, ROOT, Exchange, InodeNumber, Writer
from geniuzfs.store import check, content, tree, versions
from geniuzfs.store.connection import Database
from geniuzfs.store.lineages import Replacing

SECOND = 1_000_000_000

WRITERS = [NOBODY, Writer("vim", 10, 1), Writer("agent", 11, 2)]


class Save(NamedTuple):
    """Bytes at a place, and the size after it; both small, though pieces are large."""

    offset: int
    data: bytes
    size: int
    by: Writer
    pause: int


PLACES = st.sampled_from([0, 1, 5, CHUNK - 2, CHUNK, CHUNK + 3, 3 * CHUNK - 1])
SIZES = st.sampled_from([0, 1, 4, CHUNK - 1, CHUNK, CHUNK + 4, 2 * CHUNK + 1, 4 * CHUNK])
DATA = st.sampled_from([b"", b"a", b"bb\0", b"\0\0\0", b"long" * 3])
SAVES = st.builds(Save, PLACES, DATA, SIZES, st.sampled_from(WRITERS), st.sampled_from([1, 20, 70]))
STEPS = st.lists(st.one_of(SAVES, st.sampled_from(["replace", "backup", "remove"])), max_size=14)


class File:
    """A file whose contents are all written down, beside the database that keeps versions."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = 1_000 * SECOND
        self.text = b""
        self.all = {b""}
        self.number = self.create(b"note.md")

    def create(self, name: bytes) -> InodeNumber:
        with self.database.txn() as txn:
            return tree.create(txn, ROOT, name, tree.New(0o100644, 0, 0), self.now).number

    def save(self, number: InodeNumber, before: bytes, step: Save) -> bytes:
        """What the file is after it."""
        self.now += step.pause * SECOND
        reach = step.offset + len(step.data) if step.data else 0
        after = bytearray(before.ljust(reach, b"\0"))
        after[step.offset : step.offset + len(step.data)] = step.data
        after = bytearray(bytes(after[: step.size]).ljust(step.size, b"\0"))
        changed = {
            n: bytes(after[n * CHUNK : (n + 1) * CHUNK]).rstrip(b"\0")
            for n in range(-(-max(len(after), len(before)) // CHUNK))
            if after[n * CHUNK : (n + 1) * CHUNK] != before[n * CHUNK : (n + 1) * CHUNK]
        }
        with self.database.txn() as txn:
            new = content.Save(len(after), self.now, self.now, changed, step.by)
            content.save(txn, number, new)
        return bytes(after)

    def step(self, step: Save | str) -> None:
        self.now += SECOND
        if isinstance(step, Save):
            self.text = self.save(self.number, self.text, step)
        elif step == "replace":
            other = self.create(b".note.md.tmp")
            save = Save(1, b"new", 6, NOBODY, 1)
            text = self.save(other, b"", save)
            with self.database.txn() as txn:
                places = (ROOT, b".note.md.tmp"), (ROOT, b"note.md")
                who = Replacing(WRITERS[1])
                tree.rename(txn, *places, Exchange.REPLACE, self.now, who=lambda _: who)
            self.number, self.text = other, text
        elif step == "backup":
            with self.database.txn() as txn:
                places = (ROOT, b"note.md"), (ROOT, b"note.md~")
                tree.rename(txn, *places, Exchange.REPLACE, self.now)
            self.number = self.create(b"note.md")
            self.text = b""
        else:
            with self.database.txn() as txn:
                tree.remove(txn, ROOT, b"note.md", self.now, directory=False)
            self.number = self.create(b"note.md")
            self.text = b""
        self.all.add(self.text)

    def kept(self) -> list[bytes]:
        view = self.database.view
        lineage = versions.lineage_of(view, self.number)
        if lineage is None:
            return []
        return [b"".join(versions.read(view, one)) for one in versions.of(view, lineage)]


@given(STEPS)
@settings(max_examples=200, deadline=None)
def test_a_version_is_what_was_there(steps: list[Save | str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        database = Database.open(Path(directory) / "memory.db", create=True)
        try:
            with database.txn() as txn:
                tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
            file = File(database)
            before: list[bytes] = []
            for step in steps:
                last = file.text
                file.step(step)
                kept = file.kept()
                # What was kept is kept as it was; but the last one, where it is there again.
                assert before in (kept[: len(before)], [*kept[: len(before) - 1], file.text])
                assert set(kept) <= file.all
                thinned = step == "replace" or (isinstance(step, Save) and step.by.pid)
                if last and not thinned and last != file.text:
                    assert last in kept
                before = kept
            assert list(check.problems(database.view)) == []
        finally:
            database.close()
