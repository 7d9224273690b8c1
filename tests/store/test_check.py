"""What breaks is found, and a repair brings it back without losing a byte."""

import stat
from pathlib import Path
from typing import NamedTuple

import pytest

from geniuzfs.errors import StoreDamaged
from geniuzfs.model import CHUNK, ROOT, InodeNumber, Problem
from geniuzfs.store import (
    check,
    content,
    histories,
    learned,
    recorded,
    schema,
    tree,
    versions,
    xattrs,
)
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import View
from tests.store.breaking import breaking

NOW = 1_700_000_000_000_000_000

NOTE = b"kept \xff\x00 exactly"
LARGE = b"a" * CHUNK + b"b" * 10

INODE = "INSERT INTO inodes (number, mode, uid, gid, nlink, atime_ns, mtime_ns, ctime_ns)"


class Sample(NamedTuple):
    """The numbers in the sample tree: /dir/note, /dir/large, /dir/deep, /link, /top."""

    dir: InodeNumber
    note: InodeNumber
    large: InodeNumber
    deep: InodeNumber
    link: InodeNumber
    top: InodeNumber


@pytest.fixture
def sample(database: Database) -> Sample:
    with database.txn() as txn:

        def make(parent: InodeNumber, name: bytes, mode: int) -> InodeNumber:
            return tree.create(txn, parent, name, tree.New(mode, 7, 8), NOW).number

        directory = make(ROOT, b"dir", 0o40755)
        note = make(directory, b"note", 0o100644)
        large = make(directory, b"large", 0o100644)
        deep = make(directory, b"deep", 0o40755)
        link_to = tree.New(0o120777, 7, 8, target=b"dir/note")
        link = tree.create(txn, ROOT, b"link", link_to, NOW).number
        top = make(ROOT, b"top", 0o100644)
        content.save(txn, note, content.Save(len(NOTE), 1, 1, {0: NOTE}))
        pieces = {0: LARGE[:CHUNK], 1: LARGE[CHUNK:]}
        content.save(txn, large, content.Save(len(LARGE), 1, 1, pieces))
        xattrs.put(txn, note, b"user.label", b"kept too", 1)
    return Sample(directory, note, large, deep, link, top)


def problems(view: View) -> list[Problem]:
    return list(check.problems(view))


def rules(database: Database) -> set[str]:
    return {problem.rule for problem in problems(database.view)}


def repair(database: Database) -> None:
    assert check.repair(database, NOW) == []


def files(view: View) -> dict[str, bytes]:
    """Path → bytes of every regular file that can be reached."""
    found: dict[str, bytes] = {}
    waiting = [("", ROOT)]
    for path, number in waiting:
        for entry in tree.listing(view, number, 0, 1000):
            inode = tree.inode(view, entry.inode)
            assert inode is not None
            below = f"{path}/{entry.name.decode()}"
            if stat.S_ISDIR(inode.mode):
                waiting.append((below, entry.inode))
            elif stat.S_ISREG(inode.mode):
                found[below] = content.read(view, entry.inode)
    return found


SOUND = {"/dir/note": NOTE, "/dir/large": LARGE, "/top": b""}

