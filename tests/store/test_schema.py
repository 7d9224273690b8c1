"""The schema is made once, recorded, and kept by the database itself, from whatever program."""

import re
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from geniuzfs.errors import StoreDamaged, TooNew
from geniuzfs.model import CHUNK, ROOT, InodeNumber
from geniuzfs.store import check, content, schema, tree
from geniuzfs.store.connection import Database

UUID = "3487B9B0-0000-4000-8000-000000000001"

RECORDED = ",".join(str(file.number) for file in schema.schema_files())

# What Geniuz runs itself on each open: its tables, without our constraints.
GENIUZ = """
CREATE TABLE IF NOT EXISTS _meta (key TEXT PRIMARY KEY, value TEXT);
INSERT OR IGNORE INTO _meta (key, value) VALUES ('version', '1.0'), ('product', 'geniuz');
CREATE TABLE IF NOT EXISTS memories (
    memory_uuid TEXT PRIMARY KEY NOT NULL, payload TEXT NOT NULL,
    created_at TEXT NOT NULL DEFAULT (datetime('now')), parent_uuid TEXT);
CREATE INDEX IF NOT EXISTS idx_memories_chronological ON memories (created_at DESC);
CREATE TABLE IF NOT EXISTS memory_embeddings (
    memory_uuid TEXT PRIMARY KEY, embedding BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS embedding_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TRIGGER IF NOT EXISTS prevent_memory_update BEFORE UPDATE ON memories BEGIN
    SELECT RAISE(ABORT, 'no update'); END;
CREATE TRIGGER IF NOT EXISTS prevent_memory_delete BEFORE DELETE ON memories BEGIN
    SELECT RAISE(ABORT, 'no delete'); END;
"""


def shell(path: Path, *statements: str) -> subprocess.CompletedProcess[str]:
    """The plain sqlite3 program, with what Debian builds into it."""
    return subprocess.run(
        ["sqlite3", "-batch", "-bail", str(path), *statements],
        capture_output=True,
        text=True,
        check=False,
    )


def asked(path: Path, statement: str) -> str:
    done = shell(path, statement)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Migrations.


