"""Vectors come for what waits for them, of one model at a time, and none is lost or doubled."""

from collections.abc import Callable, Sequence

import pytest

from geniuzfs.errors import ModelUnavailable
from geniuzfs.learn.embedding import AT_ONCE, Embedding
from geniuzfs.model import ModelId
from geniuzfs.ports import Vectors
from geniuzfs.store import passages, vectors
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.notes import Asker, learn, remove, write


class Told(FakeEmbedder):
    """Calls `before` with the texts that it is about to embed."""

    def __init__(self, before: Callable[[Sequence[str]], None]) -> None:
        super().__init__()
        self._before = before

    def passages(self, texts: Sequence[str], model: ModelId) -> Vectors:
        self._before(texts)
        return super().passages(texts, model)


def notes(database: Database, count: int) -> None:
    write(database, "notes.md", "\n\n".join(f"Note {n} of word{n}." for n in range(count)))
    learn(database)


def embed(database: Database, embedder: FakeEmbedder) -> None:
    embedding = Embedding(database, embedder)
    while embedding.step():
        pass
    embedding.close()


def stored(database: Database) -> list[tuple[str, int]]:
    return [(model.name, model.vectors) for model in vectors.models(database.view)]


def test_no_transaction_is_open_while_the_model_works(database: Database) -> None:
    def another_writes(texts: Sequence[str]) -> None:
        other = Database.open(database.path)  # Busy at once, where the lock is held
        try:
            with other.txn() as txn:
                txn.run("UPDATE inodes SET atime_ns = atime_ns + 1 WHERE number = 1")
        finally:
            other.close()

    notes(database, 3)
    embed(database, Told(another_writes))
    assert stored(database) == [("fake@1", 3)]


def test_a_passage_that_goes_while_it_is_embedded_gets_no_vector(database: Database) -> None:
    write(database, "stays.md", "This stays.")
    write(database, "goes.md", "This goes.")
    learn(database)
    embedder = FakeEmbedder()
    embedding = Embedding(database, embedder)
    embedder.away = "not now"
    with pytest.raises(ModelUnavailable):
        embedding.step()
    embedder.away = None
    remove(database, "goes.md")
    while embedding.step():
        pass
    embedding.close()
    assert stored(database) == [("fake@1", 1)]


def test_several_calls_embed_everything_once(database: Database) -> None:
    embedder, count = FakeEmbedder(), 3 * AT_ONCE + 5
    notes(database, count)
    embed(database, embedder)
    assert embedder.passages_embedded == count
    assert passages.waiting(database.view) == (0, 0)


class Failing(FakeEmbedder):
    """Embeds nothing by a model that is among `broken`."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: set[ModelId] = set()

    def passages(self, texts: Sequence[str], model: ModelId) -> Vectors:
        if model in self.broken:
            raise ModelUnavailable(f"{model} is broken")
        return super().passages(texts, model)


def test_a_model_that_is_back_is_not_held_up_by_an_earlier_failure(database: Database) -> None:
    notes(database, 3 * AT_ONCE)
    embedder = Failing()
    embedding = Embedding(database, embedder)
    embedder.broken = {embedder.id}
    with pytest.raises(ModelUnavailable):
        embedding.step()
    embedder.broken = set()
    while embedding.step():
        pass
    embedding.close()
    assert stored(database) == [("fake@1", 3 * AT_ONCE)]


def test_another_model_is_not_held_up_by_the_failure_of_the_last(database: Database) -> None:
    notes(database, 3 * AT_ONCE)
    embedder = Failing()
    embedding = Embedding(database, embedder)
    embedder.broken = {embedder.id}
    with pytest.raises(ModelUnavailable):
        embedding.step()
    embedder.id = ModelId("fake@2")
    while embedding.step():
        pass
    embedding.close()
    assert stored(database) == [("fake@2", 3 * AT_ONCE)]


def test_the_earlier_model_answers_until_all_is_embedded_anew(database: Database) -> None:
    count = 3 * AT_ONCE
    notes(database, count)
    old = FakeEmbedder("old@1", 16)
    embed(database, old)
    new = FakeEmbedder("new@1", 32)
    embedding = Embedding(database, new)
    assert embedding.step()
    assert sorted(stored(database)) == [("new@1", AT_ONCE), ("old@1", count)]
    assert Asker(database, old).ask("word7").meant
    while embedding.step():
        pass
    embedding.close()
    assert stored(database) == [("new@1", count)]
    assert new.passages_embedded == count
    assert Asker(database, new).ask("word7").meant


def test_a_choice_that_is_taken_back_embeds_nothing_twice(database: Database) -> None:
    count = 3 * AT_ONCE
    notes(database, count)
    old, new = FakeEmbedder("old@1"), FakeEmbedder("new@1")
    embed(database, old)
    embedding = Embedding(database, new)
    assert embedding.step()
    embedding.close()
    embed(database, old)
    assert old.passages_embedded == count
    assert stored(database) == [("old@1", count)]