CASES: dict[str, tuple[str, str, dict[str, bytes]]] = {
    "a link count that is too high": (
        "links_are_counted",
        "UPDATE inodes SET nlink = 9 WHERE number = {note}",
        SOUND,
    ),
    "a directory's link count": (
        "links_are_counted",
        "UPDATE inodes SET nlink = 2 WHERE number = {dir}",
        SOUND,
    ),
    "stored that is no sum": (
        "sizes_hold",
        "UPDATE inodes SET stored = 1 WHERE number = {large}",
        SOUND,
    ),
    "a size within the bytes": (
        "sizes_hold",
        "UPDATE inodes SET size = 3 WHERE number = {note}",
        SOUND,
    ),
    "a size within the chunks": (
        "sizes_hold",
        "UPDATE inodes SET size = 70 WHERE number = {large}",
        SOUND,
    ),
    "an entry without an inode": (
        "names_stand_for_inodes",
        "INSERT INTO entries (parent, id, name, inode) VALUES ({dir}, 99, x'41', 4711)",
        SOUND,
    ),
    "a file that has lost its row": (
        "pieces_belong_to_files",
        "DELETE FROM inodes WHERE number = {large}",
        SOUND,
    ),
    "a file that has lost its row and its name": (
        "pieces_belong_to_files",
        "DELETE FROM inodes WHERE number = {large}; DELETE FROM entries WHERE inode = {large}",
        {"/dir/note": NOTE, "/top": b"", "/lost+found/#{large}": LARGE},
    ),
    "bytes of a number that no inode can have": (
        "pieces_belong_to_files",
        "INSERT INTO contents VALUES (-4, x'4142'); INSERT INTO chunks VALUES (-4, 1, x'43')",
        SOUND | {"/lost+found/#{next}": b"AB" + bytes(CHUNK - 2) + b"C"},
    ),
    "bytes in a directory": (
        "pieces_belong_to_files",
        "INSERT INTO contents VALUES ({deep}, x'4142')",
        SOUND | {"/lost+found/#{next}": b"AB"},
    ),
    "a file that is turned into a fifo": (
        "pieces_belong_to_files",
        "UPDATE inodes SET mode = 4516 WHERE number = {note}",
        {"/dir/large": LARGE, "/top": b"", "/lost+found/#{next}": NOTE},
    ),
    "attributes without an inode": (
        "attributes_belong_to_inodes",
        "INSERT INTO xattrs VALUES (4711, x'41', x'42')",
        SOUND | {"/lost+found/#4711": b""},
    ),
    "a due mark without an inode": (
        "due_marks_belong_to_inodes",
        "INSERT INTO due VALUES (4711, 1)",
        SOUND,
    ),
    "a file that has lost its name": (
        "inodes_are_reached",
        "DELETE FROM entries WHERE inode = {note}",
        {"/dir/large": LARGE, "/top": b"", "/lost+found/#{note}": NOTE},
    ),
    "a directory that has lost its name": (
        "inodes_are_reached",
        "DELETE FROM entries WHERE inode = {dir}",
        {
            "/lost+found/#{dir}/note": NOTE,
            "/lost+found/#{dir}/large": LARGE,
            "/top": b"",
        },
    ),
    "two directories that hold each other": (
        "inodes_are_reached",
        "UPDATE entries SET parent = {deep} WHERE inode = {dir}",
        {
            "/lost+found/#{dir}/note": NOTE,
            "/lost+found/#{dir}/large": LARGE,
            "/top": b"",
        },
    ),
    "a directory that holds itself": (
        "inodes_are_reached",
        "UPDATE entries SET parent = {dir} WHERE inode = {dir}",
        {
            "/lost+found/#{dir}/note": NOTE,
            "/lost+found/#{dir}/large": LARGE,
            "/top": b"",
        },
    ),
    "lost+found is a file": (
        "inodes_are_reached",
        "UPDATE entries SET name = CAST('lost+found' AS BLOB) WHERE inode = {top};"
        "DELETE FROM entries WHERE inode = {note}",
        {"/dir/large": LARGE, "/lost+found": b"", "/lost+found.1/#{note}": NOTE},
    ),
    "a taken name in lost+found": (
        "inodes_are_reached",
        "UPDATE entries SET name = CAST('lost+found' AS BLOB) WHERE inode = {dir};"
        "UPDATE entries SET name = CAST('#{note}' AS BLOB) WHERE inode = {large};"
        "DELETE FROM entries WHERE inode = {note}",
        {"/lost+found/#{note}": LARGE, "/lost+found/#{note}_": NOTE, "/top": b""},
    ),
    "a name with a slash": (
        "names_are_valid",
        "UPDATE entries SET name = x'412F42' WHERE inode = {note}",
        {"/dir/#{note}": NOTE, "/dir/large": LARGE, "/top": b""},
    ),
    "the name ..": (
        "names_are_valid",
        "UPDATE entries SET name = x'2E2E' WHERE inode = {note}",
        {"/dir/#{note}": NOTE, "/dir/large": LARGE, "/top": b""},
    ),
    "a name with NUL": (
        "names_are_valid",
        "UPDATE entries SET name = x'4100' WHERE inode = {note}",
        {"/dir/#{note}": NOTE, "/dir/large": LARGE, "/top": b""},
    ),
    "a directory with two names": (
        "directories_have_one_name",
        "INSERT INTO entries (parent, id, name, inode) VALUES (1, 99, x'41', {deep})",
        SOUND,
    ),
    "a directory with a name beneath itself": (
        "directories_have_one_name",
        "INSERT INTO entries (parent, id, name, inode) VALUES ({deep}, 99, x'41', {dir})",
        SOUND,
    ),
    "the top has a name": (
        "directories_have_one_name",
        "INSERT INTO entries (parent, id, name, inode) VALUES ({deep}, 99, x'41', 1)",
        SOUND,
    ),
    "a file that holds entries": (
        "names_are_in_directories",
        "UPDATE entries SET parent = {top} WHERE inode = {note}",
        {"/dir/large": LARGE, "/top": b"", "/lost+found/#{next}/note": NOTE},
    ),
    "a directory that has lost its row": (
        "names_are_in_directories",
        "DELETE FROM inodes WHERE number = {dir}",
        SOUND,
    ),
    "a type that is none": (
        "types_are_known",
        "UPDATE inodes SET mode = 420 WHERE number IN ({note}, {dir}, {link}, 1)",
        SOUND,
    ),
    "a mode that is negative": (
        "types_are_known",
        "UPDATE inodes SET mode = -1 WHERE number = {note}",
        SOUND,
    ),
    "the top is missing": (
        "the_top_is_a_directory",
        "DELETE FROM inodes WHERE number = 1",
        SOUND,
    ),
    "the top is a file with bytes": (
        "the_top_is_a_directory",
        "UPDATE inodes SET mode = 33188 WHERE number = 1; INSERT INTO contents VALUES (1, x'4142');"
        "INSERT INTO xattrs VALUES (1, x'41', x'42')",
        SOUND | {"/lost+found/#{next}": b"AB"},
    ),
    "a record of the schema is missing": (
        "migrations_are_recorded",
        "DELETE FROM migrations WHERE number = 1",
        SOUND,
    ),
    "a trigger is missing": (
        "schema_is_whole",
        "DROP TRIGGER prevent_memory_update; DROP TRIGGER entries_added",
        SOUND,
    ),
    "a table and its index are missing": (
        "schema_is_whole",
        "DROP TABLE due",
        SOUND,
    ),
}


