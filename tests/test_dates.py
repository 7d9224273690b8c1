"""Dates that are said in a text."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geniuzfs import dates
from geniuzfs.dates import Mention, day_of, days_since_1970, mentioned

EIGHTH = Mention(2023, 5, 8)


@pytest.mark.parametrize(
    "text",
    [
        "2023-05-08",
        "2023-5-8",
        "2023-05-08T13:56:00Z",
        "20230508.md",
        "1:56 pm on 8 May, 2023",
        "8 May 2023",
        "8th of May 2023",
        "the 8th of may, 2023",
        "May 8, 2023",
        "May 8th, 2023",
        "# Monday, May 8, 2023",
        "Am 8. Mai 2023",
        "8.5.2023",
        "08.05.2023",
        "8. 5. 2023",
        "le 8 mai 2023",
        "el 8 de mayo de 2023",
        "8 мая 2023 года",
        "2023年5月8日",
        "2023년 5월 8일",
    ],
)
def test_a_full_date_is_read(text: str) -> None:
    assert mentioned(text) == [EIGHTH]
    assert day_of(text) == (date(2023, 5, 8) - date(1970, 1, 1)).days


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What happened in May 2023?", [Mention(2023, 5, None)]),
        ("in 2023-05", [Mention(2023, 5, None)]),
        ("June of 2022", [Mention(2022, 6, None)]),
        ("2023年5月", [Mention(2023, 5, None)]),
        ("What did she do in July?", [Mention(None, 7, None)]),
        ("Was geschah im Oktober?", [Mention(None, 10, None)]),
        ("on July 4", [Mention(None, 7, 4)]),
        ("on the 4th of July", [Mention(None, 7, 4)]),
        ("on 29 February", [Mention(None, 2, 29)]),
        ("5月8日", [Mention(None, 5, 8)]),
        ("before 2022", [Mention(2022, None, None)]),
        (
            "from 8 May to June, not in 2022",
            [Mention(None, 5, 8), Mention(None, 6, None), Mention(2022, None, None)],
        ),
    ],
)
def test_a_date_is_read_as_far_as_it_is_said(text: str, expected: list[Mention]) -> None:
    assert mentioned(text) == expected
    assert day_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "may I march on?",
        "May I?",
        "the march of time",
        "Mars is a planet",
        "mayo and mars",
        "5/8/2023 is two days",
        "12345678901",
        "version 20231508",
        "1066",
    ],
)
def test_what_is_no_date_is_not_read(text: str) -> None:
    assert [mention for mention in mentioned(text) if mention.month is not None] == []
    assert day_of(text) is None


@pytest.mark.parametrize("text", ["in May", "since March", "8 may", "march 3rd"])
def test_may_and_march_are_months_with_a_capital_or_a_number(text: str) -> None:
    assert len(mentioned(text)) == 1


def test_a_day_that_the_calendar_lacks_is_no_day() -> None:
    assert day_of("31 February 2023") is None
    assert day_of("2023-02-30") is None
    assert day_of("0000-00-00") is None
    assert day_of("29 February 2023") is None
    assert day_of("29 February 2024") is not None


def test_the_first_full_date_of_a_line_counts() -> None:
    assert day_of("Standup of 2026-10-06 (moved from 2026-10-05)") == days_since_1970(2026, 10, 6)
    assert day_of("May: planned for 2026-10-06") == days_since_1970(2026, 10, 6)


@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    for year, month, day in mentioned(text):
        assert (year, month, day) != (None, None, None)
        assert day is None or month is not None
        assert days_since_1970(year or 2000, month or 1, day or 1) is not None


@given(st.dates(date(1800, 1, 1), date(2199, 12, 31)), st.sampled_from(["%Y-%m-%d", "%d.%m.%Y"]))
def test_every_day_is_read_back(day: date, form: str) -> None:
    assert day_of(day.strftime(form)) == (day - date(1970, 1, 1)).days


@given(st.text(st.characters(max_codepoint=127), max_size=30), st.sampled_from(["", "MAY", "jan"]))
def test_what_is_passed_over_holds_no_date(text: str, name: str) -> None:
    text = f"{text[:9]} {name} {text[9:]}"
    if not dates._may_name_one(text):
        assert not any(form.search(text) for form in dates._forms())
