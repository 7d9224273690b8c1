"""What may be asked about files: every rule, from both sides of its limit."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from geniuzfs.api import requests
from geniuzfs.errors import BadPath, UsageError
from geniuzfs.model import RESERVED
from geniuzfs.recall.query import parse

NOW_NS = 1_790_000_000 * 10**9

BAD_PATHS: list[Any] = [
    "",
    "/",
    "notes.md",
    "./notes.md",
    "//notes.md",
    "/a//b",
    "/a/",
    "/.",
    "/..",
    "/a/./b",
    "/a/../b",
    "/a/..",
    "/a\\b",
    "/a\0b",
    "/a\nb",
    "/a\x7fb",
    "/a\x85b",
    "/a\ud800b",
    "/" + "x" * 255,
    "/" + "x" * 299,
    "/" + "ü" * 128,
    *(f"/a/{name.decode()}" for name in RESERVED),
    f"/{min(RESERVED).decode()}/a",
    None,
    5,
    b"/a",
]

GOOD_PATHS = [
    "/a",
    "/notes.md",
    "/My notes/plan (1).md",
    "/%252e%252e/x",
    "/...",
    "/.hidden",
    "/~",
    "/ ",
    "/a:b",
    "/Grüße/日本.md",
    "/a\u2028b",
    "/" + "x" * 254,
    "/" + "ü" * 127,
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_what_is_no_path_is_refused(path: Any) -> None:
    with pytest.raises(BadPath) as refused:
        requests.path(path)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("path", GOOD_PATHS)
def test_all_other_paths_are_taken_as_they_are(path: str) -> None:
    assert requests.path(path) == path


@pytest.mark.parametrize("prefix", ["/", "/a", "/a/", "/a/.", "/a/..", "/.recall"])
def test_a_prefix_may_end_anywhere(prefix: str) -> None:
    assert requests.prefix(prefix) == prefix


@pytest.mark.parametrize("prefix", ["", "a", "//", "/a//b", "/../a", "/a\\", "/\0", None])
def test_what_no_path_begins_with_is_no_prefix(prefix: Any) -> None:
    with pytest.raises(BadPath):
        requests.prefix(prefix)


@pytest.mark.parametrize("path", ["/", "/a", "", "a/", "/a//", "/../", None])
def test_a_directory_ends_with_a_slash(path: Any) -> None:
    with pytest.raises(BadPath):
        requests.directory(path)
    assert requests.directory("/a/b/") == "/a/b/"


@pytest.mark.parametrize("text", ["a\0b", "a\ud800", "\udc80", "x" * 2_000_001, None, b"a", 5])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(UsageError):
        requests.text(text)


@pytest.mark.parametrize("text", ["", "\ufeffa\r\nb\x1b", "x" * 2_000_000, "😀" * 2])
def test_all_other_text_is_taken_as_it_is(text: str) -> None:
    assert requests.text(text) == text


BAD_LABELS: list[Any] = [
    {f"key{n}": "v" for n in range(21)},
    {"": "v"},
    {"a b": "v"},
    {"a=b": "v"},
    {'a"b': "v"},
    {"k" * 65: "v"},
    {"k": ""},
    {"k": "a\nb"},
    {"k": "v" * 1001},
    {"k": "\ud800"},
    {"k": 5},
    {5: "v"},
    [("k", "v")],
    "k=v",
]


@pytest.mark.parametrize("labels", BAD_LABELS)
def test_what_can_be_no_label_is_refused(labels: Any) -> None:
    with pytest.raises(UsageError):
        requests.labels(labels)


@pytest.mark.parametrize(("limit", "cursor"), [(0, None), (201, None), ("5", None), (5, 5)])
def test_pages_have_limits(limit: Any, cursor: Any) -> None:
    with pytest.raises(UsageError):
        requests.page(limit, cursor)
    assert requests.page(200, None) == (200, "")


def test_filters_are_the_operators_of_a_question() -> None:
    given = requests.operators(
        {
            "limit": 5,
            "since": date(2026, 10, 1),
            "until": datetime(2026, 10, 2, 12, 30, tzinfo=UTC),
            "path": "/My notes/",
            "labels": {"channel": "claude code", "a": "b=c"},
            "mode": "words",
            "on": None,
        }
    )
    written = (
        "x limit:5 since:2026-10-01 until:2026-10-02T12:30:00+00:00 path:'/My notes/' mode:words"
        ' label:channel="claude code" label:a=b=c'
    ).replace("'", '"')
    assert parse("x", NOW_NS, None, given) == parse(written, NOW_NS)


@pytest.mark.parametrize(
    "filters", [{"labls": {}}, {"labels": "a=b"}, {"labels": {"a=b": "c"}}, {"labels": {"a": 1}}]
)
def test_a_filter_that_there_is_not_is_an_error(filters: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        requests.operators(filters)
