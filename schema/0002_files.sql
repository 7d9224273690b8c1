-- The tree of files in a folder. The database is the truth: the mount, the
-- command line and every other door read and write these tables, and so may
-- any other SQLite program while the folder is mounted. The triggers below
-- tell the others what has changed, whatever tool made the change.

-- One row an inode. Number 1 is the folder's top directory.
-- AUTOINCREMENT, since a number is never used twice: kernels, backups and the
-- history know files by it. It stays below 2^36, which leaves the mount room
-- to number the folder in a 52-bit inode number that JavaScript can hold.
-- There is no row with nlink = 0: a file that is removed while somebody has it
-- open lives on in the memory of the mount that has it open, and nowhere else.
CREATE TABLE inodes (
    number    INTEGER PRIMARY KEY AUTOINCREMENT CHECK (number BETWEEN 1 AND 68719476735),
    mode      INTEGER NOT NULL,            -- type and permissions, as in stat(2)
    uid       INTEGER NOT NULL,
    gid       INTEGER NOT NULL,
    nlink     INTEGER NOT NULL CHECK (nlink > 0),  -- entries; for a directory 2 + its subdirectories
    rdev      INTEGER NOT NULL DEFAULT 0,  -- device nodes only
    size      INTEGER NOT NULL DEFAULT 0 CHECK (size >= 0),  -- bytes; beyond what is stored: a hole of zeros
    stored    INTEGER NOT NULL DEFAULT 0 CHECK (stored >= 0),  -- bytes in contents and chunks together
    atime_ns  INTEGER NOT NULL,            -- since 1970, UTC; moved by utimensat alone, never by reading
    mtime_ns  INTEGER NOT NULL,
    ctime_ns  INTEGER NOT NULL,
    target    BLOB                         -- symbolic links only
) STRICT;

