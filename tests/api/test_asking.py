"""Questions to folders: what was saved before is found, whatever the model does."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from geniuzfs.api.asking import Asked, Asking
from geniuzfs.errors import Stale
from geniuzfs.folders.registry import Folder
from geniuzfs.model import ROOT, FolderId, Identity, ModelId
from geniuzfs.ports import Vectors
from geniuzfs.recall.hits import Answer
from geniuzfs.recall.query import parse
from geniuzfs.store import copying, tree
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.notes import learn, write

WAIT_SECONDS = 0.05
NOW_NS = 1_790_000_000 * 10**9


class Chosen(FakeEmbedder):
    """Remembers which models were asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def query(self, text: str, model: ModelId, seconds: float) -> Vectors:
        self.asked.append(model)
        return super().query(text, model, seconds)


class Asker:
    """Asks `folders` by way of `embedder`."""

    def __init__(self, embedder: FakeEmbedder, *folders: Folder) -> None:
        self.asking = Asking(lambda one: Database.open(one.path, wait=WAIT_SECONDS), embedder)
        self._asked = [Asked(folder, ROOT) for folder in folders]

    def ask(self, question: str) -> Answer:
        return self.asking.ask(self._asked, parse(question, NOW_NS))


def folder(database: Database, number: int = 0) -> Folder:
    id_ = FolderId(f"{number:08}-0000-4000-8000-{0:012}")
    return Folder(database.path, Identity(id_, f"folder {number}", "", ""))


@pytest.fixture
def embedder() -> Chosen:
    return Chosen()


@pytest.fixture
def asker(database: Database, embedder: Chosen) -> Iterator[Asker]:
    made = Asker(embedder, folder(database))
    yield made
    made.asking.close()


def test_what_is_due_is_learned_before_it_is_looked_for(database: Database, asker: Asker) -> None:
    for number in range(5):
        write(database, "note.md", f"This is version{number}.")
        answer = asker.ask(f"version{number}")
        assert [hit.text for hit in answer.hits] == [f"This is version{number}."]


def test_a_model_that_is_away_is_named_in_the_answer(
    database: Database, asker: Asker, embedder: Chosen
) -> None:
    write(database, "note.md", "This has a vector.")
    learn(database, embedder)
    embedder.away = "it is on holiday"
    answer = asker.ask("vector")
    assert [hit.path for hit in answer.hits] == ["/note.md"]
    assert (answer.searched.meaning, answer.searched.model_note) == (False, "it is on holiday")
    embedder.away = None
    answer = asker.ask("vector")
    assert (answer.searched.meaning, answer.searched.model_note) == (True, "")


@pytest.mark.parametrize("mode", ["words", "grep", "recent", "random"])
def test_a_question_by_words_asks_no_model(
    database: Database, asker: Asker, embedder: Chosen, mode: str
) -> None:
    write(database, "note.md", "This has a vector.")
    learn(database, embedder)
    asker.ask(f"vector mode:{mode}")
    assert embedder.asked == []


def test_a_question_is_embedded_once(database: Database, asker: Asker, embedder: Chosen) -> None:
    write(database, "note.md", "This has a vector.")
    learn(database, embedder)
    for _ in range(3):
        assert asker.ask("vector").searched.meaning
    assert embedder.asked == ["fake@1"]


def test_the_model_of_the_vectors_is_asked_while_another_is_chosen(
    database: Database, asker: Asker, embedder: Chosen
) -> None:
    write(database, "note.md", "This has a vector.")
    learn(database, embedder)
    embedder.id = ModelId("fake@2")
    assert asker.ask("vector").searched.meaning
    assert "fake@1" in embedder.asked
    learn(database, embedder)
    assert asker.ask("another vector").searched.meaning
    assert embedder.asked[-1] == "fake@2"


