"""The ranking formula, on canvases small enough to work out by hand."""

import dataclasses
import math
import time
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import ArrayLike

from geniuzfs.dates import Mention, days_since_1970
from geniuzfs.recall.rank import (
    KERNEL,
    NO_DAY,
    REACH,
    Canvas,
    Floats,
    Matches,
    Meaning,
    Question,
    Ranked,
    alpha,
    idf,
    leaning,
    rank,
    windowed,
)

SATURATION, LENGTH = 0.8, 0.7
ASKED = Question(np.array([7], np.uint32))


def floats(values: ArrayLike) -> Floats:
    return np.asarray(values, np.float32)


def canvas(
    lengths: Sequence[float],
    *,
    dialogue: bool = False,
    questions: Sequence[int] = (),
    speakers: Sequence[int] | None = None,
    days: Sequence[int] | None = None,
) -> Canvas:
    """Passages of so many words, 0 standing for an empty place."""
    size = len(lengths)
    words = floats(lengths)
    return Canvas(
        filled=words > 0,
        words=words,
        grams=words * 5,
        dialogue=(words > 0) & dialogue,
        question=np.isin(np.arange(size), questions),
        speaker=np.array(speakers or [0] * size, np.uint32),
        days=np.array(days or [NO_DAY] * size, np.int32),
    )


def matches(*counts: Sequence[float], unfound: float = 0.0) -> Matches:
    """A row of counts for each term; all terms weigh 1."""
    return Matches(floats(counts), np.ones(len(counts), np.float32), unfound)


def meaning(cosines: Sequence[float], mean: float, known: Sequence[bool] | None = None) -> Meaning:
    """Vectors without neighbours; a cosine of 0 is none."""
    size = len(cosines)
    flags = floats(cosines) != 0 if known is None else np.array(known, np.bool_)
    return Meaning(floats(cosines), flags, np.ones(size, np.float32), mean)


def apart(*values: float) -> list[float]:
    """One a file: REACH empty places in between."""
    return [place for value in values for place in (value, *[0.0] * REACH)][:-REACH]


def scores(found: Ranked) -> list[float]:
    return [float(score) for score in found.score if math.isfinite(score)]


def test_a_word_that_the_best_passage_has_gives_its_whole_weight() -> None:
    found = rank(canvas([10]), matches([1]), None, None, ASKED)
    assert found.score[0] == pytest.approx(0.36)
    # BM25: 1 / (1 + k1) of the question, over what is enough to believe words.
    assert found.lexical[0] == pytest.approx(1 / (1 + SATURATION) / 0.28)


def test_a_match_counts_for_its_neighbours_by_the_kernel() -> None:
    # Three passages of ten words, of which the second matches.
    found = rank(canvas([10, 10, 10]), matches([0, 1, 0]), None, None, ASKED)
    around = [10 + 2 + 1.25, 3.5 + 10 + 2, 2 + 3.5 + 10]  # half the kernel: no conversation
    mean = sum(around) / 3
    explained = [
        count / (count + SATURATION * (1 - LENGTH + LENGTH * length / mean))
        for count, length in zip([0.2, 1, 0.35], around, strict=True)
    ]
    expected = [0.36 * one / max(explained) for one in explained]
    assert scores(found) == pytest.approx(expected, rel=1e-4)
    assert scores(found)[2] > scores(found)[0]


def test_nothing_reaches_over_the_empty_places() -> None:
    alone = rank(canvas(apart(10, 10)), matches(apart(1, 0)), None, None, ASKED)
    assert scores(alone) == [pytest.approx(0.36), 0]


def test_words_and_grams_are_added() -> None:
    found = rank(canvas([10]), matches([1]), matches([1]), None, ASKED)
    assert found.score[0] == pytest.approx(0.66)


def test_two_of_two_words_stand_before_one_said_often() -> None:
    found = rank(canvas(apart(10, 10)), matches(apart(1, 3), apart(1, 0)), None, None, ASKED)
    assert found.score[0] > found.score[-1]


def test_headings_count_less_than_the_text_and_more_than_nothing() -> None:
    held = matches(apart(1, 0, 0))
    context = floats([apart(0, 1, 0)])
    found = rank(
        canvas(apart(10, 10, 10)), dataclasses.replace(held, context=context), None, None, ASKED
    )
    first, second, third = scores(found)
    assert first > second > third == 0


