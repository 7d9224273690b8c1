"""A folder held open for a program: questions, kept memories, sources, threads, and its end."""

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from geniuzfs import ConflictError, InvalidRequest, NotFoundError
from geniuzfs.api import Geniuz
from geniuzfs.api.connections import MOST
from geniuzfs.api.opened import Opened
from geniuzfs.config import Config
from geniuzfs.errors import UnsafePlace
from geniuzfs.learn.learner import Turn
from geniuzfs.ports import SystemClock
from geniuzfs.store import retention
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.folders.killing import other_disk
from tests.surface.test_files import raw


def test_what_was_put_is_found_at_once_and_cited(mem: Opened) -> None:
    mem.files.put("/drafts/plan.md", "# Pricing\n\nWe charge 20 euros\na month.\n", {"by": "me"})
    (hit,) = mem.recall("what do we charge a month?")
    assert (hit.path, hit.first_line, hit.last_line) == ("/drafts/plan.md", 3, 4)
    assert (hit.text, hit.labels) == ("We charge 20 euros\na month.", {"by": "me"})
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", hit.date)
    assert hit.score > 0
    mem.files.put("/drafts/plan.md", "We charge 30 pounds a month.")
    assert [hit.text for hit in mem.recall("charge month")] == ["We charge 30 pounds a month."]
    mem.files.delete("/drafts/plan.md")
    assert mem.recall("charge month") == []


def test_a_question_is_kept_to_what_its_filters_say(mem: Opened) -> None:
    mem.files.put("/a/1.md", "The ferry leaves at nine.", {"channel": "one"})
    mem.files.put("/b/2.md", "The ferry leaves at ten.", {"channel": "two"})
    tomorrow = datetime.now(UTC) + timedelta(days=1)

    def found(**filters: Any) -> list[str]:
        return sorted(hit.path for hit in mem.recall("ferry", **filters))

    assert found() == ["/a/1.md", "/b/2.md"]
    assert found(path="/a/") == ["/a/1.md"]
    assert found(labels={"channel": "two"}) == ["/b/2.md"]
    assert found(mode="words", limit=1) != found(mode="words")
    assert found(since="1h") == found(until=tomorrow) == found(on="today") == found()
    assert found(since=tomorrow) == found(until=datetime(2001, 1, 1, tzinfo=UTC)) == []
    assert [hit.path for hit in mem.recent()] == ["/b/2.md", "/a/1.md"]
    assert [hit.path for hit in mem.recent(1, path="/a/")] == ["/a/1.md"]
    assert mem.ask("ferry path:/a/").searched.path == "/a"
    for bad in ({"mode": "best"}, {"since": "soon"}, {"limit": 0}, {"limit": 201}, {"folder": "x"}):
        with pytest.raises(InvalidRequest):
            found(**bad)
    with pytest.raises(NotFoundError):
        found(path="/none/")


