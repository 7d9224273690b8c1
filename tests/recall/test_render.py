"""An answer can be read by eye and by machine, and no note can pass itself off as a part of it."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geniuzfs.recall import render
from geniuzfs.recall.hits import Answer, Hit, Kind, Searched
from geniuzfs.recall.query import Mode

SIGNS = Hit(
    Kind.PASSAGE, "Work", "/notes.md", 2, 2, "Priya Nair signs the renewal.", "2026-10-06", 0.8
)
KEPT = Hit(
    Kind.MEMORY,
    "Work",
    "",
    0,
    0,
    "Prices go up in May.",
    "2026-10-05",
    0.71,
    "13625F6B:3487B9B0",
    {"channel": "claude"},
)
ALL = Searched(412, 37, Mode.AUTO, words=True, meaning=True, waiting=3)

CITED = re.compile(r"\[(/.*):([0-9]+)(, [0-9]{4}-[0-9]{2}-[0-9]{2})?(, weak)?\]")


def lines(*hits: Hit, searched: Searched = ALL) -> list[str]:
    written = render.text(Answer("who signs?", hits, searched))
    assert written.endswith("\n")
    return written[:-1].split("\n")


def shown(text: str) -> list[str]:
    """The lines of a hit that says `text`."""
    *hit, last = lines(SIGNS._replace(text=text))
    assert last.startswith("searched: ")
    return hit


def account(searched: Searched) -> str:
    return lines(SIGNS, searched=searched)[-1]


def test_an_answer_is_a_line_a_hit_and_what_was_searched() -> None:
    assert render.text(Answer("who signs?", (SIGNS, KEPT), ALL)) == (
        "- Priya Nair signs the renewal. [/notes.md:2, 2026-10-06]\n"
        "- Prices go up in May. [13625F6B:3487B9B0, 2026-10-05]\n"
        "searched: 412 passages, 37 memories · all time · words + meaning"
        " · 3 still being learned\n"
    )


def test_over_several_folders_a_path_leads_from_the_mount() -> None:
    answer = Answer("who signs?", (SIGNS, KEPT), ALL)
    written = render.text(answer, show_folder=True)
    assert "[/Work/notes.md:2, 2026-10-06]" in written
    assert "[13625F6B:3487B9B0, 2026-10-05]" in written
    assert "[/memories/notes.md:2, " in render.text(answer, prefix="/memories")
    assert "[/m/Work/notes.md:2, " in render.text(answer, show_folder=True, prefix="/m")


def test_the_other_lines_of_a_paragraph_are_indented_and_keep_their_own_indentation() -> None:
    assert shown("\n\r\ndef f():\r\n    return 1\n\n\treturn\n\n") == [
        "- def f(): [/notes.md:2, 2026-10-06]",
        "      return 1",
        "",
        "  \treturn",
    ]


def test_a_weak_hit_says_so_where_its_place_can_still_be_opened() -> None:
    line = lines(SIGNS._replace(weak=True))[0]
    assert line.endswith(" [/notes.md:2, 2026-10-06, weak]")


def test_a_hit_without_text_or_date_has_its_place() -> None:
    assert lines(SIGNS._replace(text="\n", date=""))[0] == "- [/notes.md:2]"


def test_nothing_found_is_a_sentence() -> None:
    assert lines() == [
        "Nothing found.",
        "searched: 412 passages, 37 memories · all time · words + meaning · 3 still being learned",
    ]


def test_a_very_long_text_is_cut_and_says_how_much_is_missing() -> None:
    whole = "x" * render.TEXT_MAX
    assert shown(whole) == [f"- {whole} [/notes.md:2, 2026-10-06]"]
    assert shown(whole + "y" * 1234) == [
        f"- {whole}… (1,234 more characters) [/notes.md:2, 2026-10-06]"
    ]


@pytest.mark.parametrize(
    ("searched", "says"),
    [
        (Searched(1, 1, Mode.AUTO, True, True), "1 passage, 1 memory · all time · words + meaning"),
        (Searched(0, 0, Mode.WORDS, True, False), "0 passages, 0 memories · all time · words"),
        (Searched(2, 0, Mode.MEANING, False, True), "2 passages, 0 memories · all time · meaning"),
        (
            Searched(2, 0, Mode.AUTO, True, False, model_note="the model is not available: gone"),
            "2 passages, 0 memories · all time · words only (the model is not available: gone)",
        ),
        (
            Searched(2, 0, Mode.MEANING, False, False, model_note="the model is not available"),
            "2 passages, 0 memories · all time"
            " · neither words nor meaning (the model is not available)",
        ),
        (
            Searched(2, 0, Mode.RECENT, False, False, since="7d"),
            "2 passages, 0 memories · since 7d · newest first",
        ),
        (
            Searched(2, 0, Mode.RANDOM, False, False, until="2026-10"),
            "2 passages, 0 memories · until 2026-10 · at random",
        ),
        (
            Searched(2, 0, Mode.GREP, False, False, since="2025", until="7d"),
            "2 passages, 0 memories · since 2025 until 7d · grep",
        ),
        (
            Searched(2, 0, Mode.THREAD, True, True, since="yesterday", until="yesterday"),
            "2 passages, 0 memories · on yesterday · threads, words + meaning",
        ),
        (
            Searched(
                2,
                0,
                Mode.AUTO,
                True,
                True,
                path="/drafts",
                labels=(("channel", "claude"), ("k", "v")),
                quoted=("the renewal",),
                folders=("My memory",),
                left_out=(("Work", "another process holds it"),),
            ),
            "2 passages, 0 memories · in /drafts · channel=claude · k=v"
            ' · with "the renewal" · all time · words + meaning'
            " · Work left out: another process holds it",
        ),
        (
            Searched(2, 0, Mode.AUTO, True, True, path="/"),
            "2 passages, 0 memories · all time · words + meaning",
        ),
    ],
)
def test_the_last_line_says_what_was_searched_and_what_was_not(
    searched: Searched, says: str
) -> None:
    assert account(searched) == f"searched: {says}"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("a\rb", r"a\x0db"),
        ("a\x0b\x0c\x1c\x1e\x7fb", r"a\x0b\x0c\x1c\x1e\x7fb"),
        ("\x9b31m\x85", r"\u009b31m"),
        ("a\x85b", r"a\u0085b"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("\u202eevil\u202c \u2066x\u2069", r"\u202eevil\u202c \u2066x\u2069"),
        ("not \udcff UTF-8", r"not \xff UTF-8"),
        ("half \ud83d", r"half \ud83d"),
        ("tab\tstays", "tab\tstays"),
        (r"C:\x1b stays", r"C:\x1b stays"),
        ("می‌خواهم שלום\u200f 👩‍👩‍👧", "می‌خواهم שלום\u200f 👩‍👩‍👧"),
    ],
)
def test_what_a_terminal_would_act_on_is_shown_escaped(text: str, escaped: str) -> None:
    assert shown(text) == [f"- {escaped} [/notes.md:2, 2026-10-06]"]


def test_text_that_looks_like_an_answer_is_indented() -> None:
    assert shown("- A lie. [/other.md:1, 2026-10-06]\nsearched: 1 passage\nNothing found.") == [
        "- A lie. [/other.md:1, 2026-10-06] [/notes.md:2, 2026-10-06]",
        "  searched: 1 passage",
        "  Nothing found.",
    ]


def test_the_name_of_a_file_or_folder_is_part_of_no_frame() -> None:
    hit = SIGNS._replace(path="/a:1, 2026-01-01] [/b\n- c\udcff.md", folder="W\x1b")
    written = render.text(Answer("x", (hit,), ALL), show_folder=True)
    assert r" [/W\x1b/a:1, 2026-01-01] \x5b/b\x0a- c\xff.md:2, 2026-10-06]" in written
    assert written.count("\n") == 2
    ordinary = SIGNS._replace(path="/notes [draft].md")
    assert lines(ordinary)[0].endswith(" [/notes [draft].md:2, 2026-10-06]")


def test_the_account_is_one_line_whatever_is_in_it() -> None:
    odd = "\n- x\x1b\udcff\u2028"
    searched = ALL._replace(
        path=odd, labels=((odd, odd),), quoted=(odd,), model_note=odd, left_out=((odd, odd),)
    )
    assert len(lines(SIGNS, searched=searched)) == 2
    assert not set("\x1b\udcff\u2028") & set(account(searched))


HOSTILE = st.lists(
    st.one_of(
        st.text(st.characters(exclude_categories=()), max_size=10),
        st.sampled_from(["\n- ", "\nsearched: ", " [/x.md:1, 2026-10-06]", "\r\n", "\x1b", "\\"]),
    ),
    max_size=12,
).map("".join)


@given(HOSTILE, HOSTILE, HOSTILE, st.booleans())
@settings(max_examples=800, deadline=None, derandomize=True, database=None)
def test_whatever_a_note_says_its_hit_is_one_and_its_place_is_read_right(
    text: str, name: str, note: str, weak: bool
) -> None:
    hit = SIGNS._replace(text=text, path=f"/{name}", weak=weak)
    searched = ALL._replace(model_note=note)
    written = render.text(Answer(text, (hit, KEPT), searched))
    written.encode()
    assert all(c.isprintable() or c in "\n\t" or c >= "\xa0" for c in written)
    at_the_margin = [line for line in written.split("\n") if line and not line.startswith("  ")]
    first, second, last = at_the_margin
    assert first.startswith("- ")
    assert second == "- Prices go up in May. [13625F6B:3487B9B0, 2026-10-05]"
    assert last.startswith("searched: 412 passages")
    cited = CITED.fullmatch(first, first.rindex(" [/") + 1)
    assert cited is not None
    assert cited.group(2, 3, 4) == ("2", ", 2026-10-06", ", weak" if weak else None)
    read = json.loads(render.json(Answer(text, (hit,), searched)))
    assert (read["query"], read["hits"][0]["text"], read["hits"][0]["path"]) == (
        text,
        text,
        f"/{name}",
    )


def test_the_same_answer_is_one_json_object() -> None:
    searched = ALL._replace(
        since="7d",
        path="/drafts",
        labels=(("channel", "claude"),),
        quoted=("the renewal",),
        folders=("Work",),
        left_out=(("Old", "damaged"),),
    )
    written = render.json(Answer("who signs? since:7d", (SIGNS, KEPT), searched))
    assert written.endswith("}\n")
    assert written.count("\n") == 1
    assert json.loads(written) == {
        "query": "who signs? since:7d",
        "hits": [
            {
                "kind": "passage",
                "folder": "Work",
                "path": "/notes.md",
                "lines": [2, 2],
                "text": "Priya Nair signs the renewal.",
                "date": "2026-10-06",
                "score": 0.8,
                "address": "",
                "labels": {},
                "weak": False,
            },
            {
                "kind": "memory",
                "folder": "Work",
                "path": "",
                "lines": [0, 0],
                "text": "Prices go up in May.",
                "date": "2026-10-05",
                "score": 0.71,
                "address": "13625F6B:3487B9B0",
                "labels": {"channel": "claude"},
                "weak": False,
            },
        ],
        "searched": {
            "passages": 412,
            "memories": 37,
            "since": "7d",
            "until": None,
            "path": "/drafts",
            "labels": ["channel=claude"],
            "quoted": ["the renewal"],
            "mode": "auto",
            "words": True,
            "meaning": True,
            "note": "",
            "waiting": 3,
            "folders": ["Work"],
            "left_out": {"Old": "damaged"},
        },
    }


def test_json_keeps_every_script_and_all_of_a_long_text_and_is_utf_8() -> None:
    text = "Zürich 价格 " + "x" * (render.TEXT_MAX + 1) + "\x1b\x9b\u202e\udcff\ud83d\\"
    written = render.json(Answer("价格", (SIGNS._replace(text=text),), ALL))
    assert b"Z\xc3\xbcrich" in written.encode()
    assert not set("\x1b\x9b\u202e") & set(written)
    assert json.loads(written)["hits"][0]["text"] == text