def test_a_stray_word_does_not_outweigh_meaning() -> None:
    """A question in another language: one word of many is found, in the wrong passage."""
    found = rank(
        canvas(apart(10, 10)),
        matches(apart(1, 0), unfound=12),
        matches(apart(1, 0), unfound=12),
        meaning(apart(0.80, 0.83), 0.75),
        ASKED,
    )
    first, second = scores(found)
    assert second > first
    believed = rank(
        canvas(apart(10, 10)),
        matches(apart(1, 0)),
        matches(apart(1, 0)),
        meaning(apart(0.80, 0.83), 0.75),
        ASKED,
    )
    first, second = scores(believed)
    assert first > second


def test_grams_of_scripts_without_spaces_are_believed_sooner() -> None:
    """A question without words is Chinese or the like."""
    grams = matches([1], unfound=1.8)
    assert rank(canvas([10]), matches(), grams, None, ASKED).score[0] == pytest.approx(0.30)
    assert rank(canvas([10]), matches([0]), grams, None, ASKED).score[0] < 0.15


def test_the_nearest_vector_gets_the_whole_weight_and_far_ones_are_held() -> None:
    found = rank(
        canvas(apart(10, 10, 10)),
        matches(apart(1, 1, 1)),
        matches(apart(1, 1, 1)),
        meaning(apart(0.9, 0.8, 0.2), 0.8),
        ASKED,
    )
    assert scores(found) == pytest.approx([1.02, 0.66, 0.66 - 0.5 * 0.36], rel=1e-4)
    assert found.cosine[found.score > -np.inf].tolist() == pytest.approx([0.9, 0.8, 0.2])


def test_a_vector_alone_orders_by_cosine() -> None:
    found = rank(canvas(apart(9, 9, 9)), None, None, meaning(apart(0.7, 0.9, 0.8), 0.6), ASKED)
    assert np.argsort(-found.score, kind="stable")[:3].tolist() == [4, 8, 0]


def test_neighbours_vectors_count_by_the_kernel() -> None:
    share = leaning(floats([10, 10]), np.array([True, True]))
    vectors = floats([[1, 0], [0, 1]])
    norm = np.linalg.norm(windowed(vectors.T.copy(), share), axis=0).astype(np.float32)
    held = Meaning(floats([1, 0]), np.ones(2, np.bool_), norm, 0.0)
    found = rank(canvas([10, 10], dialogue=True), None, None, held, ASKED)
    assert found.cosine.tolist() == pytest.approx(
        [1 / math.hypot(1, 0.4), 0.7 / math.hypot(0.7, 1)], rel=1e-5
    )


def test_what_is_not_embedded_yet_gets_a_share_by_its_words() -> None:
    held = matches(apart(1, 0.2, 0))
    found = rank(
        canvas(apart(10, 10, 10)),
        held,
        held,
        meaning(apart(0, 0.9, 0.88), 0.7, known=[place > 0 for place in apart(0, 1, 1)]),
        ASKED,
    )
    first, second, third = scores(found)
    assert first > second > third


def test_without_a_model_the_rest_of_the_formula_stands() -> None:
    held = matches(apart(2, 1, 0))
    places = canvas(apart(10, 10, 10))
    without = rank(places, held, held, None, ASKED)
    unknown = rank(places, held, held, meaning(apart(0, 0, 0), 0.0, [False] * 9), ASKED)
    assert np.argsort(without.score).tolist() == np.argsort(unknown.score).tolist()
    assert without.cosine.tolist() == [0] * 9


DAY = days_since_1970(2023, 5, 8)


@pytest.mark.parametrize(
    ("mention", "after", "fit"),
    [
        (Mention(2023, 5, 8), 0, 1.0),
        (Mention(2023, 5, 8), 1, 1.0),
        (Mention(2023, 5, 8), 7, 0.8),
        (Mention(2023, 5, 8), 21, 0.5),
        (Mention(2023, 5, 8), -3, 0.5),
        (Mention(2023, 5, 8), -5, 0.3),
        (Mention(2023, 5, 8), 40, 0.0),
        (Mention(None, 5, 8), 366, 1.0),
        (Mention(None, 5, 8), 40, 0.0),
        (Mention(2023, 5, None), 20, 1.0),
        (Mention(2023, 5, None), 28, 0.4),
        (Mention(2023, 5, None), 40, 0.0),
        (Mention(2022, 5, None), 0, 0.0),
        (Mention(None, 5, None), 366, 1.0),
        (Mention(2023, None, None), 0, 0.3),
        (Mention(2022, None, None), 0, 0.0),
        (Mention(2023, 2, 29), 0, 0.0),
    ],
)
def test_a_passage_of_the_date_that_is_asked_for_gains(
    mention: Mention, after: int, fit: float
) -> None:
    assert DAY is not None
    question = Question(ASKED.words, (Mention(1999, 1, 1), mention))
    dated = canvas(apart(10, 10), days=[DAY + after, *[NO_DAY] * (REACH + 1)])
    assert scores(rank(dated, None, None, None, question)) == pytest.approx([0.30 * fit, 0])


