-- What files were before: every replaced or removed content, for as long as the folder keeps it
-- (`history_days` and `history_bytes` in _meta; store.retention knows what they are without a row).

-- The history of one file as people see it. It stays with the name when an editor puts a new inode
-- there, with the file when it is renamed or moved, and goes on when a file is created again where
-- it ended. A file has none until something of it is replaced, and an inode has one at most.
-- While the file lives: `inode`. Once it has ended, the place: `name` in `parent`, or, when that
-- directory is gone too, in what was `directory`, a path from the top ("" is the top).
CREATE TABLE lineages (
    id        INTEGER PRIMARY KEY,
    inode     INTEGER UNIQUE REFERENCES inodes (number) ON DELETE SET NULL,
    parent    INTEGER REFERENCES inodes (number) ON DELETE SET NULL,
    directory BLOB,
    name      BLOB    CHECK (length(name) BETWEEN 1 AND 255),
    ended_ns  INTEGER,                     -- since 1970, UTC
    backup    INTEGER,                     -- the inode that was renamed to a backup's name there (vim)
    -- Who wrote what is there now, as far as is known, and the burst of saves that it belongs to:
    -- since when, and whether it is the first text of it, which is kept; those after it are not.
    writer    TEXT    NOT NULL DEFAULT '', -- `vim (1234)`
    pid       INTEGER NOT NULL DEFAULT 0,
    started   INTEGER NOT NULL DEFAULT 0,  -- of the process, in clock ticks since the machine's start
    burst_ns  INTEGER NOT NULL DEFAULT 0,
    is_first  INTEGER NOT NULL DEFAULT 0 CHECK (is_first IN (0, 1)),
    -- The last version holds all of its bytes: nothing that follows changes it.
    is_sealed INTEGER NOT NULL DEFAULT 0 CHECK (is_sealed IN (0, 1))
) STRICT;
-- Not partial: SQLite looks through the whole table for a foreign key then, at each unlink.
CREATE INDEX lineages_by_place ON lineages (parent, name);
CREATE INDEX lineages_by_path ON lineages (directory, name) WHERE directory IS NOT NULL;

-- One content that was replaced. In the order of their ids; `replaced_ns` grows within a lineage,
-- whatever the clock does: it names the version. All that is known of it but the bytes.
CREATE TABLE versions (
    id        INTEGER PRIMARY KEY,
    lineage   INTEGER NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
    replaced_ns INTEGER NOT NULL,
    mtime_ns  INTEGER NOT NULL,
    mode      INTEGER NOT NULL,
    size      INTEGER NOT NULL CHECK (size >= 0),
    stored    INTEGER NOT NULL DEFAULT 0 CHECK (stored >= 0),  -- bytes in its pieces
    writer    TEXT    NOT NULL DEFAULT '', -- who wrote it, as far as is known
    blind     INTEGER NOT NULL DEFAULT 0 CHECK (blind IN (0, 1))  -- replaced by one who had not read it
) STRICT;
CREATE INDEX versions_by_lineage ON versions (lineage, id);

-- The bytes of a version, in pieces of 65,536 as those of files, and only where what replaced it
-- differs within its size: for the rest the next version that has the piece is asked, in the end the
-- file. Each that is passed on the way cuts what comes by its size, with zeros after it. So a line
-- that is added to a large file costs a row, and the oldest versions can go at any time. An empty
-- piece is zeros.
CREATE TABLE version_pieces (
    version   INTEGER NOT NULL REFERENCES versions (id) ON DELETE CASCADE,
    number    INTEGER NOT NULL CHECK (number >= 0),
    bytes     BLOB    NOT NULL CHECK (length(bytes) <= 65536),
    PRIMARY KEY (version, number)
) STRICT;
CREATE INDEX versions_blind ON versions (lineage) WHERE blind = 1;
