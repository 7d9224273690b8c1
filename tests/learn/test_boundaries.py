"""The estimate of tokens, and cuts that are inside no grapheme."""

import pytest
from apsw.unicode import grapheme_iter_with_offsets
from hypothesis import given
from hypothesis import strategies as st

from geniuzfs.learn.boundaries import (
    LIMIT,
    at_blank_lines,
    at_lines,
    at_sentences,
    cut,
    gather,
    spans,
    tokens,
)

WAYS = (at_blank_lines, at_lines, at_sentences)

# Texts and their tokens in multilingual-e5-small's vocabulary, marks at the ends left out.
COUNTED = [
    ("The pear tree was planted in March, and it has been watered every day since then.", 21),
    ("Die Straßenbahnhaltestelle liegt gegenüber dem Rathaus der Stadt.", 13),
    ("for index, value in enumerate(values): print(f'{index}: {value}')", 25),
    ("| name | value |\n|------|-------|\n| a | 17 |", 23),
]

PIECES = st.sampled_from(
    [
        "word ",
        "e\u0301\u0301",
        "👩‍👩‍👧",
        "🇩🇪",
        "\r\n",
        "\n\n",
        "क्षि",
        "中",
        "。",
        ". ",
        "한",
        "שָׁ",
        "A1",
        " \u0308",
    ]
)


@pytest.mark.parametrize(("text", "count"), COUNTED)
def test_the_estimate_is_near_and_not_below(text: str, count: int) -> None:
    assert count <= tokens(text) <= 2 * count


@given(st.lists(PIECES, max_size=30), st.integers(1, 60))
def test_pieces_fit_cover_the_span_and_are_inside_no_grapheme(parts: list[str], times: int) -> None:
    text = "".join(parts) * times
    found = cut(text, 0, len(text), WAYS)
    assert "".join(text[start:end] for start, end in found) == text
    edges = {start for start, _, _ in grapheme_iter_with_offsets(text)}
    assert {start for start, end in found if end > start} <= edges
    assert all(tokens(text[start:end]) <= LIMIT for start, end in found)


def test_a_grapheme_beyond_the_limit_stays_whole() -> None:
    text = "e" + "\u0301" * 10_000
    assert cut(text, 0, len(text), WAYS) == [(0, len(text))]


def test_groups_far_from_an_edit_are_as_they_were() -> None:
    lines = [f"line {i} says {i * i}\n" for i in range(2000)]

    def groups(lines: list[str]) -> list[str]:
        text = "".join(lines)
        parts = spans(0, at_lines(text, 0, len(text)), len(text))
        return [text[start:end] for start, end in gather(text, parts, 40, 100)]

    before, after = groups(lines), groups(["something new\n", *lines])
    assert len(set(after) - set(before)) <= 3
    assert before[-50:] == after[-50:]
