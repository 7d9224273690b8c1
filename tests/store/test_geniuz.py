"""One file, two programs: what Geniuz made is read here, and what is kept here reads as its own.

Geniuz itself is not run. Its tables, its reading and its writing are said here in other words; what
they have in common with it is what counts: names, columns, constraints and the functions of SQLite.
"""

import json
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from geniuzfs.store import check, memories, passages, tree
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.notes import Asker, learn

TABLES = """
CREATE TABLE IF NOT EXISTS _meta (key TEXT PRIMARY KEY, value TEXT);
INSERT OR IGNORE INTO _meta VALUES ('version', '1.0'), ('product', '{product}');
CREATE TABLE IF NOT EXISTS {table} (
    {one}_uuid TEXT PRIMARY KEY NOT NULL CHECK (length({one}_uuid) = 36),
    payload TEXT NOT NULL CHECK (length(payload) >= 1),
    created_at TEXT NOT NULL DEFAULT (datetime('now', 'utc')),
    parent_uuid TEXT CHECK (parent_uuid IS NULL OR length(parent_uuid) = 36));
CREATE INDEX IF NOT EXISTS idx_{table}_chronological ON {table} (created_at DESC);
CREATE INDEX IF NOT EXISTS idx_{table}_uuid_prefix ON {table} (substr({one}_uuid, 1, 8));
CREATE INDEX IF NOT EXISTS idx_{table}_parent ON {table} (parent_uuid);
CREATE VIEW IF NOT EXISTS {one}_chains AS
WITH RECURSIVE c ({one}_uuid, parent_uuid, gist, created_at, level, root_uuid) AS (
    SELECT {one}_uuid, coalesce(parent_uuid, {one}_uuid), json_extract(payload, '$.gist'),
           created_at, 0, {one}_uuid FROM {table}
     WHERE parent_uuid IS NULL OR {one}_uuid = parent_uuid
    UNION ALL
    SELECT m.{one}_uuid, m.parent_uuid, json_extract(m.payload, '$.gist'),
           m.created_at, c.level + 1, c.root_uuid
      FROM {table} AS m JOIN c ON m.parent_uuid = c.{one}_uuid
     WHERE m.{one}_uuid <> m.parent_uuid AND c.level < 100)
SELECT * FROM c;
CREATE TRIGGER IF NOT EXISTS prevent_{one}_delete BEFORE DELETE ON {table} BEGIN
    SELECT RAISE(ABORT, 'no delete'); END;
CREATE TRIGGER IF NOT EXISTS prevent_{one}_update BEFORE UPDATE ON {table} BEGIN
    SELECT RAISE(ABORT, 'no update'); END;
CREATE TABLE IF NOT EXISTS {one}_embeddings ({one}_uuid TEXT PRIMARY KEY, embedding BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS embedding_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

NAMINGS = {
    "geniuz": {"table": "memories", "one": "memory", "product": "geniuz"},
    "clawmark": {"table": "signals", "one": "signal", "product": "clawmark"},
}
TEXTS = ["Who signs the renewal?", "Priya Nair does.", "Since May."]


def as_geniuz_keeps(
    plain: sqlite3.Connection, text: str, parent: str | None = None, naming: str = "geniuz"
) -> str:
    """A memory and its vector in one transaction."""
    id_, names = str(uuid.uuid4()).upper(), NAMINGS[naming]
    payload = json.dumps({"content": text, "gist": text}, separators=(",", ":"), ensure_ascii=False)
    with plain:
        plain.execute(
            f"INSERT INTO {names['table']} ({names['one']}_uuid, payload, created_at, parent_uuid)"
            " VALUES (?, ?, datetime('now', 'utc'), ?)",
            (id_, payload, parent or id_),
        )
        plain.execute(f"INSERT INTO {names['one']}_embeddings VALUES (?, ?)", (id_, bytes(1536)))
    return id_


def as_geniuz_lists(plain: sqlite3.Connection) -> list[tuple[str, str]]:
    """Content and gist of all memories, newest first; NULL would make it fail."""
    rows = plain.execute(
        "SELECT json_extract(payload, '$.content'), coalesce(json_extract(payload, '$.gist'), '')"
        " FROM memories ORDER BY created_at DESC, rowid DESC"
    ).fetchall()
    assert all(isinstance(field, str) for row in rows for field in row)
    return rows


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