def filled(text: str, sample: Sample, next_number: int) -> str:
    for field, number in {**sample._asdict(), "next": next_number}.items():
        text = text.replace(f"{{{field}}}", str(number))
    return text


def next_number(database: Database) -> int:
    number: int = database.view.row("SELECT seq + 1 FROM sqlite_sequence WHERE name = 'inodes'")[0]
    return number


@pytest.mark.parametrize("case", CASES)
def test_what_is_broken_is_found_and_mended_and_every_byte_can_be_read(
    database: Database, sample: Sample, case: str
) -> None:
    rule, script, expected = CASES[case]
    assert problems(database.view) == []
    after = next_number(database)
    breaking(database, filled(script, sample, after))
    assert rule in rules(database)
    repair(database)
    assert files(database.view) == {
        filled(path, sample, after): held for path, held in expected.items()
    }


def test_every_rule_has_a_test() -> None:
    tested = {rule for rule, _, _ in CASES.values()} | {
        "sound_pages",
        "symlinks_point",
        "memories_can_be_read",
        "references_hold",
        "erasures_are_finished",  # see test_forgetting
    }
    elsewhere = (learned.__name__, recorded.__name__)  # see test_learned and below
    others = {rule.__name__ for rule in check.RULES if rule.__module__ in elsewhere}
    assert tested | others == {rule.__name__ for rule in check.RULES}


