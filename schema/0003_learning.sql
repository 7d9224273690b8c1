-- What was learned from the files and kept memories, so that recall finds them
-- by words and by meaning. All of it can be made anew from them: `geniuzfs
-- learn --again` does.

-- One row for each file or kept memory that was looked at. `rows` is its
-- passages in order, packed (store.passages.ROW says how): recall loads those of
-- 100,000 sources in 0.2 s, where a row for each passage took 2.
CREATE TABLE sources (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    inode     INTEGER UNIQUE REFERENCES inodes (number) ON DELETE CASCADE,
    memory    TEXT UNIQUE REFERENCES memories (memory_uuid) ON DELETE CASCADE,
    state     TEXT NOT NULL CHECK (state IN ('learned', 'empty', 'not-text', 'too-long', 'ignored')),
    hash      BLOB NOT NULL,               -- of the bytes and what else the passages come from: equal, nothing to learn
    rows      BLOB NOT NULL,
    CHECK ((inode IS NULL) <> (memory IS NULL))
) STRICT;

-- One row for each text, however many sources say it: text is known by its hash,
-- so what was said before is not embedded again. `context` rows are what a
-- passage stands under (its file's name and headings): they are found by, never
-- cited and never embedded, and each belongs to one source.
-- AUTOINCREMENT, since postings and vectors know passages by number, in order.
CREATE TABLE passages (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    hash      BLOB    NOT NULL UNIQUE,     -- blake2b, 16 bytes
    context   INTEGER NOT NULL CHECK (context IN (0, 1)),
    words     REAL    NOT NULL,            -- length in words and in n-grams, as store.terms counts
    grams     INTEGER NOT NULL,
    text      TEXT    NOT NULL
) STRICT;
CREATE INDEX passages_by_context ON passages (context);  -- for counting them

-- Which source says which text. The last one that says it takes it along, with
-- its vectors, in the same transaction.
CREATE TABLE teaches (
    source    INTEGER NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    passage   INTEGER NOT NULL REFERENCES passages (id),
    PRIMARY KEY (source, passage)
) STRICT, WITHOUT ROWID;
CREATE INDEX teaches_by_passage ON teaches (passage);

CREATE TRIGGER teaches_removed AFTER DELETE ON teaches BEGIN
    DELETE FROM passages WHERE id = OLD.passage
       AND NOT EXISTS (SELECT 1 FROM teaches WHERE passage = OLD.passage);
END;

-- Which sources were learned anew or are gone, in commit order: how those who
-- hold an index in memory follow. Pruned like `changes`.
CREATE TABLE learnings (
    seq       INTEGER PRIMARY KEY,
    source    INTEGER NOT NULL
) STRICT;
CREATE TRIGGER sources_added AFTER INSERT ON sources BEGIN
    INSERT INTO learnings (source) VALUES (NEW.id);
END;
CREATE TRIGGER sources_changed AFTER UPDATE OF rows ON sources BEGIN
    INSERT INTO learnings (source) VALUES (NEW.id);
END;
CREATE TRIGGER sources_removed AFTER DELETE ON sources BEGIN
    INSERT INTO learnings (source) VALUES (OLD.id);
END;

-- The index of words and n-grams: which passages hold a term, how often. A
-- segment covers the passages that it lists and never changes; small ones are
-- merged into larger ones. Its terms are spread over buckets by hash, so that
-- a large one is read in parts. A passage that is gone is left out of the
-- next merge; until then its number stands here and means nothing any more.
-- `ready` = 0: still being written, or given up by a crash.
CREATE TABLE segments (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    ready     INTEGER NOT NULL CHECK (ready IN (0, 1)),
    buckets   INTEGER NOT NULL,            -- a power of two
    passages  BLOB    NOT NULL             -- their numbers, ascending, int64
) STRICT;
CREATE TABLE postings (
    segment   INTEGER NOT NULL REFERENCES segments (id) ON DELETE CASCADE,
    bucket    INTEGER NOT NULL,
    terms     BLOB    NOT NULL,            -- store.postings says how
    PRIMARY KEY (segment, bucket)
) STRICT;

-- Embedding models that vectors here come from. `wanted`: the one that passages
-- wait for (`awaits`); the others are of use until it has caught up.
CREATE TABLE models (
    id        INTEGER PRIMARY KEY,
    name      TEXT    NOT NULL UNIQUE,     -- with the version of its weights
    wanted    INTEGER NOT NULL CHECK (wanted IN (0, 1))
) STRICT;

-- One vector a passage and model: float16, little-endian, of length 1. Those of a
-- model all have the same dimension.
CREATE TABLE vectors (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    passage   INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
    model     INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE,
    vector    BLOB    NOT NULL,
    UNIQUE (passage, model)
) STRICT;

-- The same in 8 bits, 1,024 to a block, for the scan: read 20 times faster than one
-- by one. Covers the vectors of its model up to the id `through`. What is gone
-- meanwhile stands here until the block is written anew, and is skipped.
CREATE TABLE blocks (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    model     INTEGER NOT NULL REFERENCES models (id) ON DELETE CASCADE,
    through   INTEGER NOT NULL,
    passages  BLOB    NOT NULL,            -- int64
    scales    BLOB    NOT NULL,            -- float32
    codes     BLOB    NOT NULL             -- int8, a row each: vector = scale * codes
) STRICT;

-- Passages that have no vector of the wanted model yet.
CREATE TABLE awaits (
    passage   INTEGER PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE
) STRICT;

-- Kept memories that are still to be learned, and directories beneath which the
-- rules of a .geniuzignore have changed: marked by triggers, whoever made the change.
CREATE TABLE due_memories (
    memory    TEXT PRIMARY KEY REFERENCES memories (memory_uuid) ON DELETE CASCADE
) STRICT;
CREATE TABLE due_rules (
    directory INTEGER PRIMARY KEY REFERENCES inodes (number) ON DELETE CASCADE
) STRICT;

CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
    INSERT INTO due_memories (memory) VALUES (NEW.memory_uuid);
END;

-- A file that was renamed is looked at again: its name counts, and a name may
-- be one that is not learned. Bytes without a name do not exist, so a new file has none yet.
CREATE TRIGGER entries_named AFTER INSERT ON entries
 WHEN EXISTS (SELECT 1 FROM inodes WHERE number = NEW.inode AND stored > 0)
BEGIN
    INSERT INTO due (inode, since_ns)
        VALUES (NEW.inode, (SELECT ctime_ns FROM inodes WHERE number = NEW.inode))
        ON CONFLICT (inode) DO UPDATE SET since_ns = excluded.since_ns;
END;
CREATE TRIGGER entries_renamed AFTER UPDATE ON entries
 WHEN EXISTS (SELECT 1 FROM inodes WHERE number = NEW.inode AND stored > 0)
BEGIN
    INSERT INTO due (inode, since_ns)
        VALUES (NEW.inode, (SELECT ctime_ns FROM inodes WHERE number = NEW.inode))
        ON CONFLICT (inode) DO UPDATE SET since_ns = excluded.since_ns;
END;

-- x'2E67656E69757A69676E6F7265' is `.geniuzignore`.
CREATE INDEX entries_rules ON entries (parent)
 WHERE name = x'2E67656E69757A69676E6F7265';
CREATE TRIGGER rules_added AFTER INSERT ON entries
 WHEN NEW.name = x'2E67656E69757A69676E6F7265'
BEGIN
    INSERT OR IGNORE INTO due_rules (directory) VALUES (NEW.parent);
END;
CREATE TRIGGER rules_removed AFTER DELETE ON entries
 WHEN OLD.name = x'2E67656E69757A69676E6F7265'
BEGIN
    INSERT OR IGNORE INTO due_rules (directory) VALUES (OLD.parent);
END;
CREATE TRIGGER rules_renamed AFTER UPDATE ON entries
 WHEN x'2E67656E69757A69676E6F7265' IN (OLD.name, NEW.name)
BEGIN
    INSERT OR IGNORE INTO due_rules (directory) VALUES (OLD.parent);
    INSERT OR IGNORE INTO due_rules (directory) VALUES (NEW.parent);
END;
CREATE TRIGGER rules_moved AFTER INSERT ON entries
 WHEN EXISTS (SELECT 1 FROM entries WHERE name = x'2E67656E69757A69676E6F7265')
  AND EXISTS (SELECT 1 FROM inodes WHERE number = NEW.inode AND (mode & 61440) = 16384)
BEGIN
    INSERT OR IGNORE INTO due_rules (directory) VALUES (NEW.inode);
END;

-- What was there before this schema.
INSERT INTO due_memories (memory) SELECT memory_uuid FROM memories;
