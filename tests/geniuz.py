"""Geniuz on a file of its own or of ours, as far as its SQL goes.

It is not run. Its tables, its reading and its writing are said here in other words; what they have
in common with it is what counts: names, columns, constraints and the functions of SQLite.
"""

import json
import sqlite3
import uuid

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


def as_geniuz_asks(
    plain: sqlite3.Connection, word: str, id_: str, time: str
) -> dict[str, list[tuple[object, ...]]]:
    """What its commands read: by word, by the beginning of an ID, since a time, in threads, the
    vectors with their gists and what lacks one.
    """
    gist = (
        "coalesce(json_extract(payload, '$.gist'), substr(json_extract(payload, '$.content'), 1))"
    )
    joined = "FROM memory_embeddings AS e JOIN memories AS m ON m.memory_uuid = e.memory_uuid"
    lacking = "FROM memories AS m LEFT JOIN memory_embeddings AS e ON e.memory_uuid = m.memory_uuid"

    def rows(sql: str, *values: object) -> list[tuple[object, ...]]:
        return plain.execute(sql, values).fetchall()

    return {
        "word": rows(f"SELECT {gist} FROM memories WHERE payload LIKE ?", f"%{word}%"),
        "id": rows(
            "SELECT json_extract(payload, '$.content'), parent_uuid FROM memories"
            " WHERE memory_uuid LIKE ? LIMIT 1",
            f"{id_[:8].upper()}%",
        ),
        "since": rows(
            f"SELECT {gist} FROM memories WHERE created_at > ? ORDER BY created_at", time
        ),
        "vectors": rows(f"SELECT m.memory_uuid, {gist}, length(e.embedding) {joined}"),
        "lacking": rows(
            f"SELECT m.memory_uuid {lacking} WHERE e.memory_uuid IS NULL"
            " AND json_extract(m.payload, '$.content') IS NOT NULL"
        ),
        "threads": rows("SELECT memory_uuid, level, root_uuid FROM memory_chains ORDER BY level"),
        "count": rows("SELECT count(*) FROM memories"),
    }
