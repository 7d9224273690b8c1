-- The tables of Geniuz itself, as Geniuz makes and reads them: same names,
-- same columns, same conventions, so that either program opens the other's
-- file. Geniuz runs its own schema on every open, each statement with IF NOT
-- EXISTS: what stands here under the same name stays. No trigger or view here
-- may use a function that SQLite itself does not bring, or Geniuz could no
-- longer write.

-- What the file says about itself. Geniuz keeps `version` and `product`; ours
-- beside them are `uuid`, `name`, `description` and `created_at` (the folder's
-- identity). A key that this program does not know is never rewritten.
CREATE TABLE IF NOT EXISTS _meta (
    key    TEXT PRIMARY KEY,
    value  TEXT
);
INSERT OR IGNORE INTO _meta (key, value) VALUES ('version', '1.0'), ('product', 'geniuz');

-- Kept memories: said on purpose, never changed. `payload` is compact JSON with
-- the strings `content` and `gist`; both must be there, since one row without
-- them makes Geniuz's listings fail. UUIDs are v4 in upper case. A root is its
-- own parent. Times are UTC, `YYYY-MM-DD HH:MM:SS`: they are compared as text.
CREATE TABLE IF NOT EXISTS memories (
    memory_uuid  TEXT PRIMARY KEY NOT NULL CHECK (length(memory_uuid) = 36),
    payload      TEXT NOT NULL CHECK (length(payload) >= 1),
    created_at   TEXT NOT NULL DEFAULT (datetime('now')),
    parent_uuid  TEXT CHECK (parent_uuid IS NULL OR length(parent_uuid) = 36)
);
CREATE INDEX IF NOT EXISTS idx_memories_chronological ON memories (created_at DESC);
CREATE INDEX IF NOT EXISTS idx_memories_uuid_prefix ON memories (substr(memory_uuid, 1, 8));
CREATE INDEX IF NOT EXISTS idx_memories_parent ON memories (parent_uuid);

-- Vectors of Geniuz's own model alone: 384 little-endian float32, 1,536 bytes.
-- A vector of another length would count as embedded there and never be mended.
CREATE TABLE IF NOT EXISTS memory_embeddings (
    memory_uuid  TEXT PRIMARY KEY,
    embedding    BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS embedding_meta (
    key    TEXT PRIMARY KEY,
    value  TEXT NOT NULL
);

-- Each memory with its place in its thread. What has no root in this file, and
-- what lies more than 100 levels deep, is not in the view.
CREATE VIEW IF NOT EXISTS memory_chains AS
WITH RECURSIVE chain (memory_uuid, parent_uuid, gist, created_at, level, root_uuid) AS (
    SELECT memory_uuid, coalesce(parent_uuid, memory_uuid),
           coalesce(json_extract(payload, '$.gist'), substr(json_extract(payload, '$.content'), 1, 200)),
           created_at, 0, memory_uuid
      FROM memories
     WHERE parent_uuid IS NULL OR parent_uuid = memory_uuid
    UNION ALL
    SELECT m.memory_uuid, m.parent_uuid,
           coalesce(json_extract(m.payload, '$.gist'), substr(json_extract(m.payload, '$.content'), 1, 200)),
           m.created_at, chain.level + 1, chain.root_uuid
      FROM memories AS m
      JOIN chain ON m.parent_uuid = chain.memory_uuid
     WHERE m.parent_uuid <> m.memory_uuid AND chain.level < 100
)
SELECT memory_uuid, parent_uuid, gist, created_at, level, root_uuid FROM chain;

-- Immutable for every tool that opens the file. The two names below are those
-- of Geniuz's own triggers, so that it adds no second pair.
CREATE TRIGGER IF NOT EXISTS prevent_memory_update BEFORE UPDATE ON memories BEGIN
    SELECT RAISE(ABORT, 'memories are immutable: update is not permitted');
END;
CREATE TRIGGER IF NOT EXISTS prevent_memory_delete BEFORE DELETE ON memories BEGIN
    SELECT RAISE(ABORT, 'memories are immutable: delete is not permitted');
END;
-- INSERT OR REPLACE fires no delete trigger unless the writer turned
-- recursive_triggers on, so it is refused before it can: by UUID and by rowid
-- (which is -1 here when the writer names none).
CREATE TRIGGER IF NOT EXISTS prevent_memory_replace BEFORE INSERT ON memories
WHEN EXISTS (SELECT 1 FROM memories WHERE memory_uuid = NEW.memory_uuid)
  OR EXISTS (SELECT 1 FROM memories WHERE rowid = NEW.rowid)
BEGIN
    SELECT RAISE(ABORT, 'memories are immutable: replace is not permitted');
END;
