-- A row of number -1 would end all keeping: to a trigger before an insert, every new row has
-- that number, so prevent_memory_replace would see each of them replace that one. After an insert
-- the number is known. 0 and what lies below are refused with it: rows are read from 1 on.
CREATE TRIGGER prevent_memory_below AFTER INSERT ON memories WHEN NEW.rowid < 1 BEGIN
    SELECT RAISE(ABORT, 'memories are immutable: a row is numbered from 1 on');
END;
