"""Where a memory is kept and a question asked when nobody names a folder."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from geniuzfs.api import Geniuz
from geniuzfs.api.arranging import HERE
from geniuzfs.config import Config
from geniuzfs.errors import NotFound
from geniuzfs.ports import SystemClock
from geniuzfs.recall.hits import Answer
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config.from_environment({"GENIUZ_HOME": str(tmp_path / "home")})


@pytest.fixture
def geniuz(config: Config) -> Iterator[Geniuz]:
    """With "My memory" and "Work", and a memory about tea in each."""
    made = Geniuz(config, SystemClock(), FakeEmbedder())
    made.begin()
    made.arranging.new("Work")
    for name in ("My memory", "Work"):
        made.keep(name, f"Tea in {name}.")
    yield made
    made.close()


def texts(answer: Answer) -> set[str]:
    return {hit.text for hit in answer.hits}


BOTH = {"Tea in My memory.", "Tea in Work."}


def test_where_nobody_chose_the_first_folder_keeps_and_all_are_asked(
    geniuz: Geniuz, tmp_path: Path
) -> None:
    assert geniuz.keep(None, "x", here=tmp_path).folder.name == "My memory"
    geniuz.arranging.pin(geniuz.folder("Work"), pinned=True)
    assert geniuz.keep(None, "y", here=tmp_path).folder.name == "My memory"
    assert texts(geniuz.recall(None, geniuz.parse("tea"), here=tmp_path)) == BOTH


def test_what_was_chosen_keeps_and_is_asked_unless_all_are_to_be(
    geniuz: Geniuz, tmp_path: Path
) -> None:
    (tmp_path / HERE).write_text("work")
    assert geniuz.keep(None, "x", here=tmp_path).folder.name == "Work"
    assert geniuz.keep(None, "x").folder.name == "My memory"
    query = geniuz.parse("tea")
    assert texts(geniuz.recall(None, query, here=tmp_path)) == {"Tea in Work."}
    assert texts(geniuz.recall("my memory", query, here=tmp_path)) == {"Tea in My memory."}
    assert texts(geniuz.recall(None, query, here=tmp_path, everywhere=True)) == BOTH
    (tmp_path / HERE).unlink()
    geniuz.arranging.use(geniuz.folder("Work"))
    assert texts(geniuz.recall(None, query)) == {"Tea in Work."}
    (tmp_path / HERE).write_text("nowhere")
    with pytest.raises(NotFound, match=HERE):
        geniuz.recall(None, query, here=tmp_path)
    with pytest.raises(NotFound, match=HERE):
        geniuz.keep(None, "x", here=tmp_path)


def test_an_address_opens_whichever_folder_was_chosen(geniuz: Geniuz) -> None:
    held = geniuz.keep("my memory", "at home")
    geniuz.arranging.use(geniuz.folder("Work"))
    assert texts(geniuz.recall(None, geniuz.parse(held.address))) == {"at home"}
    assert geniuz.open_memory(None, held.address).memory == held.memory


def test_an_id_is_looked_for_in_the_chosen_folder_and_then_in_the_others(geniuz: Geniuz) -> None:
    held = geniuz.keep("my memory", "at home")
    geniuz.arranging.use(geniuz.folder("Work"))
    for id_ in (held.memory.id, held.memory.id[:8].lower()):
        assert texts(geniuz.recall(None, geniuz.parse(id_))) == {"at home"}
        assert geniuz.open_memory(None, id_).memory == held.memory
        with pytest.raises(NotFound):
            geniuz.open_memory("work", id_)
    # What no folder has is a word like any, and asked of the chosen folder alone.
    said = geniuz.keep("work", "the commit deadbeef").memory.content
    geniuz.keep("my memory", "deadbeef as well")
    assert texts(geniuz.recall(None, geniuz.parse("deadbeef", [("mode", "words")]))) == {said}
    assert geniuz.recall(None, geniuz.parse("deadbeef")).searched.folders == ("Work",)


def test_a_database_that_lies_nowhere_in_particular_keeps_and_is_asked(
    geniuz: Geniuz, config: Config, tmp_path: Path
) -> None:
    file = tmp_path / "other.db"
    Database.open(file, create=True).close()
    chosen = Geniuz(dataclasses.replace(config, database=file), SystemClock(), FakeEmbedder())
    held = chosen.keep(None, "Tea elsewhere.")
    assert held.folder.path == file
    for question in ("tea", held.address):
        assert texts(chosen.recall(None, chosen.parse(question))) == {"Tea elsewhere."}
    chosen.close()