def habits(**said: object) -> list[float]:
    return scores(rank(canvas([10, 10, 10], **said), None, None, None, ASKED))  # type: ignore[arg-type]


def test_questions_are_no_answers_and_what_follows_one_is() -> None:
    plain = habits(dialogue=True)
    asked = habits(dialogue=True, questions=[1])
    assert asked[0] == plain[0]
    assert asked[1] == pytest.approx(plain[1] - 0.088)
    assert asked[2] == pytest.approx(plain[2] + 0.064)


def test_who_is_asked_about_speaks_of_it_himself() -> None:
    plain = habits(dialogue=True)
    named = habits(dialogue=True, speakers=[7, 8, 0])
    assert named == pytest.approx([plain[0] + 0.04, plain[1] - 0.04, plain[2]])
    both = scores(
        rank(
            canvas([10, 10, 10], dialogue=True, speakers=[7, 8, 0]),
            None,
            None,
            None,
            Question(np.array([7, 8], np.uint32)),
        )
    )
    assert both == plain


def test_long_turns_say_more() -> None:
    short, long, longer = scores(
        rank(canvas(apart(2, 30, 90), dialogue=True), None, None, None, ASKED)
    )
    assert short < long == longer


TIME, NAME = 1, 2


def of_kinds(asked: int, told: Sequence[int], dialogue: bool = True) -> list[float]:
    kinds = np.array(told, np.uint32)
    places = dataclasses.replace(canvas([10] * len(told), dialogue=dialogue), kinds=kinds)
    return scores(rank(places, None, None, None, Question(ASKED.words, kinds=asked)))


def test_a_turn_that_could_give_the_kind_of_answer_that_is_asked_for_gains() -> None:
    plain = habits(dialogue=True)[0]
    told = [0, TIME, NAME, TIME | NAME]
    assert of_kinds(TIME, told) == pytest.approx([plain, plain + 0.1, plain, plain + 0.1])
    assert of_kinds(TIME | NAME, told) == pytest.approx([plain, *[plain + 0.1] * 3])
    assert of_kinds(0, told) == pytest.approx([plain] * 4)


def test_notes_have_no_habits() -> None:
    assert habits(questions=[1], speakers=[7, 8, 0]) == [0, 0, 0]
    assert of_kinds(TIME, [TIME, NAME], dialogue=False) == [0, 0]


def test_what_nothing_speaks_for_is_weak() -> None:
    found = rank(
        canvas(apart(10, 10)),
        matches(apart(1, 0), apart(1, 0)),
        None,
        meaning(apart(0.85, 0.76), 0.75),
        ASKED,
    )
    assert found.weak.tolist() == [False, *[False] * REACH, True]


def test_an_answer_in_another_language_is_not_weak_for_its_words() -> None:
    nothing = matches(unfound=10)
    found = rank(canvas(apart(10, 10)), nothing, nothing, meaning(apart(0.83, 0.76), 0.75), ASKED)
    assert found.weak.tolist() == [False, *[False] * REACH, True]


def test_without_a_model_words_tell_what_is_weak() -> None:
    found = rank(canvas(apart(10, 10)), matches(apart(1, 0), unfound=0.5), None, None, ASKED)
    assert found.weak.tolist() == [False, *[False] * REACH, True]


def test_equal_passages_have_equal_scores() -> None:
    count = 40
    found = rank(
        canvas(apart(*[12] * count), dialogue=True),
        matches(*[apart(*[1] * count)] * 7),
        matches(*[apart(*[2] * count)] * 30),
        meaning(apart(*[0.8] * count), 0.7),
        ASKED,
    )
    assert len(set(scores(found))) == 1


@pytest.mark.parametrize("lengths", [[], [0.0, 0.0]])
def test_an_empty_canvas_has_no_scores(lengths: list[float]) -> None:
    held = matches([0.0] * len(lengths))
    question = Question(ASKED.words, (Mention(2023, 5, 8),))
    found = rank(canvas(lengths), held, held, meaning(lengths, 0.0), question)
    assert scores(found) == []
    assert not found.weak.any()


def test_a_question_without_terms_scores_nothing() -> None:
    none = Matches(np.empty((0, 2), np.float32), np.empty(0, np.float32), 0.0)
    found = rank(canvas([10, 10]), none, none, None, Question(np.empty(0, np.uint32)))
    assert scores(found) == [0, 0]
    assert found.weak.all()


