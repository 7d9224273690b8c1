"""A question that is the name of a kept memory opens it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.errors import NotFound
from geniuzfs.model import Scope
from geniuzfs.ports import SystemClock
from geniuzfs.recall import render
from geniuzfs.recall.query import Mode
from tests.embed.fake import FakeEmbedder


def made_at(home: Path) -> Geniuz:
    config = Config.from_environment({"GENIUZ_HOME": str(home)})
    return Geniuz(config, SystemClock(), FakeEmbedder())


@pytest.fixture
def geniuz(tmp_path: Path) -> Iterator[Geniuz]:
    made = made_at(tmp_path / "home")
    made.begin()
    yield made
    made.close()


def asked(geniuz: Geniuz, question: str, name: str | None = None) -> list[str]:
    return [hit.text for hit in geniuz.recall(name, geniuz.parse(question)).hits]


@pytest.mark.parametrize("mode", list(Mode))
def test_before_there_is_any_folder_nothing_is_found(tmp_path: Path, mode: Mode) -> None:
    geniuz = made_at(tmp_path / "nowhere")
    answer = geniuz.recall(None, geniuz.parse(f"tea mode:{mode}"))
    assert render.text(answer).startswith("Nothing found.\nsearched: 0 passages, 0 memories")
    geniuz.close()


def test_an_id_or_address_alone_opens_the_memory_in_full(geniuz: Geniuz) -> None:
    text = "\n\n".join(f"Paragraph {n}: " + "all of it. " * 200 for n in range(5)).strip()
    held = geniuz.keep(None, text)
    for question in (held.address, held.memory.id, held.memory.id[:8].lower(), f" {held.address} "):
        assert asked(geniuz, question) == [text]
    answer = geniuz.answer(Scope(None), held.address).decode()
    assert "more characters" not in answer
    assert answer.endswith("searched: 0 passages, 1 memory · all time · by address\n")
    found = json.loads(geniuz.answer(Scope(None), f"{held.memory.id} format:json"))
    assert [(hit["address"], hit["text"]) for hit in found["hits"]] == [(held.address, text)]


def test_a_thread_is_opened_by_the_name_of_any_of_its_memories(geniuz: Geniuz) -> None:
    held = [geniuz.keep(None, "memory 0")]
    for number in range(1, 15):
        held.append(geniuz.keep(None, f"memory {number}", parent=held[-1].memory.id))
    texts = [f"memory {number}" for number in range(15)]
    for each in (held[0], held[7], held[14]):
        assert asked(geniuz, f"mode:thread {each.address}") == texts
    assert asked(geniuz, f"mode:thread limit:3 {held[7].address}") == texts[6:9]
    answer = geniuz.recall(None, geniuz.parse(f"mode:thread {held[0].address}"))
    assert "the thread of an address" in render.text(answer)


def test_an_id_that_is_no_memory_is_a_word_and_an_address_is_not(geniuz: Geniuz) -> None:
    geniuz.keep(None, "The commit deadbeef broke it.")
    assert asked(geniuz, "deadbeef mode:words") == ["The commit deadbeef broke it."]
    with pytest.raises(NotFound):
        asked(geniuz, "DEADBEEF:DEADBEEF")


def test_a_name_among_other_words_is_a_question(geniuz: Geniuz) -> None:
    held = geniuz.keep(None, "Tea at four.")
    geniuz.keep(None, f"See {held.memory.id[:8]} for tea.")
    assert len(asked(geniuz, f"{held.memory.id[:8]} tea mode:words")) == 2
    assert len(asked(geniuz, f'"{held.memory.id[:8]}" mode:words')) == 1


def test_a_memory_is_opened_in_the_folder_that_was_asked(geniuz: Geniuz) -> None:
    (geniuz.config.home / "work").mkdir()
    (geniuz.config.home / "work" / "memory.db").touch()
    held = geniuz.keep("work", "at work")
    assert asked(geniuz, held.address) == asked(geniuz, held.address, "work") == ["at work"]
    with pytest.raises(NotFound):
        asked(geniuz, held.address, "My memory")
