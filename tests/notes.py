"""A folder without a mount, for tests: notes are written, learned and asked for."""

import itertools
from collections.abc import Iterable

from geniuzfs.learn.backlog import Backlog
from geniuzfs.learn.embedding import Embedding
from geniuzfs.model import ROOT, Exchange, FolderId, Identity, InodeNumber
from geniuzfs.ports import Embedder
from geniuzfs.recall.parts import Shelf, part
from geniuzfs.recall.query import parse
from geniuzfs.recall.search import Result, search
from geniuzfs.store import content, paths, tree
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder

IDENTITY = Identity(FolderId("0" * 8 + "-0000-4000-8000-" + "0" * 12), "notes", "", "")

_clock = itertools.count(1_700_000_000_000_000_000, 1_000)


def write(database: Database, path: str, text: str | bytes) -> InodeNumber:
    """Make or overwrite a file, with the directories above it."""
    held = text.encode() if isinstance(text, str) else text
    *above, name = path.encode().split(b"/")
    with database.txn() as txn:
        parent = ROOT
        for directory in above:
            found = tree.child(txn, parent, directory)
            made = found or tree.create(txn, parent, directory, tree.New(0o40755, 0, 0), 1)
            parent = made.number
        found = tree.child(txn, parent, name)
        number = (found or tree.create(txn, parent, name, tree.New(0o100644, 0, 0), 1)).number
        now = next(_clock)
        content.save(txn, number, content.Save(len(held), now, now, {0: held}))
    return number


def remove(database: Database, path: str) -> None:
    """Remove a file."""
    above, _, name = path.rpartition("/")
    with database.txn() as txn:
        parent = paths.find(txn, above.encode())
        assert parent is not None
        tree.remove(txn, parent, name.encode(), next(_clock), directory=False)


def rename(database: Database, old: str, new: str) -> None:
    """Move a file or directory."""
    places = []
    with database.txn() as txn:
        for path in (old, new):
            above, _, name = path.rpartition("/")
            parent = paths.find(txn, above.encode())
            assert parent is not None
            places.append((parent, name.encode()))
        tree.rename(txn, places[0], places[1], Exchange.REPLACE, next(_clock))


def learn(database: Database, embedder: Embedder | None = None) -> None:
    """Learn the words of all that is due, and, with `embedder`, all vectors."""
    backlog = Backlog(database)
    while backlog.step():
        pass
    if embedder is not None:
        embedding = Embedding(database, embedder)
        while embedding.step():
            pass
        embedding.close()
    while backlog.tidy():
        pass


class Asker:
    """Asks one folder, keeping its index from one question to the next."""

    def __init__(self, database: Database, embedder: FakeEmbedder | None = None) -> None:
        self._embedder = embedder
        self.shelf = Shelf(IDENTITY, database)

    def ask(self, question: str, directory: InodeNumber = ROOT) -> Result:
        """What is found, by words alone where there is no embedder."""
        query = parse(question, next(_clock))
        vectors = {}
        if self._embedder is not None:
            model = self._embedder.id
            vectors[model] = self._embedder.query(query.text, model, 1.0)
        with self.shelf.database.snapshot() as view:
            return search([part(self.shelf, view, directory, query)], query, vectors)

    def texts(self, question: str, directory: InodeNumber = ROOT) -> list[str]:
        """The texts that are found, best first."""
        return [hit.text for hit in self.ask(question, directory).hits]


def taught(database: Database) -> set[str]:
    """Every text that is known."""
    rows: Iterable[tuple[str]] = database.view.rows("SELECT text FROM passages WHERE context = 0")
    return {row[0] for row in rows}
