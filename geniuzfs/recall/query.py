"""What a question's text means: its words, its quoted phrases, its operators.

Hides: the grammar, and the calendar behind `since:`, `until:` and `on:`. Promises: every door reads
a question the same way, whatever characters are in it; what is no operator is asked, and no word of
it is lost. Refuses: an operator whose value makes no sense, or that is given twice; it is never
ignored, since an answer to another question would look just like an answer to this one.

`grep:` may be given several times: each is a phrase that has to be contained, and the mode is grep.

An operator is a word `key:value`, the key in any case; a value with spaces stands in quotes
(`path:"My notes/"`, `label:channel="claude code"`). Other words with a colon are text (`TODO:`,
`12:30`, `http://x`), as is a key with nothing after its colon, and whatever stands in quotes.
"""

import calendar
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from enum import StrEnum
from typing import NamedTuple

from geniuzfs.addresses import is_meant
from geniuzfs.errors import UsageError

LONGEST = 16_384
"""Characters in a question. A name holds 4,000 bytes; more can only be written to `.recall/ask`."""

LIMIT, LIMIT_MAX = 10, 200
"""Hits in an answer: unless asked otherwise, and at most."""

YEARS = range(1700, 2201)
"""Years that can be named: nanoseconds in 64 bits reach from 1677 to 2262."""


class Mode(StrEnum):
    """How the answer is looked for."""

    AUTO = "auto"
    """By words and by meaning."""
    WORDS = "words"
    MEANING = "meaning"
    GREP = "grep"
    THREAD = "thread"
    RANDOM = "random"
    RECENT = "recent"
    """Newest first: what a question without words but with a filter asks for."""


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"


class Query(NamedTuple):
    """A question, understood."""

    text: str
    """The words to be asked, one space between them, operators and quotes taken out. What was
    quoted is in here too. May be empty in the modes RANDOM and RECENT.
    """
    quoted: tuple[str, ...] = ()
    """Phrases that an answer has to contain; one space between words, however it was written."""
    since_ns: int | None = None
    until_ns: int | None = None
    """The window [since, until) in nanoseconds since 1970, UTC; None: open on that side."""
    since: str | None = None
    until: str | None = None
    """The window as it was asked for. Equal when it was `on:`."""
    path: str | None = None
    """This file, or whatever lies beneath this directory: begins with `/` and doesn't end with it;
    `/` alone is everything.
    """
    labels: tuple[tuple[str, str], ...] = ()
    """Keys and values, all of which a hit has to have."""
    limit: int = LIMIT
    mode: Mode = Mode.AUTO
    format: Format = Format.TEXT
    asked: str = ""
    """All of it as it was asked, where that is to be shown."""
    full: bool = False
    """Show texts to their end, and memories whole."""

    def means_a_memory(self) -> bool:
        """Whether a kept memory may be asked for by its name, and nothing else."""
        filters = (self.quoted, self.since, self.until, self.path, self.labels)
        return self.mode in (Mode.AUTO, Mode.THREAD) and is_meant(self.text) and not any(filters)


Given = Iterable[tuple[str, str]]
"""Operators as (key, value) that come from elsewhere than the text: the command line's flags."""

_KEYS = ("since", "until", "on", "path", "label", "limit", "mode", "format", "full", "grep")

# A quote that looks the same on both sides is told from a mark of inches, or of a Hebrew acronym,
# by standing at the edge of a word. Scripts from Thai on (Burmese, Khmer, Hangul, kana, Han) put no
# space around a quote: their letters are no obstacle.
_LETTER = r"[^\W\u0e00-\U0010ffff]"
# Each stops at the next opening quote, so a long row of those costs no more than its length.
_PAIRS = ("“([^“”]+)”", "«([^«»]+)»", "„([^„“”]+)[“”]", "「([^「」]+)」")
_PHRASE = "|".join((rf'(?<!{_LETTER})"(?=\S)([^"]+)(?<=\S)"(?!{_LETTER})', *_PAIRS))
_QUOTED = "|".join(('"([^"]+)"', *_PAIRS))
_LABELLED = r"[^\s=\"“«„「]+="
# The `a` since without it a long s, `ſ`, is taken for an `s`.
_TOKEN = re.compile(
    rf"(?<!\S)(?P<key>(?ai:{'|'.join(_KEYS)})):"
    rf"(?P<value>(?:{_LABELLED})?(?:{_QUOTED})|\S+)|(?P<phrase>{_PHRASE})"
)
_IN_QUOTES = re.compile(rf"({_LABELLED})?(?:{_QUOTED})")
_BACK = re.compile(r"([1-9][0-9]{0,4})([hdwmy])", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_MOMENT = re.compile(
    r"(?:([0-9]{4})-([0-9]{2})-([0-9]{2})[t ])?([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?"
    r"(z|[+-][0-9]{2}:[0-9]{2})?"
)
"""As in RFC 3339, of which seconds, the zone and the day may be left out."""
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}
_MONTHS = {"m": 1, "y": 12}