def test_the_files_are_numbered_from_1_without_a_gap() -> None:
    numbers = [file.number for file in schema.schema_files()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_statement_of_the_files_was_run(database: Database) -> None:
    text = "\n".join(file.sql for file in schema.schema_files())
    bare = re.sub(r"--.*", "", text)
    kinds = "TABLE|UNIQUE INDEX|INDEX|VIEW|TRIGGER"
    named = re.findall(rf"CREATE (?:{kinds})(?: IF NOT EXISTS)? (\w+)", bare)
    assert len(named) == bare.count("CREATE ")
    there = {row[0] for row in database.view.rows("SELECT name FROM sqlite_schema")}
    assert set(named) <= there
    assert set(named) | {"migrations"} == set(schema.objects())
    assert database.view.row("SELECT value FROM _meta WHERE key = 'product'") == ("geniuz",)


def test_what_was_run_is_recorded_and_not_run_again(database: Database) -> None:
    recorded = database.view.rows("SELECT number, name FROM migrations ORDER BY number")
    assert recorded == [(file.number, file.name) for file in schema.schema_files()]
    before = database.view.rows("SELECT * FROM migrations")
    Database.open(database.path).close()
    assert database.view.rows("SELECT * FROM migrations") == before


def test_a_file_of_a_later_version_is_refused_and_stays_as_it_is(database: Database) -> None:
    later = schema.schema_files()[-1].number + 1
    with database.txn() as txn:
        txn.run(schema.RECORD, (later, "of_the_future"))
    before = database.view.rows("SELECT * FROM sqlite_schema")
    with pytest.raises(TooNew, match="upgrade"):
        Database.open(database.path)
    assert database.view.rows("SELECT * FROM sqlite_schema") == before
    with database.txn() as txn:
        txn.run("DELETE FROM migrations WHERE number = ?", (later,))


def test_a_record_that_does_not_fit_what_is_there_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    Database.open(path, create=True).close()
    shell(path, "DELETE FROM migrations")
    with pytest.raises(StoreDamaged):
        Database.open(path)


@pytest.mark.parametrize("_round", range(30))  # the race was lost once in 16 rounds
def test_a_new_file_that_is_opened_at_once_from_everywhere_is_made_once(
    tmp_path: Path, _round: int
) -> None:
    path, failures, start = tmp_path / "memory.db", [], threading.Barrier(4)

    def open_it() -> None:
        start.wait()
        try:
            Database.open(path, create=True).close()
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert asked(path, "SELECT group_concat(number) FROM migrations") == RECORDED


def test_processes_that_open_a_new_file_at_once_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    code = (
        "import sys; from pathlib import Path; from geniuzfs.store.connection import Database;"
        "sys.stdin.read(); Database.open(Path(sys.argv[1]), create=True).close()"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(4)
    ]
    for process in started:  # all have their imports behind them, or will in a moment
        assert process.stdin is not None
        process.stdin.close()
    for process in started:
        assert process.stderr is not None
        said = process.stderr.read()
        process.stderr.close()
        assert (process.wait(), said) == (0, b"")
    assert asked(path, "SELECT group_concat(number) FROM migrations") == RECORDED


def test_a_migration_that_is_cut_short_leaves_nothing_of_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    files = schema.schema_files()
    broken = schema.SchemaFile(
        len(files) + 1, "0004_broken", "CREATE TABLE half (x); CREATE TABLE half (x);"
    )
    monkeypatch.setattr(schema, "schema_files", lambda: [*files, broken])
    with pytest.raises(StoreDamaged):
        Database.open(path, create=True)
    monkeypatch.undo()
    with closing(sqlite3.connect(path)) as plain:
        assert plain.execute("SELECT max(number) FROM migrations").fetchone() == (
            len(schema.schema_files()),
        )
        assert plain.execute("SELECT 1 FROM sqlite_schema WHERE name = 'half'").fetchone() is None


# Geniuz's own file.


@pytest.fixture
def made_by_geniuz(tmp_path: Path) -> Path:
    path = tmp_path / "geniuz" / "memory.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as plain:
        plain.executescript(GENIUZ)
        plain.execute("INSERT INTO _meta VALUES ('theirs', 'kept')")
        plain.execute(
            "INSERT INTO memories VALUES (?, ?, '2026-01-01 00:00:00', ?)",
            (UUID, '{"content":"we said","gist":"said"}', UUID),
        )
        plain.execute("INSERT INTO memory_embeddings VALUES (?, ?)", (UUID, bytes(1536)))
    return path


def test_a_file_that_geniuz_made_is_adopted_without_harm(made_by_geniuz: Path) -> None:
    with closing(sqlite3.connect(made_by_geniuz)) as plain:
        before = {table: plain.execute(f"SELECT * FROM {table}").fetchall() for table in THEIRS}
        columns = plain.execute("SELECT sql FROM sqlite_schema WHERE name = 'memories'").fetchone()
    database = Database.open(made_by_geniuz)
    try:
        with database.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
        assert list(check.problems(database.view)) == []
        assert database.view.rows("SELECT gist, level, root_uuid FROM memory_chains") == [
            ("said", 0, UUID)
        ]
    finally:
        database.close()
    with closing(sqlite3.connect(made_by_geniuz, isolation_level=None)) as plain:
        plain.executescript(GENIUZ)  # and Geniuz opens it again
        plain.execute("INSERT INTO memories (memory_uuid, payload) VALUES (?, '{}')", ("A" * 36,))
        plain.execute("DELETE FROM memory_embeddings")
        assert plain.execute("SELECT count(*) FROM memories").fetchone() == (2,)
        assert (
            plain.execute("SELECT sql FROM sqlite_schema WHERE name = 'memories'").fetchone()
            == columns
        )
    assert {table: len(rows) for table, rows in before.items()} == {
        "_meta": 3,
        "memories": 1,
        "memory_embeddings": 1,
        "embedding_meta": 0,
    }


THEIRS = ("_meta", "memories", "memory_embeddings", "embedding_meta")


def test_what_geniuz_wrote_is_not_touched_by_opening(made_by_geniuz: Path) -> None:
    before = [asked(made_by_geniuz, f"SELECT * FROM {table}") for table in THEIRS]
    Database.open(made_by_geniuz).close()
    assert [asked(made_by_geniuz, f"SELECT * FROM {table}") for table in THEIRS] == before


# Memories never change.


@pytest.fixture
def remembering(database: Database) -> Database:
    with database.txn() as txn:
        txn.run(
            "INSERT INTO memories (rowid, memory_uuid, payload) VALUES (7, ?, ?)",
            (UUID, '{"content":"a","gist":"b"}'),
        )
    return database


OTHER = UUID[:-1] + "2"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memories SET payload = 'x'",
        "UPDATE OR REPLACE memories SET payload = 'x'",
        "UPDATE OR IGNORE memories SET created_at = 'x'",
        f"UPDATE OR REPLACE memories SET memory_uuid = '{OTHER}'",
        "UPDATE memories SET rowid = 8",
        "DELETE FROM memories",
        f"DELETE FROM memories WHERE memory_uuid = '{UUID}'",
        f"INSERT OR REPLACE INTO memories (memory_uuid, payload) VALUES ('{UUID}', 'x')",
        f"REPLACE INTO memories (memory_uuid, payload) VALUES ('{UUID}', 'x')",
        f"REPLACE INTO memories (rowid, memory_uuid, payload) VALUES (7, '{OTHER}', 'x')",
        f"INSERT INTO memories (memory_uuid, payload) VALUES ('{UUID}', 'x')"
        " ON CONFLICT (memory_uuid) DO UPDATE SET payload = 'x'",
        f"INSERT OR REPLACE INTO memories (memory_uuid, payload) SELECT '{UUID}', 'x'",
        f"UPDATE OR REPLACE memories SET rowid = 9 WHERE memory_uuid = '{UUID}'",
        f"WITH x AS (SELECT 7) REPLACE INTO memories (_rowid_, memory_uuid, payload)"
        f" SELECT *, '{OTHER}', 'x' FROM x",
        f"INSERT INTO memories (rowid, memory_uuid, payload) VALUES (7, '{OTHER}', 'x')"
        " ON CONFLICT DO UPDATE SET payload = 'x'",
        f"REPLACE INTO memories (memory_uuid, payload) VALUES ('{OTHER}', 'x'), ('{UUID}', 'x')",
        f"INSERT INTO memories (rowid, memory_uuid, payload) VALUES (-1, '{OTHER}', 'x')",
        f"REPLACE INTO memories (rowid, memory_uuid, payload) VALUES (0, '{OTHER}', 'x')",
        "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF; DELETE FROM memories",
        f"REPLACE INTO memories (oid, memory_uuid, payload) VALUES (7, '{UUID}', 'x')",
        "UPDATE memories SET parent_uuid = NULL",
        "UPDATE memories SET payload = x.p FROM (SELECT 'x' AS p) AS x",
        "DELETE FROM memories WHERE true RETURNING *",
        "DELETE FROM main.memories WHERE rowid IN (SELECT 7)",
        f"ATTACH ':memory:' AS o; CREATE TABLE o.m AS SELECT '{UUID}' AS u;"
        " REPLACE INTO main.memories (memory_uuid, payload) SELECT u, 'x' FROM o.m",
        f"CREATE TEMP TABLE t (x); CREATE TEMP TRIGGER g AFTER INSERT ON t BEGIN REPLACE INTO"
        f" memories (memory_uuid, payload) VALUES ('{UUID}', 'x'); END; INSERT INTO t VALUES (1)",
    ],
)
def test_a_memory_is_immutable_in_every_program(remembering: Database, statement: str) -> None:
    before = remembering.view.rows("SELECT rowid, * FROM memories")
    done = shell(remembering.path, statement)
    assert done.returncode != 0
    assert "immutable" in done.stderr
    done = shell(remembering.path, "PRAGMA recursive_triggers = ON", statement)
    assert done.returncode != 0
    assert remembering.view.rows("SELECT rowid, * FROM memories") == before


