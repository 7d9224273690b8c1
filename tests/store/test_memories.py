"""Kept memories: the rows that they become, and how they are found again."""

import json
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geniuzfs import addresses
from geniuzfs.errors import UsageError
from geniuzfs.model import Memory, MemoryId
from geniuzfs.store import memories, passages
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.notes import Asker, learn

NOW_NS = 1_790_000_000 * 10**9
NOW = "2026-09-21 14:13:20"


def keep(
    database: Database, text: str, parent: str | None = None, *, gist: str | None = None
) -> Memory:
    with database.txn() as txn:
        return memories.keep(txn, text, gist, parent, NOW_NS).memory


def put(database: Database, id_: str, parent: str | None, created_at: str = NOW) -> None:
    """What another tool might insert."""
    with database.txn() as txn:
        txn.run(
            "INSERT INTO memories VALUES (?, ?, ?, ?)",
            (id_, json.dumps({"content": id_, "gist": id_}), created_at, parent),
        )


def numbered(number: int, begin: str = "3487B9B0") -> str:
    return f"{begin}-0000-4000-8000-{number:012}"


def test_a_memory_is_a_row_as_geniuz_writes_it(database: Database) -> None:
    kept = keep(database, " Die Katze schläft. \n", gist="Katze")
    (row,) = database.view.rows("SELECT * FROM memories")
    assert row == (kept.id, '{"content":"Die Katze schläft.","gist":"Katze"}', NOW, kept.id)
    assert re.fullmatch(
        r"[0-9A-F]{8}-[0-9A-F]{4}-4[0-9A-F]{3}-[89AB][0-9A-F]{3}-[0-9A-F]{12}", row[0]
    )
    assert database.view.row("SELECT typeof(created_at) FROM memories") == ("text",)


@pytest.mark.parametrize(
    ("text", "gist"),
    [
        ("short", "short"),
        ("ä" * 200, "ä" * 200),
        ("ä" * 201, "ä" * 197 + "..."),
        ("one\ntwo", "one\ntwo"),
    ],
)
@pytest.mark.parametrize("none", [None, "", " \n"])
def test_a_gist_is_made_where_none_is_given(
    database: Database, text: str, gist: str, none: str | None
) -> None:
    assert keep(database, text, gist=none).gist == gist


@pytest.mark.parametrize("text", ["", " \n\t", "a\0b", "a\udcff", "x" * 2_000_001])
def test_what_is_empty_or_no_text_is_refused(database: Database, text: str) -> None:
    with pytest.raises(UsageError):
        keep(database, text)
    assert database.view.row("SELECT count(*) FROM memories") == (0,)


@pytest.mark.parametrize("gist", ["a\0b", "a\udcff"])
def test_a_gist_that_is_no_text_is_refused(database: Database, gist: str) -> None:
    with pytest.raises(UsageError):
        keep(database, "text", gist=gist)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_any_text_is_read_back_and_is_what_sqlite_reads(database: Database, text: str) -> None:
    if not text.strip():
        return
    kept = keep(database, text)
    assert kept.content == text.strip()
    assert memories.memory(database.view, kept.id) == kept
    (by_sqlite,) = database.view.row(
        "SELECT json_extract(payload, '$.content') FROM memories WHERE memory_uuid = ?", (kept.id,)
    )
    assert by_sqlite == kept.content


# Threads


def test_a_memory_continues_another_that_is_named_by_its_beginning(database: Database) -> None:
    root = keep(database, "root")
    for prefix in (root.id, root.id[:8], root.id[:8].lower(), root.id[:4], root.id[:14]):
        assert keep(database, "child", prefix).parent == root.id


@pytest.mark.parametrize("parent", ["DEADBEEF", "dead", "ABC", "", "no ID", "%", "3487B9B0-' OR 1"])
def test_an_unknown_parent_begins_a_thread_and_says_so(database: Database, parent: str) -> None:
    put(database, numbered(1), None)
    with database.txn() as txn:
        kept = memories.keep(txn, "text", None, parent, NOW_NS)
    assert kept.parent_unknown
    assert kept.memory.parent == kept.memory.id


def test_a_parent_that_several_have_is_an_error_that_lists_them(database: Database) -> None:
    put(database, numbered(1), None)
    put(database, numbered(2, "3487C000"), None)
    with pytest.raises(UsageError, match=r"several .* 3487: 3487B9B0-0000 .*, 3487C000-0000 "):
        keep(database, "text", "3487")
    assert keep(database, "text", "3487c").parent == numbered(2, "3487C000")


