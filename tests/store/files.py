"""Files of a database without a mount, saved, renamed and removed when a test says so."""

from geniuzfs.model import CHUNK, NOBODY, ROOT, Exchange, InodeNumber, Writer
from geniuzfs.store import content, histories, tree, versions
from geniuzfs.store.connection import Database
from geniuzfs.store.lineages import Replacing

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
START = 1_790_000_000 * SECOND


class Files:
    """`now_ns` goes on by a second with every call."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now_ns = START

    def tick(self) -> int:
        self.now_ns += SECOND
        return self.now_ns

    def place(self, path: str) -> tuple[InodeNumber, bytes]:
        *above, name = path.encode().split(b"/")
        number = ROOT
        for part in above:
            found = tree.child(self.database.view, number, part)
            assert found is not None
            number = found.number
        return number, name

    def mkdir(self, path: str) -> InodeNumber:
        with self.database.txn() as txn:
            new = tree.New(0o40755, 0, 0)
            return tree.create(txn, *self.place(path), new, self.tick()).number

    def number(self, path: str) -> InodeNumber:
        found = tree.child(self.database.view, *self.place(path))
        assert found is not None
        return found.number

    def create(self, path: str) -> InodeNumber:
        with self.database.txn() as txn:
            new = tree.New(0o100644, 0, 0)
            return tree.create(txn, *self.place(path), new, self.tick()).number

    def save(
        self,
        path: str,
        text: bytes,
        by: Writer = NOBODY,
        over: Writer = NOBODY,
        *,
        blind: bool = False,
    ) -> InodeNumber:
        """A file with this text, at `path`; made where nothing is there."""
        found = tree.child(self.database.view, *self.place(path))
        number = self.create(path) if found is None else found.number
        old = content.lengths(self.database.view, number)
        parts = {n // CHUNK: text[n : n + CHUNK] for n in range(0, len(text), CHUNK)}
        pieces = {n: b"" for n in old if n not in parts} | parts
        now = self.tick()
        with self.database.txn() as txn:
            new = content.Save(len(text), now, now, pieces, by, over, blind)
            content.save(txn, number, new)
        return number

    def rename(self, old: str, new: str, who: Replacing | None = None) -> None:
        with self.database.txn() as txn:
            places = self.place(old), self.place(new)
            given = who or Replacing()
            tree.rename(txn, *places, Exchange.REPLACE, self.tick(), who=lambda _: given)

    def swap(self, old: str, new: str) -> None:
        with self.database.txn() as txn:
            places = self.place(old), self.place(new)
            tree.rename(txn, *places, Exchange.SWAP, self.tick())

    def link(self, old: str, new: str) -> None:
        with self.database.txn() as txn:
            tree.link(txn, self.number(old), *self.place(new), self.tick())

    def is_there(self, path: str) -> bool:
        return tree.child(self.database.view, *self.place(path)) is not None

    def remove(self, path: str) -> None:
        with self.database.txn() as txn:
            tree.remove(txn, *self.place(path), self.tick(), directory=False)

    def rmdir(self, path: str) -> None:
        with self.database.txn() as txn:
            tree.remove(txn, *self.place(path), self.tick(), directory=True)

    def kept(self, path: str) -> list[bytes]:
        """The versions at `path`, the oldest first."""
        view = self.database.view
        found = histories.at(view, path.encode())
        return [b"".join(versions.read(view, version)) for version in found]
