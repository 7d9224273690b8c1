"""`geniuzfs recall`: its flags mean what the operators of a question mean."""

import pytest
from click.testing import CliRunner

from geniuzfs.cli.recall import _asked, kinds, operators, recall
from geniuzfs.errors import UsageError
from geniuzfs.recall.query import LONGEST, Mode, parse

NOW_NS = 1_790_000_000 * 10**9
NONE: dict[str, str | None] = dict.fromkeys(("since", "until", "on", "path", "limit", "mode"))


@pytest.mark.parametrize(
    ("flags", "labels", "as_json", "written"),
    [
        ({}, (), False, ""),
        ({"since": "7d", "until": "today"}, (), False, "since:7d until:today"),
        ({"on": "yesterday", "limit": "3"}, (), True, "on:yesterday limit:3 format:json"),
        ({"path": "My notes/", "mode": "grep"}, (), False, 'path:"My notes/" mode:grep'),
        ({}, ("a=b", "c=d e"), False, 'label:a=b label:c="d e"'),
    ],
)
def test_flags_and_operators_have_the_same_meaning(
    flags: dict[str, str | None], labels: tuple[str, ...], as_json: bool, written: str
) -> None:
    given = operators(NONE | flags, labels, as_json)
    assert parse("who signs?", NOW_NS, None, given) == parse(f"who signs? {written}", NOW_NS)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (kinds(["words"], [], False, False), "x mode:words"),
        (kinds(["recent"], [], False, True), "x mode:recent full:yes"),
        (kinds([], ["Priya Nair", "May"], False, False), 'x grep:"Priya Nair" grep:May'),
        (kinds([], [], True, False), "x mode:thread"),
    ],
)
def test_flags_for_kinds_of_recall_are_operators_too(
    given: list[tuple[str, str]], written: str
) -> None:
    assert parse("x", NOW_NS, None, given) == parse(written, NOW_NS)


def test_two_kinds_at_once_are_refused() -> None:
    for given in (
        kinds(["words", "random"], [], False, False),
        [("mode", "words"), *kinds(["recent"], [], False, False)],
        kinds(["words"], [], True, False),
    ):
        with pytest.raises(UsageError, match="mode: is given twice"):
            parse("x", NOW_NS, None, given)


def test_the_help_names_every_flag_operator_mode_and_exit_code() -> None:
    done = CliRunner().invoke(recall, ["--help"])
    assert done.exit_code == 0
    said = " ".join(done.output.split())
    for word in (
        *("--in", "--since", "--until", "--on", "--path", "--label", "--limit", "--mode", "--json"),
        *("--keyword", "--recent", "--random", "--grep", "--thread", "--full", "--all"),
        *("grep:text", "full:yes", "Exits with 0", "with 1"),
        *("since:7d", "until:2026-10-01", "on:yesterday", "path:drafts/", "label:channel=claude"),
        *("limit:20", "mode:words", "format:json", "standard input", "Exits with 0"),
        *Mode,
    ):
        assert word in said


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("who", "signs?"), "who signs?"),
        (("-",), "who signs? \udcff\n"),
        (("-", "x"), "- x"),
        ((), ""),
    ],
)
def test_a_question_is_the_arguments_or_for_a_dash_standard_input(
    words: tuple[str, ...], text: str
) -> None:
    with CliRunner().isolation(b"who signs? \xff\n"):
        assert _asked(words) == text


def test_standard_input_is_read_no_further_than_to_see_that_it_is_too_long() -> None:
    with CliRunner().isolation("𐍈".encode() * (10 * LONGEST)), pytest.raises(UsageError):
        parse(_asked(("-",)), NOW_NS)