def test_an_id_in_lower_case_from_another_tool_is_found(database: Database) -> None:
    put(database, "abcdef00-0000-4000-8000-000000000001", None)
    assert keep(database, "text", "ABCDEF00").parent == "abcdef00-0000-4000-8000-000000000001"


def test_a_thread_is_read_from_its_root_whatever_of_it_is_asked_for(database: Database) -> None:
    root = keep(database, "root")
    first = keep(database, "first", root.id)
    second = keep(database, "second", root.id)
    below = keep(database, "below the first", first.id)
    keep(database, "another thread")
    for asked in (root, first, second, below):
        assert memories.thread(database.view, asked.id) == [root, first, below, second]
    levels = dict(database.view.rows("SELECT memory_uuid, level FROM memory_chains"))
    assert [levels[each.id] for each in (root, first, below, second)] == [0, 1, 2, 1]


def test_a_thread_that_is_a_circle_or_has_no_root_is_read_to_its_end(database: Database) -> None:
    put(database, numbered(1), numbered(2))
    put(database, numbered(2), numbered(1))
    put(database, numbered(3), numbered(9))
    assert {m.id for m in memories.thread(database.view, MemoryId(numbered(1)))} == {
        numbered(1),
        numbered(2),
    }
    assert [m.id for m in memories.thread(database.view, MemoryId(numbered(3)))] == [numbered(3)]
    assert memories.thread(database.view, MemoryId(numbered(9))) == []


# Reading


def test_pages_hold_each_memory_once_in_the_order_of_keeping(database: Database) -> None:
    kept = [keep(database, f"memory {n}") for n in range(7)]
    pages, after = [], 0
    while page := memories.page(database.view, after, 3):
        pages.append(page)
        after = page[-1].number
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [each.memory for page in pages for each in page] == kept


@pytest.mark.parametrize("payload", ["no JSON", "[1]", '{"content":1}', '{"gist":null}', "1"])
def test_a_payload_of_another_tool_that_is_no_memory_says_nothing(
    database: Database, payload: str
) -> None:
    with database.txn() as txn:
        txn.run("INSERT INTO memories VALUES (?, ?, 'no time', NULL)", (numbered(1), payload))
    found = memories.one(database.view, "3487B9B0")
    assert found == Memory(MemoryId(numbered(1)), "", "", "no time", MemoryId(numbered(1)))
    assert memories.newest_ns(database.view) == 0
    with database.txn() as txn:  # the check at the end of this test would rightly complain
        txn.run("DROP TRIGGER prevent_memory_delete")
        txn.run("DELETE FROM memories")
        txn.run(
            "CREATE TRIGGER prevent_memory_delete BEFORE DELETE ON memories BEGIN SELECT 1; END"
        )


def test_a_memory_is_found_by_its_words_at_once_and_by_meaning_when_it_was_learned(
    database: Database,
) -> None:
    kept = keep(database, "Priya Nair signs the renewal.")
    assert passages.due_memories(database.view, 10) == [kept.id]
    learn(database)
    (hit,) = Asker(database).ask("renewal").hits
    assert (hit.text, hit.address) == (kept.content, f"00000000:{kept.id[:8]}")
    learn(database, FakeEmbedder())
    assert passages.waiting(database.view) == (0, 0)


def test_memories_of_one_second_are_told_the_last_one_first(database: Database) -> None:
    for number in range(40):
        with database.txn() as txn:
            memories.keep(txn, f"Note {number}.", None, None, 1_790_000_000 * 10**9)
    learn(database)
    wanted = [f"Note {number}." for number in reversed(range(40))]
    assert Asker(database).texts("mode:recent limit:40") == wanted
    assert Asker(database).texts("mode:grep note limit:40") == wanted


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("13625F6B:3487B9B0", ("13625F6B", "3487B9B0")),
        ("3487b9b0", ("", "3487B9B0")),
        ("3487", ("", "3487")),
        (numbered(1), ("", numbered(1))),
        (f"{numbered(2)}:{numbered(1)}", (numbered(2), numbered(1))),
        ("348", None),
        ("tea at four", None),
        ("12:30", None),
        (":3487B9B0", None),
        ("3487B9B0 ", None),
        ("", None),
    ],
)
def test_an_address_is_told_from_other_text(text: str, address: tuple[str, str] | None) -> None:
    assert addresses.address(text) == address
