"""A question is understood the same way whatever is in it, and nothing of it is lost."""

import string
from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from geniuzfs.errors import UsageError
from geniuzfs.recall import query
from geniuzfs.recall.query import Format, Mode, Query, parse


class Summer(tzinfo):
    """Two hours east until the night of 2026-10-25, one hour from then on: a zone with a change
    that needs no time zone database.
    """

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(hours=1) + self.dst(moment)

    def dst(self, moment: datetime | None) -> timedelta:
        change = datetime(2026, 10, 25, 3)
        summer = moment is not None and moment.replace(tzinfo=None) < change
        return timedelta(hours=1 if summer else 0)

    def tzname(self, _moment: datetime | None) -> str:
        return "summer"


HERE = Summer()
NOW = datetime(2026, 10, 8, 15, 30, tzinfo=HERE)


def ns(moment: datetime) -> int:
    return int(moment.timestamp()) * 10**9


def asked(text: str, now: datetime = NOW, zone: tzinfo = HERE) -> Query:
    return parse(text, ns(now), zone)


def day(year: int, month: int = 1, number: int = 1) -> int:
    return ns(datetime(year, month, number, tzinfo=HERE))


def refused(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        asked(text)
    message = str(caught.value)
    assert message.isprintable(), "one line, and nothing in it that a terminal acts on"
    return message


def test_plain_words_are_asked_as_they_are() -> None:
    assert asked("what did we decide about  pricing?\n") == Query(
        "what did we decide about pricing?"
    )


@pytest.mark.parametrize(
    "text",
    [
        "http://example.org/x",
        "TODO: call Priya",
        "at 12:30",
        "std::vector",
        "since: 7d",
        "since:",
        "on:",
        "hands-on:demo",
        "(since:7d)",
        "ſince:7d",
        "lim\u0131t:5",
        "a:b:c ::: :x x:",
        "AND NEAR OR NOT * foo* ^bar (baz)",
        "don't",
        'a 5" disk',
        'a 5" disk and a 3" disk',
        'a 5 " disk and a 3 " one',
        'a 5"-disk and a 3" one',
        'a " disk and a 3" one',
        '"foo"bar',
        'in the צה"ל and the דו"ח',
        '"',
        '""',
        '" "',
        "“unbalanced",
        "” “",
        "GB/s 100% %2F C:\\dir",
        "👩‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿",
        "שלום \u202eעולם",
        "\x1b[31m",
        "-rf --help",
        "\udcff\udc80",
        *string.punctuation,
        string.punctuation,
        "价" * 1333,
    ],
)
def test_what_is_no_operator_is_text(text: str) -> None:
    assert asked(text) == Query(" ".join(text.split()))


@pytest.mark.parametrize(
    ("text", "words", "quoted"),
    [
        ('the "exact phrase" here', "the exact phrase here", ("exact phrase",)),
        ("the “exact phrase” here", "the exact phrase here", ("exact phrase",)),
        ("la « phrase exacte » ici", "la phrase exacte ici", ("phrase exacte",)),
        ("das „genaue Wort“ hier", "das genaue Wort hier", ("genaue Wort",)),
        ("「正確な」言葉", "正確な 言葉", ("正確な",)),
        ('关于"价格"的决定', "关于 价格 的决定", ("价格",)),
        ('"가격"에 대해', "가격 에 대해", ("가격",)),
        ('("a" "b")', "( a b )", ("a", "b")),
        ('"a  b\nc"', "a b c", ("a b c",)),
        ('"don\'t" it', "don't it", ("don't",)),
        ('a 5" disk, "this one"', 'a 5" disk, this one', ("this one",)),
        ('"since:7d" "mode:grep x"', "since:7d mode:grep x", ("since:7d", "mode:grep x")),
        ("“foo”bar", "foo bar", ("foo",)),
        ("“a “b” c”", "“a b c”", ("b",)),
    ],
)
def test_a_quoted_phrase_is_asked_and_has_to_be_there(
    text: str, words: str, quoted: tuple[str, ...]
) -> None:
    assert asked(text) == Query(words, quoted)


def test_operators_are_taken_out_wherever_they_stand() -> None:
    found = asked("LIMIT:20 what did mode:Words we since:7d decide Format:JSON")
    assert found.text == "what did we decide"
    assert (found.limit, found.mode, found.format) == (20, Mode.WORDS, Format.JSON)
    assert (found.since_ns, found.since) == (ns(NOW) - 7 * 24 * 3600 * 10**9, "7d")


@pytest.mark.parametrize(
    ("asked_for", "moment"),
    [
        ("12h", NOW - timedelta(hours=12)),
        ("1d", NOW - timedelta(days=1)),
        ("2W", NOW - timedelta(weeks=2)),
        ("1m", datetime(2026, 9, 8, 15, 30, tzinfo=HERE)),
        ("10m", datetime(2025, 12, 8, 15, 30, tzinfo=HERE)),
        ("22m", datetime(2024, 12, 8, 15, 30, tzinfo=HERE)),
        ("1y", datetime(2025, 10, 8, 15, 30, tzinfo=HERE)),
    ],
)
def test_a_time_back_is_a_moment(asked_for: str, moment: datetime) -> None:
    assert asked(f"x since:{asked_for}").since_ns == ns(moment)
    assert asked(f"x until:{asked_for}").until_ns == ns(moment)


def test_a_month_back_from_its_31st_is_the_last_day_of_the_one_before() -> None:
    found = asked("x since:1m", datetime(2026, 3, 31, 9, tzinfo=HERE))
    assert found.since_ns == ns(datetime(2026, 2, 28, 9, tzinfo=HERE))


@pytest.mark.parametrize(
    ("asked_for", "start", "end"),
    [
        ("2026-10-01", day(2026, 10, 1), day(2026, 10, 2)),
        ("2026-12-31", day(2026, 12, 31), day(2027)),
        ("2026-10", day(2026, 10), day(2026, 11)),
        ("2024-02", day(2024, 2), day(2024, 3)),
        ("2025", day(2025), day(2026)),
        ("Today", day(2026, 10, 8), day(2026, 10, 9)),
        ("yesterday", day(2026, 10, 7), day(2026, 10, 8)),
        ("1700", day(1700), day(1701)),
        ("2200", day(2200), day(2201)),
    ],
)
def test_a_day_month_or_year_is_meant_whole(asked_for: str, start: int, end: int) -> None:
    on = asked(f"x on:{asked_for}")
    assert (on.since_ns, on.until_ns, on.since, on.until) == (start, end, asked_for, asked_for)
    assert asked(f"x since:{asked_for}").since_ns == start
    assert asked(f"x until:{asked_for}").until_ns == end
    both = asked(f"x since:{asked_for} until:{asked_for}")
    assert both == on


@pytest.mark.parametrize(
    ("asked_for", "moment"),
    [
        ("12:30", datetime(2026, 10, 8, 12, 30, tzinfo=HERE)),
        ("12:30:15", datetime(2026, 10, 8, 12, 30, 15, tzinfo=HERE)),
        ("2026-10-01T12:30", datetime(2026, 10, 1, 12, 30, tzinfo=HERE)),
        ('"2026-10-01 12:30"', datetime(2026, 10, 1, 12, 30, tzinfo=HERE)),
        ("2026-12-01t12:30:15.5", datetime(2026, 12, 1, 12, 30, 15, tzinfo=HERE)),
        ("2026-10-01T12:30:15Z", datetime(2026, 10, 1, 12, 30, 15, tzinfo=UTC)),
        ("2026-10-01T12:30:15.123+02:00", datetime(2026, 10, 1, 10, 30, 15, tzinfo=UTC)),
        ("12:30-05:00", datetime(2026, 10, 8, 17, 30, tzinfo=UTC)),
    ],
)
def test_a_time_is_a_moment(asked_for: str, moment: datetime) -> None:
    assert asked(f"x since:{asked_for}").since_ns == ns(moment)
    assert asked(f"x until:{asked_for}").until_ns == ns(moment)
    assert "is a moment" in refused(f"x on:{asked_for}")


def test_without_a_zone_times_are_those_of_the_machine() -> None:
    found = parse("x since:2026-07-01T12:30 until:2026-07-31T12:30Z", ns(NOW))
    assert found.since_ns == ns(datetime(2026, 7, 1, 12, 30).astimezone())
    assert found.until_ns == ns(datetime(2026, 7, 31, 12, 30, tzinfo=UTC))


def test_days_are_as_long_as_they_are_in_their_zone() -> None:
    found = asked("x on:2026-10-25")  # an hour longer there
    assert found.since_ns is not None
    assert found.until_ns is not None
    assert found.until_ns - found.since_ns == 25 * 3600 * 10**9
    west = asked("x on:today", NOW, timezone(timedelta(hours=-10)))
    assert west.since_ns == ns(datetime(2026, 10, 8, 10, tzinfo=UTC))


def test_without_a_zone_days_are_those_of_the_machine() -> None:
    found = parse("x on:2026-07-01", ns(NOW))
    assert found.since_ns == ns(datetime(2026, 7, 1).astimezone())


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("path:drafts/", "/drafts"),
        ("path:/drafts//./plan.md", "/drafts/plan.md"),
        ('path:"My notes/"', "/My notes"),
        ("path:“My notes/plan.md”", "/My notes/plan.md"),
        ("path:/", "/"),
        ('path:5"disk', '/5"disk'),
        ("path:笔记/", "/笔记"),
        ("path:\udcff", "/\udcff"),
    ],
)
def test_a_path_leads_from_the_top(text: str, path: str) -> None:
    assert asked(f"{text} x") == Query("x", path=path)


