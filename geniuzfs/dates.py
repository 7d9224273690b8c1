"""Dates that are said in a text.

Hides: how people write dates: ISO, with a month's name in English, German, French, Spanish or
Russian, with dots, in Chinese, Japanese or Korean.
Promises: pure; what is no day of the calendar is not a date.
Refuses: 5/8/2023, which is May to some and August to others, and what depends on today.
"""

import re
from collections.abc import Iterator
from datetime import date
from functools import cache
from typing import NamedTuple

_EPOCH = date(1970, 1, 1).toordinal()


class Mention(NamedTuple):
    """A date as far as it was said: a day has a month, but perhaps no year."""

    year: int | None
    month: int | None
    day: int | None


# One line a month. Before the bar: names that say nothing else, wherever they stand. After it:
# what counts only beside a number, being short, or a word or name in some other language.
_MONTHS = """
january januar enero января январь janvier | jan
february februar febrero февраля февраль février | feb
märz марта | march marzo mars mar март
april апреля апрель | apr abril avril
may | mai mayo мая май
june juni июня июнь juin | jun junio
july juli июля июль juillet | jul julio
august августа août agosto | aug август
september сентября сентябрь septiembre septembre | sep sept
october oktober октября октябрь octubre octobre | oct okt
november ноября ноябрь noviembre novembre | nov
december dezember декабря декабрь diciembre décembre | dec dez
"""


def _names() -> tuple[dict[str, int], frozenset[str]]:
    """Name → month; and the names that need no number."""
    month_of: dict[str, int] = {}
    certain: set[str] = set()
    for month, line in enumerate(_MONTHS.strip().splitlines(), 1):
        alone, beside = (part.split() for part in line.split("|"))
        certain.update(alone)
        month_of.update(dict.fromkeys(alone + beside, month))
    return month_of, frozenset(certain)


_MONTH_OF, _CERTAIN = _names()
_NAME = "(?P<name>" + "|".join(sorted(_MONTH_OF, key=len, reverse=True)) + r")\b\.?"
_YEAR = r"(?P<year>(?:1[89]|20|21)\d\d)(?!\d)"
_DAY = r"(?<!\d)(?P<day>\d{1,2})"
_MONTH = r"(?P<month>\d{1,2})"
_OF = r"\s+(?:(?:of|de|del|the)\s+)?"

# From the most to the least that is said; what one has taken, the next don't see.
_FORMS = (
    rf"(?<!\d){_YEAR}-{_MONTH}-(?P<day>\d{{1,2}})(?!\d)",
    r"(?<!\d)(?P<year>(?:19|20)\d\d)(?P<month>\d\d)(?P<day>\d\d)(?!\d)",
    rf"(?<!\d){_YEAR}\s?[年년]\s?{_MONTH}\s?[月월]\s?(?P<day>\d{{1,2}})\s?[日号號일]",
    rf"(?<![\d.]){_DAY}\.\s?{_MONTH}\.\s?{_YEAR}",
    rf"{_DAY}(?:st|nd|rd|th|er|\.)?{_OF}{_NAME}(?:,|{_OF})?\s*{_YEAR}",
    rf"\b{_NAME}\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,\s*|\s+){_YEAR}",
    rf"(?<!\d){_YEAR}\s?[年년]\s?{_MONTH}\s?[月월]",
    rf"(?<!\d){_YEAR}-{_MONTH}(?![-\d])",
    rf"\b{_NAME}(?:,|{_OF}|\s+in)?\s*{_YEAR}",
    rf"(?<!\d){_MONTH}\s?[月월]\s?(?P<day>\d{{1,2}})\s?[日号號일]",
    rf"{_DAY}(?:st|nd|rd|th|er|\.)?{_OF}{_NAME}",
    rf"\b{_NAME}\s+(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])",
    rf"(?<!\d){_YEAR}\s?[年년]?",
    rf"\b{_NAME}",
)


def mentioned(text: str) -> list[Mention]:
    """The dates that a text names, as far as it names them, in their order."""
    if not _may_name_one(text):
        return []
    found: list[tuple[int, Mention]] = []
    rest = text
    for form in _forms():
        for match in form.finditer(rest):
            mention = _read(match)
            if mention is not None:
                found.append((match.start(), mention))
                blank = " " * (match.end() - match.start())
                rest = rest[: match.start()] + blank + rest[match.end() :]
    return [mention for _, mention in sorted(found, key=lambda pair: pair[0])]


@cache
def _forms() -> list[re.Pattern[str]]:
    """Compiled when a text may have need of it: 4 ms of a command's start."""
    return [re.compile(form, re.IGNORECASE) for form in _FORMS]


def _may_name_one(text: str) -> bool:
    """False where no form can match: each has a digit or a month's name. Told of ASCII alone, where
    small letters are all there is to ignoring case.
    """
    lowered = text.lower()
    return (
        not text.isascii()
        or any(map(str.isdecimal, text))
        or any(name in lowered for name in _MONTH_OF)
    )


def day_of(text: str) -> int | None:
    """The first full date in a text, in days since 1970-01-01; None where there is none."""
    return next(_days(mentioned(text)), None)


def days_since_1970(year: int, month: int, day: int) -> int | None:
    """None where the calendar has no such day."""
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None


def _days(mentions: list[Mention]) -> Iterator[int]:
    for year, month, day in mentions:
        if year is not None and month is not None and day is not None:
            days = days_since_1970(year, month, day)
            if days is not None:
                yield days


def _read(match: re.Match[str]) -> Mention | None:
    said = match.groupdict()
    year, day = (int(said[key]) if said.get(key) else None for key in ("year", "day"))
    if said.get("name"):
        if year is None and day is None and not _stands_alone(match):
            return None
        month: int | None = _MONTH_OF[said["name"].lower()]
    else:
        month = int(said["month"]) if said.get("month") else None
    # 2000 has every day that any year has.
    if days_since_1970(year or 2000, month or 1, day or 1) is None:
        return None
    return Mention(year, month, day)


def _stands_alone(match: re.Match[str]) -> bool:
    """May and March are verbs too: there they need their capital, within a sentence."""
    name = match["name"]
    if name.lower() not in {"may", "march"}:
        return name.lower() in _CERTAIN
    return name[0].isupper() and match.string[: match.start()].strip() != ""
