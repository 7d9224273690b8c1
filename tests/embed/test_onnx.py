"""Models run in this process: the shipped one, and directories."""

import importlib.util
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from geniuzfs.embed import cards, e5, onnx
from geniuzfs.errors import ModelUnavailable
from tests.embed import graph
from tests.embed.fake import tiny_model

WORDS = ["bread", "oven", "flour", "tax", "law", "court", "query", "passage", ":"]

# The same said in two languages, and what each is about.
TRANSLATIONS = [
    ("The cat sleeps on the sofa.", "Die Katze schläft auf dem Sofa."),
    ("Water boils at one hundred degrees.", "Вода кипит при ста градусах."),
    ("The parliament passed the new law.", "议会通过了新法律。"),
    ("She plays the violin every evening.", "वह हर शाम वायलिन बजाती है।"),
    ("The train to the airport is late.", "El tren al aeropuerto llega tarde."),
]


@pytest.fixture(scope="module")
def shipped() -> onnx.Model:
    return onnx.load(None)


def test_the_shipped_graph_is_what_its_generator_builds() -> None:
    assert e5.GRAPH.read_bytes() == graph.build()


def test_the_graph_is_given_every_tensor_it_wants() -> None:
    given = e5.E5(e5.find()).tensors()
    wanted = {tensor.name: tuple(tensor.dims) for tensor in graph.given()}
    assert {name: tensor.shape for name, tensor in given.items()} == wanted


def test_a_translation_is_nearer_than_any_other_sentence(shipped: onnx.Model) -> None:
    english = np.array([shipped.passage(one) for one, _ in TRANSLATIONS])
    other = np.array([shipped.passage(two) for _, two in TRANSLATIONS])
    assert list((english @ other.T).argmax(axis=1)) == list(range(len(TRANSLATIONS)))


def test_a_question_is_nearest_to_its_answer(shipped: onnx.Model) -> None:
    passages = np.array([shipped.passage(one) for one, _ in TRANSLATIONS])
    question = shipped.query("When does milk or water begin to boil?")
    assert (passages @ question).argmax() == 1


def test_vectors_have_length_1_and_are_the_same_each_time(shipped: onnx.Model) -> None:
    for text in ("", " ", "word", "机器学习", "x" * 5000, "line\n" * 2000, "\0\ufffd"):
        vector = shipped.passage(text)
        assert vector.shape == (384,)
        assert vector.dtype == np.float32
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)
        assert np.array_equal(vector, shipped.passage(text))


def test_a_question_and_a_passage_have_prefixes_of_their_own(shipped: onnx.Model) -> None:
    assert not np.array_equal(shipped.query("bread"), shipped.passage("bread"))
    plain = onnx.Model(
        replace(cards.DEFAULT, query_prefix="", passage_prefix=""),
        shipped._session,
        shipped._feed,
    )
    assert np.array_equal(shipped.query("bread"), plain.query("query: bread"))
    assert np.array_equal(shipped.passage("bread"), plain.passage("passage: bread"))


def test_a_text_is_cut_at_the_limit(shipped: onnx.Model) -> None:
    whole, longer = "bread " * 600, "bread " * 600 + "law " * 300
    assert np.array_equal(shipped.passage(whole), shipped.passage(longer))
    assert not np.array_equal(shipped.passage("bread " * 300), shipped.passage(whole))


def test_the_weights_stay_within_8_bits() -> None:
    tensors = e5.E5(e5.find()).tensors()
    for name, tensor in tensors.items():
        if name.endswith(".weights"):
            assert tensor.dtype == np.int8
            assert np.abs(tensor.astype(int)).max() in (63, 127)


def test_a_package_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(e5, "PACKAGE", "no_such_package_anywhere")
    with pytest.raises(
        ModelUnavailable, match="_anywhere, which holds the model, is not installed"
    ):
        onnx.load(None)