def parse(text: str, now_ns: int, zone: tzinfo | None = None, given: Given = ()) -> Query:
    """Understand `text`, asked at `now_ns` (nanoseconds since 1970, UTC).

    Days begin and end in `zone`; None: the machine's own. `given` counts as if written in the text.
    A day is meant whole: `until:2026-10-01` ends with that day, as `until:2026-10` with the month.
    A time is a moment: `12:30` of today, `2026-10-01T12:30`, both in `zone`, and with seconds and a
    zone of its own whatever RFC 3339 allows.

    `7d` is that many times 24 hours ago (h and w likewise), `3m` and `2y` the same day of the month
    and time of day, or the month's last day. Raises UsageError, with one line that says what is
    allowed.
    """
    if len(text) > LONGEST:
        raise UsageError(f"a question has at most {LONGEST:,} characters, not {len(text):,}")
    words, quoted, written = _taken_apart(text)
    once, labels, held = _sorted_out([*given, *written])
    if held:
        words, quoted = " ".join((words, *held)).strip(), (*quoted, *held)
        once.setdefault("mode", Mode.GREP)
    since_ns, until_ns, since, until = _window(once, _Calendar(now_ns, zone))
    path = _path(once["path"]) if "path" in once else None
    mode = _mode(once.get("mode", Mode.AUTO))
    if not words:
        mode = _without_words(mode, filtered=bool(since or until or path or labels))
    # Who asks for a thread by name wants all of it.
    most = LIMIT_MAX if mode is Mode.THREAD and is_meant(words) else LIMIT
    return Query(
        words,
        quoted,
        since_ns,
        until_ns,
        since,
        until,
        path,
        labels,
        _limit(once.get("limit", str(most))),
        mode,
        _format(once.get("format", Format.TEXT)),
        full=_is_yes("full", once.get("full", "no")),
    )


def _taken_apart(text: str) -> tuple[str, tuple[str, ...], list[tuple[str, str]]]:
    """The words, the phrases among them, the operators as (key, value)."""
    kept: list[str] = []
    quoted: list[str] = []
    operators: list[tuple[str, str]] = []
    end = 0
    for token in _TOKEN.finditer(text):
        kept.append(text[end : token.start()])
        end = token.end()
        if token["key"]:
            operators.append((token["key"].lower(), _unquoted(token["value"])))
            continue
        phrase = _one_spaced(_unquoted(token["phrase"]))
        if phrase:
            quoted.append(phrase)
        kept.append(phrase or token["phrase"])
    kept.append(text[end:])
    return _one_spaced(" ".join(kept)), tuple(quoted), operators


def _one_spaced(text: str) -> str:
    return " ".join(text.split())


def _unquoted(value: str) -> str:
    whole = _IN_QUOTES.fullmatch(value)
    return "".join(part for part in whole.groups() if part) if whole else value