OUT_OF_REACH = {
    "taking away the triggers": ("DROP TRIGGER prevent_memory_update",),
    "dropping": ("PRAGMA foreign_keys = OFF", "DROP TABLE memories"),
    "renaming": ("ALTER TABLE memories RENAME TO theirs",),
    "putting a copy in its place": (
        "CREATE TABLE copy (memory_uuid TEXT PRIMARY KEY, payload) WITHOUT ROWID",
        "INSERT INTO copy SELECT memory_uuid, 'x' FROM memories",
        "ALTER TABLE memories RENAME TO theirs",
        "ALTER TABLE copy RENAME TO memories",
    ),
    "writing into the schema": (
        ".dbconfig defensive off",
        "PRAGMA writable_schema = ON",
        "DELETE FROM sqlite_schema WHERE name = 'prevent_memory_update'",
    ),
    "turning triggers off": (".dbconfig enable_trigger off", "UPDATE memories SET payload = 'x'"),
}


@pytest.mark.parametrize("how", OUT_OF_REACH)
def test_what_is_out_of_reach_is_said_in_the_readme(tmp_path: Path, how: str) -> None:
    path = tmp_path / "memory.db"
    Database.open(path, create=True).close()
    insert = f"INSERT INTO memories (memory_uuid, payload) VALUES ('{UUID}', 'y')"
    done = shell(path, insert, *OUT_OF_REACH[how])
    assert (done.returncode, done.stderr) == (0, "")
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    assert how in " ".join(readme.split())


def test_memories_can_be_added_from_every_program(remembering: Database) -> None:
    payload = '{"content":"c","gist":"d"}'
    insert = f"INSERT INTO memories (memory_uuid, payload) VALUES ('{OTHER}', '{payload}')"
    assert shell(remembering.path, insert).returncode == 0
    assert remembering.view.row("SELECT count(*) FROM memories") == (2,)


# The mark that learning is due, and the record of changes.