def test_a_quoted_value_ends_with_its_quote() -> None:
    assert asked('path:"My notes/", x') == Query(", x", path="/My notes")


def test_labels_may_be_several_and_are_kept_as_written() -> None:
    found = asked('x label:channel=claude LABEL:Topic="Two words" label:"a b=c" label:k=v=w')
    assert found.labels == (
        ("channel", "claude"),
        ("Topic", "Two words"),
        ("a b", "c"),
        ("k", "v=w"),
    )
    assert found.text == "x"


def test_grep_looks_for_several_phrases_and_needs_no_other_words() -> None:
    found = asked('grep:"Priya  Nair" grep:May')
    assert (found.text, found.quoted, found.mode) == (
        "Priya Nair May",
        ("Priya Nair", "May"),
        Mode.GREP,
    )
    found = asked('"at four" tea grep:May')
    assert found.text == "at four tea May"
    assert (found.quoted, found.mode) == (("at four", "May"), Mode.GREP)
    assert asked("tea grep:May mode:words").mode is Mode.WORDS


@pytest.mark.parametrize("mode", list(Mode))
def test_every_mode_can_be_asked_for(mode: Mode) -> None:
    assert asked(f"x mode:{mode.upper()}").mode is mode


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x since:soon", "since: 'soon' is no time: write 7d (h, d, w, m, y), today"),
        ("x since:0d", "is no time"),
        ("x since:-7d", "is no time"),
        ("x since:٧d", "is no time"),
        ("x since:7days", "is no time"),
        ("x since:99999w", "from 1700 to 2200"),
        ("x since:99999y", "from 1700 to 2200"),
        ("x since:327y", "from 1700 to 2200"),
        ("x on:1699", "from 1700 to 2200"),
        ("x until:2201-01-01", "from 1700 to 2200"),
        ("x until:0000", "is no time"),
        ("x until:2026-02-30", "is no time"),
        ("x until:2026-13", "is no time"),
        ("x on:2026-1-1", "is no time"),
        ("x full:moon", "full: 'moon' is neither yes nor no"),
        ("mode:grep", "ask something"),
        ("x since:24:00", "is no time"),
        ("x since:12:60", "is no time"),
        ("x since:2026-10-01T", "is no time"),
        ("x since:2026-02-30T12:30", "is no time"),
        ("x since:1699-01-01T12:30", "from 1700 to 2200"),
        ("x since:2026-10-01T12:30+99:00", "is no time"),
        ("x since:12:30 until:12:30", "nothing lies between"),
        ("x since:15:00 until:12:30", "is not before until:12:30"),
        ("x on:7d", "on: '7d' is a moment: write since:7d"),
        ("x on:today since:7d", "leave out since: and until:"),
        ("x on:today until:7d", "leave out since: and until:"),
        ("x since:2026-10-02 until:2026-10-01", "nothing lies between"),
        ("x since:7d until:7d", "nothing lies between"),
        ("x since:7d since:8d", "since: is given twice: '7d' and '8d'"),
        ("x path:../up", "without .."),
        ('x path:"a/../b c"', "without .."),
        ("x label:channel", "write label:key=value"),
        ("x label:=claude", "write label:key=value"),
        ("x label:channel=", "write label:key=value"),
        ("x limit:0", "a number from 1 to 200"),
        ("x limit:201", "a number from 1 to 200"),
        ("x limit:ten", "a number from 1 to 200"),
        ("x limit:-1", "a number from 1 to 200"),
        ("x limit:" + "9" * 5000, "…' is not a number"),
        ("x limit:1\x1b[31m", "'1\\x1b[31m' is not a number"),
        ("x mode:magic", "auto, words, meaning, grep, thread, random, recent"),
        ("x format:xml", "is none of text, json"),
        ("", "ask something"),
        (" \n\u3000", "ask something"),
        ("limit:5 format:json", "ask something"),
        ("since:7d mode:words", "ask something"),
        ("x" * (query.LONGEST + 1), "at most 16,384 characters, not 16,385"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line_that_says_what_would(
    text: str, says: str
) -> None:
    assert says in refused(text)


@pytest.mark.parametrize(
    "text", ["since:7d", "until:2026", "on:today", "path:drafts/", "label:a=b", "mode:recent"]
)
def test_without_words_a_filter_asks_for_the_newest(text: str) -> None:
    found = asked(text)
    assert (found.text, found.mode) == ("", Mode.RECENT)


def test_without_words_something_can_be_drawn_at_random() -> None:
    assert asked("mode:random since:7d").mode is Mode.RANDOM


def test_operators_that_come_from_elsewhere_count_as_if_written() -> None:
    pairs = [("path", 'a "b" c/'), ("label", "k=v"), ("mode", "GREP"), ("limit", "3")]
    found = parse("x label:l=w", ns(NOW), HERE, pairs)
    assert found == Query(
        "x", path='/a "b" c', labels=(("k", "v"), ("l", "w")), limit=3, mode=Mode.GREP
    )
    with pytest.raises(UsageError, match="given twice"):
        parse("x limit:4", ns(NOW), HERE, pairs)


def test_long_rows_of_quotes_are_read_in_time_that_grows_with_their_length() -> None:
    for mark in '"“”«»„「':
        for row in (mark, f"{mark}a", f" {mark}a", f"a{mark} "):
            text = (row * query.LONGEST)[: query.LONGEST]
            assert asked(text).text.split()


# What the grammar is made of, so that its parts meet in every order.
PIECES = st.sampled_from(
    [
        *(f"{key}:" for key in query._KEYS),
        *"\"“”«»„「」=:/.-,'\\ \n\t\x1f\u2028",
        *("7d", "2026-10-01", "2026", "today", "k=v", "5", "words", "json", "..", "价格", "é", "x"),
    ]
)
MADE = st.lists(PIECES, max_size=20).map("".join)
ANY = st.text(st.characters(exclude_categories=()), max_size=60)


@given(st.one_of(MADE, ANY, st.lists(st.one_of(MADE, ANY)).map(" ".join)))
@example("since:1m")
@settings(max_examples=1500, deadline=None, derandomize=True, database=None)
def test_any_text_is_understood_or_refused(text: str) -> None:
    try:
        found = asked(text)
    except UsageError:
        assert refused(text)
        return
    assert found.text == " ".join(found.text.split())
    assert found.text or found.mode in (Mode.RANDOM, Mode.RECENT)
    assert 1 <= found.limit <= query.LIMIT_MAX
    for phrase in found.quoted:
        assert phrase
        assert phrase in found.text
    letters = sorted("".join(text.split()))
    if not any(f"{key}:" in text.lower() for key in query._KEYS):
        marks = set('"“”«»„「」') if found.quoted else set()
        assert [c for c in letters if c not in marks] == [
            c for c in sorted("".join(found.text.split())) if c not in marks
        ]


@given(ANY.filter(lambda text: not set('"“”«»„「」') & set(text) and bool(text.split())))
@settings(max_examples=500, deadline=None, derandomize=True, database=None)
def test_text_without_operators_and_quotes_keeps_every_word(text: str) -> None:
    if not any(f"{key}:" in text.lower() for key in query._KEYS):
        assert asked(text) == Query(" ".join(text.split()))


@given(
    st.integers(ns(datetime(1971, 1, 1, tzinfo=UTC)), ns(datetime(2100, 1, 1, tzinfo=UTC))),
    st.integers(1, 200),
    st.sampled_from("hdwmy"),
    st.sampled_from([None, UTC, HERE, timezone(timedelta(hours=13, minutes=45))]),
)
@settings(max_examples=500, deadline=None, derandomize=True, database=None)
def test_a_time_back_is_before_now_and_further_back_the_more_there_is(
    now_ns: int, count: int, unit: str, zone: tzinfo | None
) -> None:
    moments = [parse(f"x since:{n}{unit}", now_ns, zone).since_ns for n in (count, count + 1)]
    assert moments[0] is not None
    assert moments[1] is not None
    assert moments[1] <= moments[0] <= now_ns + 3600 * 10**9
    today = parse("x on:today", now_ns, zone)
    assert today.since_ns is not None
    assert today.until_ns is not None
    assert today.since_ns <= now_ns < today.until_ns
