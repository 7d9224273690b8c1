"""One file, two programs: what Geniuz made is read here, and what is kept here reads as its own."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from geniuzfs.store import check, memories, passages, tree
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.geniuz import NAMINGS, TABLES, as_geniuz_keeps, as_geniuz_lists
from tests.notes import Asker, learn

TEXTS = ["Who signs the renewal?", "Priya Nair does.", "Since May."]


@pytest.fixture(params=NAMINGS)
def theirs(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, list[str]]:
    """A file with a thread of three memories, and their IDs."""
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as plain:
        plain.execute("PRAGMA journal_mode = WAL")
        plain.executescript(TABLES.format(**NAMINGS[request.param]))
        ids: list[str] = []
        for text in TEXTS:
            ids.append(as_geniuz_keeps(plain, text, ids[-1] if ids else None, request.param))
        plain.execute("INSERT INTO embedding_meta VALUES ('model', 'theirs')")
        plain.commit()
    return path, ids


@pytest.fixture
def opened(theirs: tuple[Path, list[str]]) -> Iterator[Database]:
    database = Database.open(theirs[0])
    try:
        with database.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
        yield database
        assert list(check.problems(database.view)) == []
    finally:
        database.close()


def test_their_memories_are_found_opened_and_read_as_a_thread(
    theirs: tuple[Path, list[str]], opened: Database
) -> None:
    _, ids = theirs
    learn(opened, FakeEmbedder())
    assert passages.waiting(opened.view) == (0, 0)
    assert Asker(opened).texts("priya nair mode:thread") == TEXTS
    (found,) = memories.by_prefix(opened.view, ids[1][:8])
    assert (found.content, found.parent) == (TEXTS[1], ids[0])
    assert opened.view.rows(
        "SELECT memory_uuid, length(embedding) FROM memory_embeddings ORDER BY rowid"
    ) == [(id_, 1536) for id_ in ids]
    assert opened.view.row("SELECT value FROM embedding_meta WHERE key = 'model'") == ("theirs",)


def test_what_is_kept_here_reads_as_their_own(
    theirs: tuple[Path, list[str]], opened: Database
) -> None:
    path, ids = theirs
    with opened.txn() as txn:
        kept = memories.keep(
            txn, "Die Katze schläft. 😺", None, ids[2], 4_000_000_000 * 10**9
        ).memory
    with closing(sqlite3.connect(path)) as plain:
        plain.executescript(TABLES.format(**NAMINGS["geniuz"]))  # they open it again
        assert as_geniuz_lists(plain)[0] == (kept.content, kept.gist)
        assert plain.execute(
            "SELECT level, root_uuid FROM memory_chains WHERE memory_uuid = ?", (kept.id,)
        ).fetchall() == [(3, ids[0])]
        assert plain.execute(  # of what they have no vector yet
            "SELECT m.memory_uuid FROM memories AS m LEFT JOIN memory_embeddings"
            " USING (memory_uuid) WHERE embedding IS NULL"
        ).fetchall() == [(kept.id,)]
        plain.execute(
            "INSERT OR REPLACE INTO memory_embeddings VALUES (?, ?)", (kept.id, bytes(1536))
        )
        plain.commit()
        mine = as_geniuz_keeps(plain, "Kept by them.", kept.id)
        for attack in ("DELETE FROM memories", "UPDATE memories SET payload = 'x'"):
            with pytest.raises(sqlite3.IntegrityError):
                plain.execute(attack)
    learn(opened, FakeEmbedder())
    assert Asker(opened).texts("kept by them")[0] == "Kept by them."
    thread = memories.thread(opened.view, kept.id)
    assert [each.id for each in thread] == [*ids, kept.id, mine]


def test_a_file_with_both_names_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as plain:
        for naming, text in (("clawmark", "old"), ("geniuz", "new")):
            plain.executescript(TABLES.format(**NAMINGS[naming]))
            as_geniuz_keeps(plain, text, naming=naming)
    Database.open(path).close()
    with closing(sqlite3.connect(path)) as plain:
        assert as_geniuz_lists(plain) == [("new", "new")]
        assert plain.execute("SELECT count(*) FROM signals").fetchone() == (1,)