@pytest.fixture
def file(database: Database) -> InodeNumber:
    """A file with a piece 0 and a piece 1, learned."""
    with database.txn() as txn:
        number = tree.create(txn, ROOT, b"file", tree.New(0o100644, 0, 0), 5).number
        pieces = {0: bytes(CHUNK), 1: b"end"}
        content.save(txn, number, content.Save(CHUNK + 3, 5, 5, pieces))
        txn.run("DELETE FROM due")
        learned = "INSERT INTO sources (inode, state, hash, rows) VALUES (?, 'not-text', x'', x'')"
        txn.run(learned, (number,))
    return number


PIECES = [
    "INSERT OR REPLACE INTO contents VALUES ({0}, zeroblob(65536))",
    "UPDATE contents SET bytes = zeroblob(65536) WHERE inode = {0}",
    "UPDATE inodes SET stored = 3 WHERE number = {0}; DELETE FROM contents WHERE inode = {0}",
    "UPDATE inodes SET stored = 65540, size = 131073 WHERE number = {0};"
    "INSERT INTO chunks VALUES ({0}, 2, x'41')",
    "UPDATE chunks SET bytes = x'414243' WHERE inode = {0}",
    "UPDATE inodes SET stored = 65536 WHERE number = {0}; DELETE FROM chunks WHERE inode = {0}",
]


@pytest.mark.parametrize("statement", PIECES)
def test_a_change_of_bytes_marks_the_file_due_in_the_same_transaction(
    database: Database, file: InodeNumber, statement: str
) -> None:
    statement = statement.format(file)
    undone = f"BEGIN; {statement}; SELECT inode, since_ns FROM due; ROLLBACK"
    assert asked(database.path, undone) == f"{file}|5"
    assert database.view.rows("SELECT * FROM due") == []
    assert asked(database.path, f"BEGIN; {statement}; COMMIT; SELECT * FROM due") == f"{file}|5"


def test_a_later_change_moves_the_due_mark(database: Database, file: InodeNumber) -> None:
    for time in (6, 9):
        with database.txn() as txn:
            content.save(txn, file, content.Save(1, time, time, {0: b"x", 1: b""}))
        assert database.view.rows("SELECT * FROM due") == [(file, time)]


def test_a_file_that_goes_takes_its_bytes_and_its_mark_along(
    database: Database, file: InodeNumber
) -> None:
    with database.txn() as txn:
        tree.remove(txn, ROOT, b"file", 6, directory=False)
    for table in ("contents", "chunks", "due"):
        assert database.view.rows(f"SELECT * FROM {table}") == []


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (
            "UPDATE inodes SET nlink = nlink + 1 WHERE number = {0};"
            "INSERT INTO entries (parent, id, name, inode) VALUES (1, 9, x'41', {0})",
            ["{0}|", "1|A"],
        ),
        ("UPDATE entries SET name = x'42' WHERE inode = {0}", ["1|file", "1|B"]),
        ("UPDATE entries SET id = 77 WHERE inode = {0}", ["1|file"]),
        ("UPDATE inodes SET mode = 33024 WHERE number = {0}", ["{0}|"]),
        ("INSERT INTO xattrs VALUES ({0}, x'41', x'42')", ["{0}|"]),
        ("REPLACE INTO xattrs VALUES ({0}, x'41', x'42')", ["{0}|"]),
        (
            "INSERT INTO xattrs VALUES ({0}, x'41', x'42');"
            "UPDATE xattrs SET value = x'43'; DELETE FROM xattrs",
            ["{0}|", "{0}|", "{0}|"],
        ),
        (
            "DELETE FROM entries WHERE inode = {0}; DELETE FROM inodes WHERE number = {0}",
            ["1|file", "{0}|"],
        ),
    ],
)
def test_each_kind_of_change_is_on_record_whoever_makes_it(
    database: Database, file: InodeNumber, statement: str, expected: list[str]
) -> None:
    before = database.newest_change()
    done = asked(
        database.path,
        f"PRAGMA foreign_keys = ON; BEGIN; {statement.format(file)}; COMMIT;"
        f"SELECT inode, name FROM changes WHERE seq > {before} ORDER BY seq",
    )
    lines = [line for line in done.splitlines() if line]
    told = iter(lines)
    assert all(line.format(file) in told for line in expected), lines


@pytest.mark.parametrize("statement", PIECES)
def test_a_change_of_bytes_is_on_record_whoever_makes_it(
    database: Database, file: InodeNumber, statement: str
) -> None:
    with database.txn() as txn:  # so that the newest record is of something else
        tree.create(txn, ROOT, b"other", tree.New(0o100644, 0, 0), 5)
    before = database.newest_change()
    asked(database.path, f"BEGIN; {statement.format(file)}; COMMIT")
    rows = database.view.rows("SELECT inode, name FROM changes WHERE seq > ?", (before,))
    assert (file, None) in rows