def test_rare_terms_weigh_more_and_even_those_that_all_have_weigh_something() -> None:
    weights = idf(np.array([0, 1, 5, 10]), 10)
    assert (np.diff(weights) < 0).all()
    assert weights[-1] > 0
    assert idf(np.array([3]), 2) == idf(np.array([2]), 2)  # counted before one was removed


def test_long_passages_need_their_neighbours_less() -> None:
    assert alpha(floats([0, 45, 90, 450])).tolist() == pytest.approx([1, 1, 0.5, 0.1])


def canvases(size: int) -> st.SearchStrategy[Canvas]:
    return st.builds(
        Canvas,
        filled=arrays.arrays(np.bool_, size),
        words=arrays.arrays(np.float32, size, elements=st.floats(0, 500, width=32)),
        grams=arrays.arrays(np.float32, size, elements=st.floats(0, 3000, width=32)),
        dialogue=arrays.arrays(np.bool_, size),
        question=arrays.arrays(np.bool_, size),
        speaker=arrays.arrays(np.uint32, size, elements=st.integers(0, 3)),
        days=arrays.arrays(np.int32, size, elements=st.sampled_from([NO_DAY, -9, 0, 19_000])),
        kinds=st.none() | arrays.arrays(np.uint32, size, elements=st.integers(0, 3)),
    )


def all_matches(size: int) -> st.SearchStrategy[Matches]:
    return st.integers(0, 4).flatmap(
        lambda terms: st.builds(
            Matches,
            counts=arrays.arrays(np.float32, (terms, size), elements=st.floats(0, 255, width=32)),
            idf=arrays.arrays(np.float32, terms, elements=st.floats(0, 16, width=32)),
            unfound=st.floats(0, 100),
        )
    )


def meanings(size: int) -> st.SearchStrategy[Meaning]:
    return st.builds(
        Meaning,
        cosine=arrays.arrays(np.float32, size, elements=st.floats(-1, 1, width=32)),
        known=arrays.arrays(np.bool_, size),
        norm=arrays.arrays(np.float32, size, elements=st.floats(0, 3.25, width=32)),
        mean=st.floats(-1, 1),
    )


QUESTIONS = st.builds(
    Question,
    words=arrays.arrays(np.uint32, st.integers(0, 3), elements=st.integers(0, 5)),
    dates=st.lists(
        st.sampled_from([Mention(2022, 1, 8), Mention(None, 1, None), Mention(2022, None, None)])
    ).map(tuple),
    kinds=st.integers(0, 3),
)


@given(st.data(), st.integers(0, 12))
def test_scores_are_finite_where_there_is_a_passage(data: st.DataObject, size: int) -> None:
    places = data.draw(canvases(size))
    found = rank(
        places,
        data.draw(st.none() | all_matches(size)),
        data.draw(st.none() | all_matches(size)),
        data.draw(st.none() | meanings(size)),
        data.draw(QUESTIONS),
    )
    assert np.isfinite(found.score[places.filled]).all()
    assert (found.score[~places.filled] == -np.inf).all()
    assert not found.weak[~places.filled].any()
    assert found.score.dtype == found.lexical.dtype == found.cosine.dtype == np.float32


@given(
    arrays.arrays(np.float32, (2, 9), elements=st.floats(0, 255, width=32)),
    arrays.arrays(np.float32, 9, elements=st.floats(0, 1, width=32)),
)
def test_windows_are_the_kernels_sums(values: Floats, share: Floats) -> None:
    expected = [
        [
            row[at] + share[at] * sum(w * row[at + d] for d, w in KERNEL.items() if 0 <= at + d < 9)
            for at in range(9)
        ]
        for row in values.astype(np.float64)
    ]
    np.testing.assert_allclose(windowed(values, share), expected, rtol=1e-4, atol=1e-3)


def test_sixty_terms_over_six_thousand_places_take_4_ms_at_most() -> None:
    random = np.random.default_rng(0)
    size = 6000
    places = canvas(list(random.integers(1, 60, size)), dialogue=True)

    def drawn(terms: int) -> Matches:
        counts = (random.random((terms, size)) < 0.1).astype(np.float32)
        return Matches(counts, floats(random.random(terms)), 1.0)

    words, grams = drawn(10), drawn(50)
    held = meaning(list(random.random(size)), 0.5)
    taken = []
    for _ in range(30):
        began = time.perf_counter()
        rank(places, words, grams, held, ASKED)
        taken.append(time.perf_counter() - began)
    assert min(taken) < 0.004


def test_neighbours_count_half_outside_conversations() -> None:
    words = floats([10, 90])
    turns, prose = np.array([True, True]), np.array([False, False])
    assert leaning(words, turns).tolist() == alpha(words).tolist()
    assert leaning(words, prose).tolist() == (alpha(words) / 2).tolist()