def test_attributes_come_back_with_the_file_that_had_lost_its_row(
    database: Database, sample: Sample
) -> None:
    breaking(database, f"DELETE FROM inodes WHERE number = {sample.note}")
    repair(database)
    assert xattrs.get(database.view, sample.note, b"user.label") == b"kept too"
    found = tree.inode(database.view, sample.note)
    assert found is not None
    assert (found.mode, found.uid, found.gid) == (0o100600, 0, 0)


def test_lost_and_found_belongs_to_the_owner_of_the_top(database: Database, sample: Sample) -> None:
    with database.txn() as txn:
        tree.change(txn, ROOT, tree.Fields(uid=1000, gid=100), 1)
    breaking(database, f"DELETE FROM entries WHERE inode = {sample.note}")
    repair(database)
    found = tree.child(database.view, ROOT, b"lost+found")
    assert found is not None
    assert (found.mode, found.uid, found.gid, found.nlink) == (0o40700, 1000, 100, 2)


def test_a_link_without_a_target_gets_one_and_one_of_another_size_its_own(
    database: Database, sample: Sample
) -> None:
    breaking(database, f"UPDATE inodes SET size = 1 WHERE number = {sample.link}")
    assert rules(database) == {"symlinks_point"}
    repair(database)
    assert tree.target(database.view, sample.link) == b"dir/note"
    breaking(database, f"UPDATE inodes SET target = NULL WHERE number = {sample.link}")
    assert rules(database) == {"symlinks_point"}
    repair(database)
    assert tree.target(database.view, sample.link) == b"?"


def test_a_target_of_a_file_becomes_a_link_of_its_own(database: Database, sample: Sample) -> None:
    after = next_number(database)
    breaking(database, f"UPDATE inodes SET target = x'4142' WHERE number = {sample.note}")
    assert rules(database) == {"symlinks_point"}
    repair(database)
    assert tree.target(database.view, InodeNumber(after)) == b"AB"
    assert files(database.view) == SOUND


def test_a_name_of_no_bytes_is_found_though_it_is_against_a_constraint(
    database: Database, sample: Sample
) -> None:
    breaking(database, f"UPDATE entries SET name = x'' WHERE inode = {sample.note}", trusting=True)
    assert {"sound_pages", "names_are_valid"} <= rules(database)
    repair(database)
    assert files(database.view) == {
        f"/dir/#{sample.note}": NOTE,
        "/dir/large": LARGE,
        "/top": b"",
    }


def test_an_index_that_has_lost_rows_is_built_anew(database: Database, sample: Sample) -> None:
    index = "UPDATE sqlite_schema SET sql = sql || '{}' WHERE name = 'entries_by_inode'"
    breaking(database, f"PRAGMA writable_schema = ON; {index.format(' WHERE inode < 0')}")
    breaking(
        database,
        "INSERT INTO entries (parent, id, name, inode)"
        f" VALUES ({sample.dir}, 50, x'41', {sample.note});"
        f"UPDATE inodes SET nlink = 2 WHERE number = {sample.note};"
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql ="
        " replace(sql, ' WHERE inode < 0', '') WHERE name = 'entries_by_inode'",
    )
    reopened = Database.open(database.path)
    try:
        found = problems(reopened.view)
        assert {problem.rule for problem in found} == {"sound_pages"}
        assert all(problem.mendable for problem in found)
        repair(reopened)
        assert files(reopened.view) == SOUND | {"/dir/A": NOTE}
    finally:
        reopened.close()


def test_a_mend_that_fails_is_undone_and_the_others_are_made(
    database: Database, sample: Sample
) -> None:
    # No size can hold a chunk so far away.
    breaking(database, f"INSERT INTO chunks VALUES ({sample.note}, 1 << 60, x'41')")
    breaking(database, f"UPDATE inodes SET nlink = 9 WHERE number IN ({sample.note}, 1)")
    assert [one.rule for one in check.repair(database, NOW)] == ["sizes_hold"]
    breaking(database, "DELETE FROM chunks WHERE number = 1 << 60")