def _sorted_out(
    operators: Sequence[tuple[str, str]],
) -> tuple[dict[str, str], tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The values of those that may be given once, the labels, and what `grep:` looks for."""
    once: dict[str, str] = {}
    labels: list[tuple[str, str]] = []
    held: list[str] = []
    for key, value in operators:
        if key == "label":
            labels.append(_label(value))
        elif key == "grep":
            held.append(_one_spaced(value))
        elif key in once:
            raise UsageError(f"{key}: is given twice: {_shown(once[key])} and {_shown(value)}")
        else:
            once[key] = value
    return once, tuple(labels), tuple(part for part in held if part)


def _without_words(mode: Mode, *, filtered: bool) -> Mode:
    if mode in (Mode.RANDOM, Mode.RECENT):
        return mode
    if mode is Mode.AUTO and filtered:
        return Mode.RECENT
    raise UsageError(
        "ask something: words, or since:, until:, on:, path:, label:, mode:recent or mode:random"
    )


def _label(value: str) -> tuple[str, str]:
    key, equals, wanted = value.partition("=")
    if not (key and equals and wanted):
        raise UsageError(f"label: {_shown(value)} is no label: write label:key=value")
    return key, wanted


def _path(value: str) -> str:
    parts = [part for part in value.split("/") if part not in ("", ".")]
    if ".." in parts or not value:
        raise UsageError(
            f"path: {_shown(value)} is no place in a folder: write path:drafts/ or"
            " path:drafts/plan.md, without .."
        )
    return "/" + "/".join(parts)


def _limit(value: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", value) or not 1 <= int(value) <= LIMIT_MAX:
        raise UsageError(f"limit: {_shown(value)} is not a number from 1 to {LIMIT_MAX}")
    return int(value)


def _is_yes(key: str, value: str) -> bool:
    if value.lower() not in ("yes", "no"):
        raise UsageError(f"{key}: {_shown(value)} is neither yes nor no")
    return value.lower() == "yes"


def _mode(value: str) -> Mode:
    try:
        return Mode(value.lower())
    except ValueError:
        raise UsageError(f"mode: {_shown(value)} is none of {', '.join(Mode)}") from None


def _format(value: str) -> Format:
    try:
        return Format(value.lower())
    except ValueError:
        raise UsageError(f"format: {_shown(value)} is none of {', '.join(Format)}") from None


def _shown(value: str) -> str:
    """`value` in quotes, on one line and not long: control characters come out escaped."""
    return repr(value if len(value) <= 60 else value[:59] + "…")


def _window(
    once: dict[str, str], dates: "_Calendar"
) -> tuple[int | None, int | None, str | None, str | None]:
    """(since_ns, until_ns, since, until), the latter two as asked."""
    since, until, on = (once.get(key) for key in ("since", "until", "on"))
    if on is not None:
        if since is not None or until is not None:
            raise UsageError("on: is a window of its own: leave out since: and until:")
        start, end = dates.span("on", on)
        if start == end:
            raise UsageError(f"on: {_shown(on)} is a moment: write since:{on} for all since then")
        return start, end, on, on
    since_ns = None if since is None else dates.span("since", since)[0]
    until_ns = None if until is None else dates.span("until", until)[1]
    if since_ns is not None and until_ns is not None and since_ns >= until_ns:
        raise UsageError(f"since:{since} is not before until:{until}: nothing lies between")
    return since_ns, until_ns, since, until


class _Calendar:
    """Turns what people call a time into spans of nanoseconds."""

    def __init__(self, now_ns: int, zone: tzinfo | None) -> None:
        self._now_ns = now_ns
        self._zone = zone
        # Without a zone of its own, datetime asks the machine's rules for each moment anew. A fixed
        # offset, which astimezone() would give, is an hour off in the other half of the year.
        self._now = datetime.fromtimestamp(now_ns // 10**9, zone)

    def span(self, key: str, value: str) -> tuple[int, int]:
        """Where `value` begins and ends, [start, end); equal where it is a moment."""
        try:
            if back := _BACK.fullmatch(value):
                moment = self._back(int(back[1]), back[2].lower())
                return moment, moment
            if time := _MOMENT.fullmatch(value.lower()):
                moment = self._ns(self._time(time))
                return moment, moment
            start, end = self._named(value.lower())
            return self._ns(start), self._ns(end)
        except ValueError:
            raise UsageError(
                f"{key}: {_shown(value)} is no time: write 7d (h, d, w, m, y), today, yesterday,"
                f" 12:30, 2026-10-01T12:30, 2026-10-01, 2026-10 or 2026, from {YEARS[0]} to"
                f" {YEARS[-1]}"
            ) from None

    def _back(self, count: int, unit: str) -> int:
        """The moment so long ago. Raises ValueError when that is before YEARS."""
        if unit in _HOURS:
            _first((self._now - timedelta(hours=count * _HOURS[unit])).year)
            return self._now_ns - count * _HOURS[unit] * 3600 * 10**9
        now = self._now
        year, month = divmod(now.year * 12 + now.month - 1 - count * _MONTHS[unit], 12)
        _first(year)
        day = min(now.day, calendar.monthrange(year, month + 1)[1])
        return self._ns(now.replace(year=year, month=month + 1, day=day))

    def _time(self, found: re.Match[str]) -> datetime:
        """That moment, aware of its zone if it names one. Raises ValueError for what is none."""
        date, clock = found.groups()[:3], [int(part or 0) for part in found.groups()[3:6]]
        day = _first(*map(int, date)) if date[0] else self._now
        moment = day.replace(hour=clock[0], minute=clock[1], second=clock[2], microsecond=0)
        if found[7] is None:
            return moment
        return datetime.fromisoformat(f"{moment:%Y-%m-%dT%H:%M:%S}{found[7].upper()}")

    def _named(self, value: str) -> tuple[datetime, datetime]:
        """Start and end of a day, month or year. Raises ValueError for what is none."""
        day = timedelta(days=1)
        if value in ("today", "yesterday"):
            today = self._now.replace(hour=0, minute=0, second=0)
            return (today, today + day) if value == "today" else (today - day, today)
        date = _DATE.fullmatch(value)
        if date is None:
            raise ValueError
        year, month = int(date[1]), int(date[2] or 1)
        start = _first(year, month, int(date[3] or 1))
        if date[3]:
            return start, start + day
        if date[2]:
            return start, start + day * calendar.monthrange(year, month)[1]
        return start, datetime(year + 1, 1, 1)

    def _ns(self, local: datetime) -> int:
        aware = local if local.tzinfo not in (None, self._zone) else None
        return int((aware or local.replace(tzinfo=self._zone)).timestamp()) * 10**9


def _first(year: int, month: int = 1, day: int = 1) -> datetime:
    """The first moment of it. Raises ValueError for a year beyond YEARS, or no such day."""
    if year not in YEARS:
        raise ValueError
    return datetime(year, month, day)