@pytest.mark.parametrize(
    "filters", [{"path": "/\ud800"}, {"labels": {"\ud800": "v"}}, {"labels": {"k": "\ud800"}}]
)
def test_filters_hold_no_half_characters(mem: Opened, filters: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        mem.recall("ferry", **filters)


def test_a_hit_s_path_can_be_asked_for_whatever_its_bytes(mem: Opened) -> None:
    raw(mem, b"/d\xff/odd\n.md", b"The ferry leaves.")
    (hit,) = mem.recall("ferry", mode="words")
    assert hit.path == "/d\udcff/odd\n.md"
    assert mem.recall("ferry", mode="words", path=hit.path) == [hit]
    with pytest.raises(NotFoundError) as error:
        mem.recall("ferry", path=hit.path + "\n")
    assert str(error.value).isprintable()


@pytest.mark.parametrize("question", ["", "   ", "a\0b", "\ud800", None, 5, "x" * 20_000])
def test_what_is_no_question_is_refused(mem: Opened, question: Any) -> None:
    for ask in (mem.recall, mem.context, mem.ask):
        with pytest.raises(InvalidRequest):
            ask(question)


def test_the_context_is_what_a_mount_answers(mem: Opened, geniuz: Geniuz) -> None:
    assert mem.context("ferry").startswith("Nothing found.\nsearched: 0 passages")
    mem.files.put("/a.md", "The ferry leaves at nine.")
    text = mem.context("ferry")
    assert text.startswith("- The ferry leaves at nine. [/a.md:1, ")
    assert text.splitlines()[1].startswith("searched: 1 passage, 0 memories")
    assert mem.context("ferry", path="/a.md", mode="words").count("ferry") == 1


def test_memories_are_kept_opened_and_followed(mem: Opened) -> None:
    first = mem.keep("Priya signs from May.", gist="who signs")
    second = mem.keep("From June.", parent=first.address)
    lonely = mem.keep("Nobody knows.", parent="FFFFFFFF")
    assert (second.parent_unknown, lonely.parent_unknown) == (False, True)
    assert mem.open_memory(first.address).memory == first.memory
    assert mem.open_memory(first.memory.id[:8]).memory.content == "Priya signs from May."
    texts = [hit.text for hit in mem.thread(second.address)]
    assert texts == ["Priya signs from May.", "From June."]
    assert [hit.address for hit in mem.recall("who signs from May?", 1)] == [first.address]
    with pytest.raises(NotFoundError):
        mem.open_memory("00000000")
    bad: tuple[Any, ...] = ("", "  ", "a\0", "\ud800", "x" * 2_000_001, None)
    for text in bad:
        with pytest.raises(InvalidRequest):
            mem.keep(text)
    with pytest.raises(InvalidRequest):
        mem.open_memory("no address")
    assert len(mem.sources.list().sources) == 3


def test_sources_are_files_and_memories(mem: Opened) -> None:
    kept = [mem.keep(f"Memory {number}.") for number in range(3)]
    for number in range(4):
        mem.files.put(f"/{number}.md", "", {"k": str(number)})
    every = mem.sources.list()
    assert [source.external_id for source in every.sources] == [
        *(f"file:/{number}.md" for number in range(4)),
        *(f"memory:{held.memory.id}" for held in kept),
    ]
    assert (every.total, every.next) == (7, None)
    assert every.sources[1] == mem.files.get("/1.md").source
    assert {source.kind for source in every.sources} == {"note", "memory"}
    for limit in range(1, 8):
        seen: list[Any] = []
        cursor = None
        while True:
            page = mem.sources.list(limit, cursor)
            assert len(page.sources) <= limit
            seen += page.sources
            cursor = page.next
            if cursor is None:
                break
        assert tuple(seen) == every.sources
    for cursor in ("x", "memory:x"):
        with pytest.raises(InvalidRequest):
            mem.sources.list(cursor=cursor)


def test_a_source_is_deleted_by_its_external_id(mem: Opened) -> None:
    mem.files.put("/notes.md", "Said here alone.")
    kept = mem.keep("This stays.")
    assert mem.sources.delete(external_id="file:/notes.md") == 1
    assert mem.recall("said alone", mode="grep") == []
    for external_id, error in (
        ("file:/notes.md", NotFoundError),
        ("memory:none", NotFoundError),
        (f"memory:{kept.memory.id}", InvalidRequest),
        ("file:notes.md", InvalidRequest),
        ("/notes.md", InvalidRequest),
        (None, InvalidRequest),
    ):
        with pytest.raises(error):
            mem.sources.delete(external_id)  # type: ignore[arg-type]
    assert [source.id for source in mem.sources.list().sources] == [kept.memory.id]


# Learning


def test_wait_ends_when_all_is_learned(mem: Opened) -> None:
    mem.files.put("/a.md", "The ferry leaves at nine.")
    assert mem.ask("ferry").searched.waiting > 0
    assert mem.wait(30)
    answer = mem.ask("ferry", mode="meaning")
    assert (answer.searched.waiting, answer.searched.meaning) == (0, True)
    assert mem.wait(0)


def test_wait_says_when_it_ends_before(mem: Opened, embedder: FakeEmbedder) -> None:
    mem.files.put("/a.md", "The ferry leaves at nine.")
    embedder.away = "it is on holiday"
    assert not mem.wait(30)
    embedder.away = None
    for number in range(200):
        mem.files.put(f"/{number}.md", f"Boat {number} leaves.")
    assert not mem.wait(0)


def test_wait_waits_for_another_who_learns(mem: Opened, geniuz: Geniuz) -> None:
    mem.files.put("/a.md", "The ferry leaves at nine.")
    other = geniuz.open(mem.folder, wait=1)
    turn = Turn(other)
    assert turn.take()
    assert not mem.wait(0.1)
    assert mem.recall("ferry", mode="words")  # whoever has the turn
    turn.give_back()
    other.close()
    assert mem.wait(30)


# From several threads


def at_once(threads: int, calls: int, work: Callable[[int], Any]) -> list[Any]:
    """What `calls` calls return, made by so many threads."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, range(calls)))


def test_a_thousand_calls_at_once_leave_what_each_has_said(mem: Opened) -> None:
    def work(number: int) -> str:
        path = f"/{number % 7}/{number}.md"
        mem.files.put(path, str(number))
        if number % 50 == 0:
            assert mem.recall(str(number), mode="words", limit=1)
        return mem.files.get(path).text

    assert at_once(50, 1_000, work) == [str(number) for number in range(1_000)]
    assert mem.files.list().total == 1_000
    assert len(mem._connections._idle) <= MOST


def test_edits_from_threads_are_all_in_the_file(mem: Opened) -> None:
    mem.files.put("/log", "")
    at_once(8, 200, lambda number: mem.files.edit("/log", lambda text: f"{text}{number}\n"))
    assert sorted(map(int, mem.files.get("/log").text.split())) == list(range(200))


def test_of_those_who_make_a_file_at_once_one_has_made_it(mem: Opened) -> None:
    def make(number: int) -> bool:
        try:
            mem.files.put("/lock", str(number), if_version="")
        except ConflictError:
            return False
        return True

    made = at_once(8, 40, make)
    assert sum(made) == 1
    assert mem.files.get("/lock").text == str(made.index(True))


def test_readers_do_not_wait_for_who_waits_to_write(mem: Opened) -> None:
    mem.files.put("/a", "x")
    database = mem._geniuz.open(mem.folder, wait=1)
    with database.txn():
        writer = threading.Thread(target=mem.files.put, args=("/a", "y"))
        writer.start()
        assert mem.files.get("/a").text == "x"
        assert writer.is_alive()
    writer.join(30)
    database.close()
    assert mem.files.get("/a").text == "y"


# Its end, and its way


@pytest.mark.parametrize("packed", [False, True])
def test_what_was_exported_can_be_imported(
    mem: Opened, geniuz: Geniuz, tmp_path: Path, packed: bool
) -> None:
    mem.files.put("/drafts/plan.md", "one", {"channel": "claude"})
    kept = mem.keep("Priya Nair signs the renewal.")
    archive = tmp_path / "archive"
    with archive.open("wb") as out:
        done = mem.export(out, packed=packed)
    assert (done.memories, done.left_out) == (1, [])
    geniuz.copies.exchange().import_new(archive, "Copy")
    with geniuz.opened("Copy") as copy:
        note = copy.files.get("/drafts/plan.md")
        assert (note.text, note.labels) == ("one", {"channel": "claude"})
        assert copy.open_memory(kept.memory.id).memory.content == kept.memory.content


def test_what_was_closed_says_so(geniuz: Geniuz) -> None:
    with geniuz.opened(None) as mem:
        mem.files.put("/a", "x")
    for call in (
        lambda: mem.files.get("/a"),
        lambda: mem.files.put("/a", "y"),
        lambda: mem.recall("x"),
        lambda: mem.context("x"),
        lambda: mem.keep("x"),
        lambda: mem.sources.list(),
        lambda: mem.wait(0),
        lambda: mem.folder,
    ):
        with pytest.raises(InvalidRequest, match="closed"):
            call()
    mem.close()
    with geniuz.opened(None) as again:
        assert again.files.get("/a").text == "x"


def test_it_is_the_folder_that_was_named(geniuz: Geniuz, tmp_path: Path) -> None:
    geniuz.begin()
    work = geniuz.arranging.new("Work")
    with pytest.raises(NotFoundError):
        geniuz.opened("Wrok")
    with geniuz.opened("work") as mem:
        mem.files.put("/a.md", "The ferry.")
        assert mem.folder.identity.id == work.identity.id
    with geniuz.opened(None) as mem:
        assert mem.files.list().total == 0
        assert mem.recall("ferry") == []
    (tmp_path / ".geniuz-folder").write_text("Work\n")
    with geniuz.opened(None, here=tmp_path) as mem:
        assert mem.recall("ferry")[0].folder == "Work"


@pytest.mark.parametrize("place", ["one disk", "another disk"])
def test_a_folder_is_followed_where_it_goes(geniuz: Geniuz, tmp_path: Path, place: str) -> None:
    geniuz.opened(None).close()
    work = geniuz.arranging.new("Work")
    with ExitStack() as stack:
        into = tmp_path / "elsewhere"
        into.mkdir()
        if place == "another disk":
            into = stack.enter_context(other_disk(tmp_path))
        mem = stack.enter_context(geniuz.opened("Work"))
        mem.files.put("/a.md", "The ferry.")
        renamed = geniuz.arranging.rename(work, "Jobs")
        moved = geniuz.arranging.move(renamed, into)
        mem.files.put("/b.md", "The bridge.")
        assert [file.path for file in mem.files.iter()] == ["/a.md", "/b.md"]
        assert mem.folder.path == moved.path
        assert mem.recall("bridge")[0].folder == "Jobs"
        geniuz.arranging.archive(moved)
        with pytest.raises(NotFoundError):
            mem.files.get("/a.md")


def test_two_folders_that_change_places_are_not_taken_for_each_other(
    geniuz: Geniuz, tmp_path: Path
) -> None:
    geniuz.opened(None).close()
    one, two = (geniuz.arranging.new(name).path.parent for name in ("One", "Two"))
    with geniuz.opened("One") as mem:
        mem.files.put("/a.md", "The ferry is one.")
        one.rename(tmp_path / "aside")
        two.rename(one)
        (tmp_path / "aside").rename(two)
        assert mem.recall("ferry")[0].text == "The ferry is one."
        mem.files.put("/b.md", "The bridge is one.")
        assert mem.folder.path.parent == two
    with geniuz.opened("Two") as mem:
        assert mem.files.list().total == 0


def test_the_file_that_geniuz_db_names_may_be_anywhere(
    tmp_path: Path, embedder: FakeEmbedder
) -> None:
    apart = tmp_path / "apart" / "memory.db"
    apart.parent.mkdir()
    Database.open(apart, create=True).close()
    environment = {"GENIUZ_HOME": str(tmp_path / "home"), "GENIUZ_DB": str(apart)}
    geniuz = Geniuz(Config.from_environment(environment), SystemClock(), embedder)
    with geniuz.opened(None, owns=True) as mem:
        mem.files.put("/a.md", "The ferry.")
        kept = mem.keep("The bridge.")
        assert mem.folder.path == apart
        assert [hit.path for hit in mem.recall("ferry")] == ["/a.md"]
        assert mem.wait(30)
        assert [hit.text for hit in mem.thread(kept.address)] == ["The bridge."]


def test_a_place_where_no_folder_can_be_is_named(tmp_path: Path, embedder: FakeEmbedder) -> None:
    (tmp_path / "file").write_text("")
    config = Config.from_environment({"GENIUZ_HOME": str(tmp_path / "file" / "home")})
    with pytest.raises(UnsafePlace, match="can't be the data directory"):
        Geniuz(config, SystemClock(), embedder).opened(None)


def test_without_a_mount_versions_go_too_when_their_time_has_come(
    mem: Opened, geniuz: Geniuz
) -> None:
    for number in range(retention.AT_ONCE + 2):
        mem.files.put(f"/{number}", "one")
        mem.files.put(f"/{number}", "two")
    other = Database.open(mem.folder.path)
    with other.txn() as txn:
        txn.run("UPDATE versions SET replaced_ns = id")  # some 50 years ago
    with geniuz.opened(None) as later:
        left = []
        for _ in range(3):
            later.files.put("/other", "text")
            left.append(other.view.row("SELECT count(*) FROM versions")[0])
    other.close()
    assert left == [2, 0, 0]


def test_a_long_life_without_a_mount_leaves_a_short_log(mem: Opened, geniuz: Geniuz) -> None:
    mem.files.put("/a", "x")
    for number in range(20):
        mem.files.put("/a", chr(ord("a") + number) * 2_000_000)
    (status,) = geniuz.status()
    assert status.wal_bytes < 25_000_000