def test_memories_that_geniuz_could_not_list_are_reported_and_left_alone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    database = Database.open(path, create=True)
    try:
        with database.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
            for number, payload in enumerate(
                ('{"content":"a","gist":"b"}', "no JSON", '{"content":"a"}', '{"gist":1}', "[]")
            ):
                txn.run(
                    "INSERT INTO memories (memory_uuid, payload) VALUES (?, ?)",
                    (f"{number:036}", payload),
                )
        found = problems(database.view)
        assert [(one.rule, one.mendable) for one in found] == [("memories_can_be_read", False)] * 4
        assert check.repair(database, NOW) == found
    finally:
        database.close()


def test_a_record_that_names_another_schema_is_reported_alone(database: Database) -> None:
    name = schema.schema_files()[0].name
    breaking(database, "UPDATE migrations SET name = 'another' WHERE number = 1")
    assert [(one.rule, one.mendable) for one in problems(database.view)] == [
        ("migrations_are_recorded", False)
    ]
    breaking(database, f"UPDATE migrations SET name = '{name}' WHERE number = 1")


def test_references_that_no_other_rule_knows_are_reported(database: Database) -> None:
    breaking(
        database,
        "CREATE TABLE later (inode INTEGER REFERENCES inodes (number));"
        "INSERT INTO later VALUES (4711)",
    )
    assert [one.rule for one in problems(database.view)] == ["references_hold"]
    breaking(database, "DROP TABLE later")


def test_a_page_of_garbage_is_reported_and_nothing_else_is_asked(
    database: Database, sample: Sample, tmp_path: Path
) -> None:
    database.checkpoint(hold_writers=True)
    copy = tmp_path / "copy.db"
    page = database.view.row("SELECT rootpage FROM sqlite_schema WHERE name = 'contents'")[0]
    held = bytearray(database.path.read_bytes())
    held[(page - 1) * 4096 : page * 4096] = b"\xa5" * 4096
    copy.write_bytes(held)
    damaged = Database.open(copy)
    try:
        assert rules(damaged) == {"sound_pages"}
    except StoreDamaged:
        pass  # so it is told when even the check can't read on
    finally:
        damaged.close()


HISTORY_CASES = {
    "a history that has lost its file": (
        "histories_have_a_place",
        "UPDATE lineages SET inode = 4711 WHERE inode = {note}",
        b"lost+found/#1",
    ),
    "a history of a directory": (
        "histories_have_a_place",
        "UPDATE lineages SET inode = {dir} WHERE inode = {note}",
        b"lost+found/#1",
    ),
    "a history that ended nowhere": (
        "histories_have_a_place",
        "UPDATE lineages SET inode = NULL WHERE inode = {note}",
        b"lost+found/#1",
    ),
    "versions without a history": (
        "versions_belong_to_histories",
        "DELETE FROM lineages",
        b"lost+found/#1",
    ),
    "bytes without a version": (
        "pieces_belong_to_versions",
        "DELETE FROM versions",
        b"lost+found/#v1",
    ),
    "bytes without anything": (
        "pieces_belong_to_versions",
        "DELETE FROM versions; DELETE FROM lineages",
        b"lost+found/#v1",
    ),
    "a sum that is none": ("versions_hold", "UPDATE versions SET stored = 1", b"dir/note"),
    "a size within the bytes": ("versions_hold", "UPDATE versions SET size = 3", b"dir/note"),
}


@pytest.mark.parametrize("case", HISTORY_CASES)
def test_a_version_that_has_lost_its_place_can_be_read_after_a_repair(
    database: Database, sample: Sample, case: str
) -> None:
    rule, script, path = HISTORY_CASES[case]
    with database.txn() as txn:
        content.save(txn, sample.note, content.Save(5, NOW, NOW, {0: b"newer"}))
    breaking(database, filled(script, sample, 0))
    assert rule in rules(database)
    repair(database)
    [version] = histories.at(database.view, path)
    assert b"".join(versions.read(database.view, version)) == NOTE
    assert content.read(database.view, sample.note) == b"newer"


def test_every_rule_about_histories_has_a_case() -> None:
    rules = {rule.__name__ for rule in check.RULES if rule.__module__ == recorded.__name__}
    assert {rule for rule, _, _ in HISTORY_CASES.values()} == rules
