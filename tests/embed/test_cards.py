"""Model directories: what they must hold, and which one is chosen."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from geniuzfs.embed import cards, models
from geniuzfs.errors import ModelUnavailable, UsageError
from geniuzfs.model import ModelId
from tests.embed.fake import tiny_model

MINILM = {
    "name": "paraphrase-multilingual-MiniLM-L12-v2",
    "pooling": "mean",
    "max_tokens": 512,
    "query_prefix": "",
    "passage_prefix": "",
    "dimension": 384,
    "pad_id": 1,
    "sha256": "ab" * 32,
}


def test_a_card_describes_the_model_of_geniuz(tmp_path: Path) -> None:
    (tmp_path / cards.FILE).write_text(json.dumps(MINILM))
    card = cards.read(tmp_path)
    assert asdict(card) == MINILM
    assert card.id.startswith("paraphrase-multilingual-MiniLM-L12-v2@" + "ab" * 6)
    assert cards.is_of_geniuz(card.id)
    for other in (replace(card, max_tokens=128), replace(card, pooling="cls"), cards.DEFAULT):
        assert not cards.is_of_geniuz(other.id)


def test_a_card_that_is_written_is_read(tmp_path: Path) -> None:
    cards.write(tmp_path, cards.DEFAULT)
    assert cards.read(tmp_path) == cards.DEFAULT


@pytest.mark.parametrize(
    "changed",
    [
        {"pooling": "cls"},
        {"max_tokens": 256},
        {"query_prefix": "q: "},
        {"passage_prefix": "p: "},
        {"sha256": "cd" * 32},
        {"name": "other"},
    ],
)
def test_whatever_makes_other_vectors_makes_another_id(changed: dict[str, Any]) -> None:
    assert replace(cards.DEFAULT, **changed).id != cards.DEFAULT.id


@pytest.mark.parametrize(
    "wrong",
    [
        {"pooling": "max"},
        {"max_tokens": "128"},
        {"max_tokens": 2},
        {"dimension": 0},
        {"pad_id": True},
        {"sha256": "AB" * 32},
        {"name": "two words"},
        {"query_prefix": None},
    ],
)
def test_a_card_with_a_wrong_value_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    (tmp_path / cards.FILE).write_text(json.dumps({**MINILM, **wrong}))
    with pytest.raises(UsageError, match='must contain "name", "pooling"'):
        cards.read(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", "\0", "{'name': 1}"])
def test_a_card_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / cards.FILE).write_text(text)
    with pytest.raises(UsageError, match=r"model\.json"):
        cards.read(tmp_path)


def test_without_a_card_one_line_says_what_it_must_contain(tmp_path: Path) -> None:
    made = tiny_model(tmp_path / "tiny")
    (made / cards.FILE).unlink()
    with pytest.raises(UsageError) as raised:
        models.use(tmp_path, made)
    assert "\n" not in str(raised.value)
    for word in ("name", "pooling", "max_tokens", "query_prefix", "dimension", "pad_id", "sha256"):
        assert word in str(raised.value)


def test_nothing_chosen_is_the_shipped_model(tmp_path: Path) -> None:
    assert models.chosen(tmp_path) == cards.DEFAULT.id
    assert models.directory(tmp_path, cards.DEFAULT.id) is None
    assert [one.chosen for one in models.listed(tmp_path)] == [True]


def test_an_earlier_model_is_still_found_after_another_is_chosen(tmp_path: Path) -> None:
    first, second = tiny_model(tmp_path / "a", name="a"), tiny_model(tmp_path / "b", name="b")
    old, new = models.use(tmp_path, first), models.use(tmp_path, second)
    assert models.chosen(tmp_path) == new
    assert models.directory(tmp_path, old) == first
    assert models.directory(tmp_path, new) == second
    assert models.use(tmp_path, None) == cards.DEFAULT.id == models.chosen(tmp_path)
    assert [(one.id, one.chosen) for one in models.listed(tmp_path)] == [
        (cards.DEFAULT.id, True),
        (old, False),
        (new, False),
    ]
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == ["chosen.json"]


def test_a_model_that_nobody_chose_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="choose it anew"):
        models.directory(tmp_path, ModelId("other@123"))


def test_a_damaged_choice_is_said_and_mended_by_choosing(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for text in ("{", "[]", '{"chosen": 1, "directories": {}}', '{"chosen": "a"}'):
        (tmp_path / "models" / "chosen.json").write_text(text)
        with pytest.raises(ModelUnavailable, match="choose a model anew"):
            models.chosen(tmp_path)
    models.use(tmp_path, None)
    assert models.chosen(tmp_path) == cards.DEFAULT.id


def test_a_choice_that_can_not_be_saved_is_said(tmp_path: Path) -> None:
    (tmp_path / "models").touch()
    with pytest.raises((UsageError, ModelUnavailable), match=r"can't be (saved|read)"):
        models.use(tmp_path, None)


@pytest.mark.parametrize("file", ["tokenizer.json", "model.onnx"])
def test_a_directory_that_lacks_a_file_is_refused(tmp_path: Path, file: str) -> None:
    made = tiny_model(tmp_path / "tiny")
    (made / file).unlink()
    with pytest.raises(UsageError):
        models.use(tmp_path, made)
    assert models.chosen(tmp_path) == cards.DEFAULT.id


def test_weights_that_the_card_does_not_name_are_refused(tmp_path: Path) -> None:
    made = tiny_model(tmp_path / "tiny")
    with open(made / "model.onnx", "ab") as file:
        file.write(b"\0")
    with pytest.raises(UsageError, match="sha256 differs"):
        models.use(tmp_path, made)


def test_two_files_of_weights_are_refused(tmp_path: Path) -> None:
    made = tiny_model(tmp_path / "tiny")
    (made / "model_int8.onnx").write_bytes(b"")
    with pytest.raises(UsageError, match=r"exactly one model\*.onnx"):
        models.use(tmp_path, made)


def test_a_listed_directory_that_is_gone_says_so(tmp_path: Path) -> None:
    made = tiny_model(tmp_path / "tiny")
    models.use(tmp_path, made)
    (made / "model.json").unlink()
    assert "model.json is missing" in str(models.listed(tmp_path)[1].missing)