-- One row a name in a directory. `id` grows within its directory and is the
-- cookie of readdir(3): whoever lists a directory while others change it sees
-- each entry that was there all along exactly once. Kept twice, each covering:
-- by name, where a lookup is one search, and by id, where a listing is one
-- sequential read.
CREATE TABLE entries (
    parent    INTEGER NOT NULL REFERENCES inodes (number),
    name      BLOB    NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    id        INTEGER NOT NULL CHECK (id > 0),
    inode     INTEGER NOT NULL REFERENCES inodes (number),
    PRIMARY KEY (parent, name)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX entries_by_id ON entries (parent, id, inode);
CREATE INDEX entries_by_inode ON entries (inode);

-- The first 65,536 bytes of a file: of most files, all. No row: no bytes.
-- Shorter than the file's size: zeros follow.
CREATE TABLE contents (
    inode     INTEGER PRIMARY KEY REFERENCES inodes (number) ON DELETE CASCADE,
    bytes     BLOB    NOT NULL CHECK (length(bytes) BETWEEN 1 AND 65536)
) STRICT;

-- The bytes that follow, 65,536 to a chunk: chunk n starts at n * 65,536. A
-- missing chunk is a hole, a short one ends in zeros. In pieces, so that a
-- small change in a large file writes one piece and a hole costs nothing. A
-- table with rowids, since without them SQLite reads whole rows to compare keys:
-- to list the pieces of a 64 MiB file took 120 ms, and takes 0.2.
CREATE TABLE chunks (
    inode     INTEGER NOT NULL REFERENCES inodes (number) ON DELETE CASCADE,
    number    INTEGER NOT NULL CHECK (number > 0),
    bytes     BLOB    NOT NULL CHECK (length(bytes) BETWEEN 1 AND 65536),
    PRIMARY KEY (inode, number)
) STRICT;

-- Extended attributes, by the name the kernel gives (with its namespace).
CREATE TABLE xattrs (
    inode     INTEGER NOT NULL REFERENCES inodes (number) ON DELETE CASCADE,
    name      BLOB    NOT NULL CHECK (length(name) BETWEEN 1 AND 255),
    value     BLOB    NOT NULL CHECK (length(value) <= 65536),
    PRIMARY KEY (inode, name)
) STRICT;

-- What is still to be learned: marked by a trigger, so in the transaction that
-- stores the bytes, whoever stores them.
CREATE TABLE due (
    inode     INTEGER PRIMARY KEY REFERENCES inodes (number) ON DELETE CASCADE,
    since_ns  INTEGER NOT NULL  -- the inode's ctime when it was marked last
) STRICT;

-- What has changed, in commit order: how a mount that caches learns of the
-- commits of others. A row with a name: that entry of directory `inode` came,
-- went or was turned elsewhere. A row without: the attributes, bytes or
-- extended attributes of `inode`. Old rows are pruned, never the newest, so that
-- `seq` only grows (AUTOINCREMENT would write one more page a save); whoever has
-- read up to a row that is gone must drop all it cached.
CREATE TABLE changes (
    seq       INTEGER PRIMARY KEY,
    inode     INTEGER NOT NULL,
    name      BLOB
) STRICT;

CREATE TRIGGER entries_added AFTER INSERT ON entries BEGIN
    INSERT INTO changes (inode, name) VALUES (NEW.parent, NEW.name);
END;
CREATE TRIGGER entries_removed AFTER DELETE ON entries BEGIN
    INSERT INTO changes (inode, name) VALUES (OLD.parent, OLD.name);
END;
CREATE TRIGGER entries_turned AFTER UPDATE ON entries BEGIN
    INSERT INTO changes (inode, name) VALUES (OLD.parent, OLD.name);
    INSERT INTO changes (inode, name) SELECT NEW.parent, NEW.name
     WHERE NEW.parent <> OLD.parent OR NEW.name <> OLD.name;
END;

CREATE TRIGGER inodes_changed AFTER UPDATE ON inodes BEGIN
    INSERT INTO changes (inode) VALUES (NEW.number);
END;
CREATE TRIGGER inodes_removed AFTER DELETE ON inodes BEGIN
    INSERT INTO changes (inode) VALUES (OLD.number);
END;

-- A row for each piece, even where the newest row is of the same inode: that one
-- may have been read already, and then this change would be told to nobody.
CREATE TRIGGER contents_added AFTER INSERT ON contents BEGIN
    INSERT INTO changes (inode) VALUES (NEW.inode);
    INSERT INTO due (inode, since_ns)
        VALUES (NEW.inode, (SELECT ctime_ns FROM inodes WHERE number = NEW.inode))
        ON CONFLICT (inode) DO UPDATE SET since_ns = excluded.since_ns;
END;
CREATE TRIGGER contents_changed AFTER UPDATE ON contents BEGIN
    INSERT INTO changes (inode) VALUES (NEW.inode);
    INSERT INTO due (inode, since_ns)
        VALUES (NEW.inode, (SELECT ctime_ns FROM inodes WHERE number = NEW.inode))
        ON CONFLICT (inode) DO UPDATE SET since_ns = excluded.since_ns;
END;
CREATE TRIGGER contents_removed AFTER DELETE ON contents BEGIN
    INSERT INTO changes (inode) VALUES (OLD.inode);
END;
CREATE TRIGGER contents_removed_due AFTER DELETE ON contents
 WHEN EXISTS (SELECT 1 FROM inodes WHERE number = OLD.inode)
BEGIN
    INSERT INTO due (inode, since_ns)
        VALUES (OLD.inode, (SELECT ctime_ns FROM inodes WHERE number = OLD.inode))
        ON CONFLICT (inode) DO UPDATE SET since_ns = excluded.since_ns;
END;

CREATE TRIGGER chunks_added AFTER INSERT ON chunks BEGIN
    INSERT INTO changes (inode) VALUES (NEW.inode);
    INSERT INTO due (inode, since_ns)
        VALUES (NEW.inode, (SELECT ctime_ns FROM inodes WHERE number = NEW.inode))
        ON CONFLICT (inode) DO UPDATE SET since_ns = excluded.since_ns;
END;
CREATE TRIGGER chunks_changed AFTER UPDATE ON chunks BEGIN
    INSERT INTO changes (inode) VALUES (NEW.inode);
    INSERT INTO due (inode, since_ns)
        VALUES (NEW.inode, (SELECT ctime_ns FROM inodes WHERE number = NEW.inode))
        ON CONFLICT (inode) DO UPDATE SET since_ns = excluded.since_ns;
END;
CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN
    INSERT INTO changes (inode) VALUES (OLD.inode);
END;
CREATE TRIGGER chunks_removed_due AFTER DELETE ON chunks
 WHEN EXISTS (SELECT 1 FROM inodes WHERE number = OLD.inode)
BEGIN
    INSERT INTO due (inode, since_ns)
        VALUES (OLD.inode, (SELECT ctime_ns FROM inodes WHERE number = OLD.inode))
        ON CONFLICT (inode) DO UPDATE SET since_ns = excluded.since_ns;
END;

CREATE TRIGGER xattrs_added AFTER INSERT ON xattrs BEGIN
    INSERT INTO changes (inode) VALUES (NEW.inode);
END;
CREATE TRIGGER xattrs_changed AFTER UPDATE ON xattrs BEGIN
    INSERT INTO changes (inode) VALUES (NEW.inode);
END;
CREATE TRIGGER xattrs_removed AFTER DELETE ON xattrs BEGIN
    INSERT INTO changes (inode) VALUES (OLD.inode);
END;

-- Which files have a capability or an SELinux label: few, and asked for often.
CREATE INDEX xattrs_capability ON xattrs (inode)
 WHERE name = x'73656375726974792E6361706162696C697479';
CREATE INDEX xattrs_label ON xattrs (inode)
 WHERE name = x'73656375726974792E73656C696E7578';