def test_the_package_is_found_and_not_imported() -> None:
    assert e5.find().is_file()
    assert importlib.util.find_spec(e5.PACKAGE) is not None
    assert e5.PACKAGE not in sys.modules


def test_damaged_weights_are_said(tmp_path: Path) -> None:
    damaged = tmp_path / "e5-small-q4.bin"
    shutil.copyfile(e5.find(), damaged)
    with open(damaged, "r+b") as file:
        file.seek(50_000_000)
        file.write(b"\xff")
    with pytest.raises(ModelUnavailable, match="damaged"):
        e5.E5(damaged)
    with pytest.raises(ModelUnavailable, match="can't be read"):
        e5.E5(tmp_path / "missing.bin")


def test_a_directory_gives_vectors_by_shared_words(tmp_path: Path) -> None:
    model = onnx.load(tiny_model(tmp_path, words=WORDS))
    question = model.query("bread oven")
    near, far = model.passage("flour oven bread"), model.passage("law tax court")
    assert question.shape == (64,)
    assert question @ near > question @ far + 0.2


def test_a_directory_has_its_prefixes_and_its_limit(tmp_path: Path) -> None:
    made = tiny_model(
        tmp_path, words=WORDS, query_prefix="query: ", passage_prefix="passage: ", max_tokens=8
    )
    plain = onnx.load(tiny_model(tmp_path / "plain", words=WORDS, max_tokens=8))
    model = onnx.load(made)
    assert np.array_equal(model.query("bread"), plain.query("query: bread"))
    assert np.array_equal(model.passage("bread"), plain.passage("passage: bread"))
    assert np.array_equal(plain.query("tax " * 8 + "law"), plain.query("tax " * 8))
    assert not np.array_equal(plain.query("tax " * 7 + "law"), plain.query("tax " * 8))


def test_a_graph_may_want_token_types(tmp_path: Path) -> None:
    with_types = onnx.load(tiny_model(tmp_path / "a", words=WORDS, token_types=True))
    without = onnx.load(tiny_model(tmp_path / "b", words=WORDS))
    assert np.array_equal(with_types.query("bread"), without.query("bread"))


def test_cls_takes_the_first_piece(tmp_path: Path) -> None:
    first = onnx.load(tiny_model(tmp_path / "a", words=WORDS, pooling="cls"))
    mean = onnx.load(tiny_model(tmp_path / "b", words=WORDS))
    assert np.array_equal(first.query("bread tax law"), mean.query("bread"))


def test_a_graph_that_fails_gives_no_vector(tmp_path: Path) -> None:
    model = onnx.load(tiny_model(tmp_path, words=WORDS, broken=True))
    with pytest.raises(ModelUnavailable, match="tiny failed"):
        model.query("bread")


def test_a_card_with_another_dimension_gives_no_vector(tmp_path: Path) -> None:
    made = tiny_model(tmp_path, words=WORDS)
    card = made / cards.FILE
    card.write_text(card.read_text().replace('"dimension": 64', '"dimension": 65'))
    with pytest.raises(ModelUnavailable, match="no vector of 65 numbers"):
        onnx.load(made).query("bread")


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "model.json"])
def test_a_directory_with_a_damaged_file_is_said(tmp_path: Path, file: str) -> None:
    made = tiny_model(tmp_path)
    (made / file).write_bytes(b"damaged")
    with pytest.raises(ModelUnavailable) as raised:
        onnx.load(made)
    assert "\n" not in str(raised.value)


def test_weights_that_match_the_card_and_are_no_graph_are_said(tmp_path: Path) -> None:
    made = tiny_model(tmp_path)
    (made / "model.onnx").write_bytes(b"damaged")
    sha256 = cards.sha256(made / "model.onnx")
    cards.write(made, replace(cards.read(made), sha256=sha256))
    with pytest.raises(ModelUnavailable, match=r"model\.onnx can't be run"):
        onnx.load(made)
