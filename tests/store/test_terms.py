"""Text → terms: what a question shares with a passage, in scripts of all kinds."""

import threading
import time
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geniuzfs.store.terms import Asked, Terms, asked, inner, terms, word_key


def words_shared(question: Asked, passage: Terms) -> int:
    return len(np.intersect1d(question.words, passage.words))


def grams_shared(question: Asked, passage: Terms) -> float:
    """Share of the question's n-grams."""
    return len(np.intersect1d(question.grams, passage.grams)) / len(question.grams)


def test_a_word_is_found_in_another_form() -> None:
    assert words_shared(asked("RUNNING foxes"), terms("A fox runs.")) == 2


def test_diacritics_count_in_grams_and_not_in_words() -> None:
    passage = terms("Ein Müller in Zürich")
    assert words_shared(asked("muller zurich"), passage) == 2
    assert grams_shared(asked("Müller Zürich"), passage) == 1
    assert grams_shared(asked("muller"), passage) < 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("cafe\u0301", "café"),
        ("ＡＢＣ", "abc"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("ﬁne", "fine"),
        ("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
    ],
)
def test_spellings_that_mean_the_same_have_the_same_terms(one: str, other: str) -> None:
    left, right = terms(one), terms(other)
    assert left.words.tolist() == right.words.tolist()
    assert left.grams.tolist() == right.grams.tolist()


def test_hindi_words_are_not_cut_at_their_vowel_signs() -> None:
    assert len(terms("नमस्ते दुनिया").words) == 2


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("模型", "这个模型很大"),
        ("猫", "我家的猫在睡觉"),
        ("물", "물은 차갑다"),
        ("カメラ", "新しいカメラを買った"),
        ("ครับ", "สวัสดีครับ"),
        ("ຂອບໃຈ", "ຂອບໃຈຫຼາຍ"),
        ("ကျေးဇူး", "ကျေးဇူးတင်ပါတယ်"),
        ("အ", "အ"),
        ("GPT", "用GPT写的"),
    ],
)
def test_a_part_of_a_sentence_without_spaces_is_found(question: str, passage: str) -> None:
    assert grams_shared(asked(question), terms(passage)) == 1


def test_scripts_without_spaces_give_no_words_but_latin_between_them_does() -> None:
    assert terms("这个模型很大").words.size == 0
    assert terms("用GPT写的").words.tolist() == [word_key("gpt")]


def test_single_characters_are_asked_for_only_where_they_stand_alone() -> None:
    assert asked("模型").grams.size == 1
    assert terms("模型").grams.size == 3


def test_length_counts_words_and_halves_characters_where_there_are_no_spaces() -> None:
    assert terms("one two, three!").length == 3
    assert terms("这个模型很大").length == 3
    assert terms("สวัสดีครับ").length == 2.5
    assert terms("한국어 물은").length == 2
    assert terms("").length == 0


def test_gram_length_counts_each_gram_and_no_single_character() -> None:
    assert terms("cat cat").gram_length == 6  # _ca cat at_
    assert terms("模型很").gram_length == 2


def test_counts_are_of_their_keys_and_end_at_255() -> None:
    found = terms("fox " * 300 + "dog")
    assert sorted(found.word_counts.tolist()) == [1, 255]
    assert found.length == 301
    assert found.words[found.word_counts.argmax()] == word_key("fox")


def test_stop_words_are_left_out_and_told() -> None:
    question = asked("What is the name of the fox?")
    assert question.words.tolist() == sorted([word_key("name"), word_key("fox")])
    assert word_key("what") in question.stops
    assert not np.intersect1d(question.stops, question.words).size


def test_a_question_of_stop_words_alone_asks_for_them() -> None:
    question = asked("what is it?")
    assert len(question.words) == 3
    assert question.grams.size > 0
    assert question.stops.size == 0


def test_a_word_and_a_gram_of_the_same_letters_have_different_keys() -> None:
    assert not np.intersect1d(terms("cat").words, terms("cat").grams).size


def test_keys_are_the_same_in_every_release() -> None:
    """They are stored: should this fail, the schema needs a migration that learns all anew."""
    found = terms("Katze 猫")
    assert found.words.tolist() == [2146773721]
    assert found.grams.tolist() == [
        152113313,
        478326945,
        2832396684,
        3239640676,
        3363749764,
        3384165794,
    ]


@given(st.text(max_size=200))
def test_any_text_gives_sorted_unique_keys_with_counts(text: str) -> None:
    found = terms(text)
    for keys, counts in ((found.words, found.word_counts), (found.grams, found.gram_counts)):
        assert keys.dtype == np.uint32
        assert counts.dtype == np.uint8
        assert len(keys) == len(counts)
        assert (np.diff(keys.astype(np.int64)) > 0).all()
        assert (counts > 0).all()
    assert 0 <= found.length <= found.gram_length + found.length


@given(st.text(max_size=100))
def test_a_text_has_all_terms_that_it_asks_for(text: str) -> None:
    question, passage = asked(text), terms(text)
    assert np.isin(question.words, passage.words).all()
    assert np.isin(question.grams, passage.grams).all()


@pytest.mark.parametrize(
    "text",
    ["", " ", "\x00", "a\x00b", "\ud800", '"*AND NEAR(', "don't", "GB/s", "🦊", "中" * 1333],
)
def test_any_text_can_be_asked(text: str) -> None:
    question = asked(text)
    assert np.isin(question.grams, terms(text).grams).all()


def test_threads_do_not_disturb_each_other() -> None:
    texts = [f"passage {number} says fox{number}" for number in range(200)]
    expected = [terms(text).words.tolist() for text in texts]
    found: list[list[list[int]]] = []

    def work() -> None:
        found.append([terms(text).words.tolist() for text in texts])

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [expected] * 4


def test_a_paragraph_takes_a_quarter_of_a_millisecond_at_most() -> None:
    text = " ".join(f"word{number} and" for number in range(30))
    terms(text)
    taken = []
    for _ in range(50):
        began = time.perf_counter()
        terms(text)
        taken.append(time.perf_counter() - began)
    assert min(taken) < 0.000_25


@settings(max_examples=300, deadline=None)
@given(st.text(min_size=1, max_size=40), st.data())
def test_a_text_has_every_inner_gram_of_what_stands_in_it(text: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(first + 1, len(text)))
    held = set(terms(text).grams.tolist())
    part = text[first:end]
    # Unicode joins what stands apart: a combining mark at the border makes another character.
    if normalize("NFKC", part.casefold()) in normalize("NFKC", text.casefold()):
        assert set(inner(part).tolist()) <= held
