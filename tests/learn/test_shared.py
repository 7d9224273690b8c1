"""While the model is Geniuz's own, its vectors and ours are the same ones, and no text has two."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from geniuzfs.embed import cards
from geniuzfs.embed.cards import Card
from geniuzfs.learn.shared import MODEL
from geniuzfs.store import memories, passages, tree, vectors
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.geniuz import NAMINGS, TABLES, as_geniuz_keeps
from tests.notes import Asker, learn, write

OWN = Card(
    name="paraphrase-multilingual-MiniLM-L12-v2",
    pooling="mean",
    max_tokens=512,
    query_prefix="",
    passage_prefix="",
    dimension=384,
    pad_id=1,
    sha256="ab" * 32,
)


@pytest.fixture
def own() -> FakeEmbedder:
    """It claims to be the model of Geniuz."""
    return FakeEmbedder(OWN.id)


def keep(database: Database, *texts: str) -> list[str]:
    with database.txn() as txn:
        return [memories.keep(txn, text, None, None, 10**18).memory.id for text in texts]


def embedded(database: Database) -> dict[str, bytes]:
    return dict(database.view.rows("SELECT memory_uuid, embedding FROM memory_embeddings"))


def named(database: Database) -> str | None:
    row = database.view.row("SELECT value FROM embedding_meta WHERE key = 'model'")
    return None if row is None else row[0]


def as_geniuz_would(embedder: FakeEmbedder, text: str) -> bytes:
    (vector,) = embedder.passages([text], embedder.id)
    embedder.passages_embedded -= 1
    return bytes(vector.astype("<f4").tobytes())


def test_memories_get_their_vectors_as_geniuz_keeps_them(
    database: Database, own: FakeEmbedder
) -> None:
    short, long = keep(database, "Priya signs.", "Tea at four.\n\nNo tea on Sundays.")
    write(database, "note.md", "The cat sleeps.")
    learn(database, own)
    assert named(database) == MODEL == "paraphrase-multilingual-MiniLM-L12-v2-qint8"
    assert embedded(database) == {
        short: as_geniuz_would(own, "Priya signs."),
        long: as_geniuz_would(own, "Tea at four.\n\nNo tea on Sundays."),
    }
    # Two whole memories, the two parts of the long one, and the note: the short one's once.
    assert own.passages_embedded == 5
    assert passages.waiting(database.view) == (0, 0)
    assert vectors.models(database.view)[0].vectors == 4
    assert Asker(database, own).texts("who signs?")[0] == "Priya signs."
    before = embedded(database)
    (third,) = keep(database, "From May.")
    learn(database, own)
    assert embedded(database) == {**before, third: as_geniuz_would(own, "From May.")}
    assert own.passages_embedded == 6


@pytest.mark.parametrize("backfilled", [True, False])
def test_vectors_that_geniuz_made_are_used_and_left_as_they_are(
    database: Database, own: FakeEmbedder, backfilled: bool
) -> None:
    texts = ["Priya signs.", "Tea at four.", "The cat sleeps."]
    with closing(sqlite3.connect(database.path)) as plain:
        plain.executescript(TABLES.format(**NAMINGS["geniuz"]))
        for text in texts:
            id_ = as_geniuz_keeps(plain, text)
            held = (as_geniuz_would(own, text), id_)
            plain.execute("UPDATE memory_embeddings SET embedding = ? WHERE memory_uuid = ?", held)
        if backfilled:
            plain.execute("INSERT INTO embedding_meta VALUES ('model', ?)", (MODEL,))
        plain.commit()
    before = embedded(database)
    learn(database, own)
    assert own.passages_embedded == (0 if backfilled else 1)  # the one that was compared
    assert (embedded(database), named(database)) == (before, MODEL)
    assert vectors.models(database.view)[0].vectors == 3
    assert Asker(database, own).texts("who signs?")[0] == "Priya signs."
    ((held,),) = database.view.rows(
        "SELECT vector FROM vectors JOIN passages ON passages.id = passage WHERE text = ?",
        ("Tea at four.",),
    )
    (wanted,) = own.passages(["Tea at four."], own.id)
    assert np.allclose(np.frombuffer(held, "<f2"), wanted, atol=1e-3)


@pytest.mark.parametrize(
    "other",
    [cards.DEFAULT.id, replace(OWN, max_tokens=128).id, replace(OWN, pooling="cls").id, "fake@1"],
)
def test_with_any_other_model_nothing_is_read_or_written(database: Database, other: str) -> None:
    keep(database, "Priya signs.")
    embedder = FakeEmbedder(other)
    learn(database, embedder)
    assert (embedded(database), named(database)) == ({}, None)
    assert embedder.passages_embedded == 1


def test_vectors_of_another_name_are_left_alone(database: Database, own: FakeEmbedder) -> None:
    (id_,) = keep(database, "Priya signs.")
    with database.txn() as txn:
        txn.run("INSERT INTO embedding_meta VALUES ('model', 'nomic-embed-text')")
        txn.run("INSERT INTO memory_embeddings VALUES (?, zeroblob(1536))", (id_,))
    keep(database, "Tea at four.")
    learn(database, own)
    assert embedded(database) == {id_: bytes(1536)}
    assert named(database) == "nomic-embed-text"
    assert own.passages_embedded == 2


@pytest.mark.parametrize("held", [bytes(1536), bytes(3072), b"", np.ones(384, "<f4").tobytes()])
def test_vectors_without_a_name_that_are_not_its_own_are_left_alone(
    database: Database, own: FakeEmbedder, held: bytes
) -> None:
    """Such are those of the Ollama that Geniuz falls back to."""
    (id_,) = keep(database, "Priya signs.")
    with database.txn() as txn:
        txn.run("INSERT INTO memory_embeddings VALUES (?, ?)", (id_, held))
    keep(database, "Tea at four.")
    learn(database, own)
    assert (embedded(database), named(database)) == ({id_: held}, None)
    assert passages.waiting(database.view) == (0, 0)


def test_a_payload_of_another_tool_that_is_no_memory_stops_nothing(
    tmp_path: Path, own: FakeEmbedder
) -> None:
    database = Database.open(tmp_path / "memory.db", create=True)
    with database.txn() as txn:
        tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
        for number, payload in enumerate(("no JSON", "[1]", '{"content":1}', '{"gist":"x"}')):
            txn.run(
                "INSERT INTO memories (memory_uuid, payload) VALUES (?, ?)",
                (f"{number:036}", payload),
            )
    (id_,) = keep(database, "Priya signs.")
    learn(database, own)
    assert embedded(database).keys() == {id_}
    database.close()
