-- Run before 0001 in a file from the time when Geniuz was called clawmark, whose memories are called
-- signals: the tables get the names that they have had since. Geniuz does the same, but only where
-- there is no table `memories`; 0001 would make an empty one, and theirs would be lost to both.
DROP VIEW IF EXISTS signal_chains;
DROP TRIGGER IF EXISTS prevent_signal_delete;
DROP TRIGGER IF EXISTS prevent_signal_update;
DROP INDEX IF EXISTS idx_signals_chronological;
DROP INDEX IF EXISTS idx_signals_uuid_prefix;
DROP INDEX IF EXISTS idx_signals_parent;
CREATE TABLE IF NOT EXISTS signal_embeddings (signal_uuid TEXT PRIMARY KEY, embedding BLOB NOT NULL);
ALTER TABLE signals RENAME TO memories;
ALTER TABLE memories RENAME COLUMN signal_uuid TO memory_uuid;
ALTER TABLE signal_embeddings RENAME TO memory_embeddings;
ALTER TABLE memory_embeddings RENAME COLUMN signal_uuid TO memory_uuid;