def test_nobody_waits_for_a_model_before_there_is_a_vector(database: Database) -> None:
    released = threading.Event()

    class Starting(FakeEmbedder):
        def query(self, text: str, model: ModelId, seconds: float) -> Vectors:
            released.wait(60)
            return super().query(text, model, seconds)

    asker = Asker(Starting(), folder(database))
    write(database, "note.md", "This has no vector.")
    answer = asker.ask("vector")
    assert not released.is_set()
    assert ([hit.path for hit in answer.hits], answer.searched.meaning) == (["/note.md"], False)
    released.set()
    asker.asking.close()


def test_behind_another_s_lock_the_answer_says_what_it_lacks(
    database: Database, asker: Asker, embedder: Chosen
) -> None:
    write(database, "note.md", "Learned before.")
    learn(database, embedder)
    write(database, "more.md", "Not learned before.")
    with database.txn():
        answer = asker.ask("learned")
        assert [hit.path for hit in answer.hits] == ["/note.md"]
        assert answer.searched.waiting == 1
    assert {hit.path for hit in asker.ask("learned").hits} == {"/note.md", "/more.md"}


def test_folders_are_asked_together(database: Database, tmp_path: Path, embedder: Chosen) -> None:
    other = Database.open(tmp_path / "other.db", create=True)
    with other.txn() as txn:
        tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
    write(database, "one.md", "Here is a sharedword.")
    write(other, "two.md", "There is a sharedword.")
    learn(other, embedder)  # the first has no vector
    asker = Asker(embedder, folder(database, 1), folder(other, 2))
    answer = asker.ask("sharedword")
    assert {(hit.folder, hit.path) for hit in answer.hits} == {
        ("folder 1", "/one.md"),
        ("folder 2", "/two.md"),
    }
    assert answer.searched.folders == ("folder 1", "folder 2")
    assert answer.searched.meaning
    asker.asking.close()
    other.close()


def test_a_full_disk_delays_learning_and_not_the_answer(database: Database, asker: Asker) -> None:
    write(database, "old.md", "Learned before.")
    asker.ask("learned")
    write(database, "new.md", " ".join(f"word{n}" for n in range(7_000)))
    for one in asker.asking._folders.values():
        one.shelf.database.view.row("PRAGMA max_page_count = 1")  # as large as it is, no larger
    answer = asker.ask("learned before")
    assert [hit.text for hit in answer.hits] == ["Learned before."]
    assert answer.searched.waiting > 0


def test_a_folder_that_was_moved_is_asked_where_it_is_and_again_where_it_was(
    tmp_path: Path, embedder: Chosen
) -> None:
    here, there = tmp_path / "here" / "memory.db", tmp_path / "there" / "memory.db"
    for path in (here, there):
        path.parent.mkdir()
    with closing(Database.open(here, create=True)) as first:
        with first.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
        write(first, "note.md", "Said at first.")
        before = folder(first)
    asking = Asking(lambda one: Database.open(one.path, wait=WAIT_SECONDS), embedder)

    def texts(where: Path) -> set[str]:
        asked = Asked(before._replace(path=where), ROOT)
        return {hit.text for hit in asking.ask([asked], parse("said", NOW_NS)).hits}

    assert texts(here) == {"Said at first."}
    copying.copy(here, there)
    here.parent.rename(tmp_path / "archived")
    with closing(Database.open(there)) as second:
        write(second, "more.md", "Said later.")
    assert texts(there) == {"Said at first.", "Said later."}
    there.parent.rename(here.parent)
    assert texts(here) == {"Said at first.", "Said later."}
    asking.close()


def test_a_folder_that_is_gone_is_given_back(tmp_path: Path, database: Database) -> None:
    opened: list[Database] = []

    def open_(one: Folder) -> Database:
        opened.append(Database.open(one.path, wait=WAIT_SECONDS))
        return opened[-1]

    asking = Asking(open_, Chosen())
    asked = folder(database)
    asking.ask([Asked(asked, ROOT)], parse("said", NOW_NS))
    asking.let_go([asked])
    assert opened[0].view.row("SELECT 1") == (1,)
    asking.let_go([])
    with pytest.raises(Stale):
        opened[0].view.row("SELECT 1")
    asking.close()
