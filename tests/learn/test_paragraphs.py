"""What becomes a passage, and under which heading, line and day."""

from collections.abc import Sequence

import pytest

from geniuzfs.dates import days_since_1970
from geniuzfs.learn.blocks import Block, Lines
from geniuzfs.learn.boundaries import LIMIT, tokens
from geniuzfs.learn.paragraphs import STRUCTURED_MOST, Passage, _parsed, split
from geniuzfs.learn.plain import plain_blocks

NOTE = """\
# Garden

The pear tree
was planted in March.

## Empty

## Beds

Sow in April:
- carrots
- peas

> Never water
> at noon.
"""


def texts(text: str, name: str = "note.md") -> list[str]:
    return [passage.text for passage in split(text, name)]


@pytest.mark.parametrize("name", ["note.md", "note.txt", "note", "NOTE.MD"])
def test_a_note_in_passages(name: str) -> None:
    assert [(p.text, p.first_line, p.last_line, p.heading) for p in split(NOTE, name)] == [
        ("The pear tree\nwas planted in March.", 3, 4, "Garden"),
        ("## Empty", 6, 6, "Garden"),
        ("Sow in April:\n- carrots\n- peas", 10, 12, "Garden > Beds"),
        ("> Never water\n> at noon.", 14, 15, "Garden > Beds"),
    ]


def test_a_passage_is_where_it_says() -> None:
    (passage,) = split("\n\n  Some words.  \n\n", "a.txt")
    assert passage == Passage("Some words.", 4, 15, 3, 3, "", None, "", False)


@pytest.mark.parametrize("text", ["", "\n\n", " \t\f\n", "---\n", "***\n\n> \n", "\ufeff\n"])
def test_nothing_to_learn(text: str) -> None:
    assert split(text, "a.md") == split(text, "a.txt") == []


def test_headings_of_either_form_make_a_path() -> None:
    text = "One\n===\n\nTwo\n---\n\nwords\n\n### Three ###\n\nmore\n\n# Four\n\nend\n"
    for name in ("a.md", "a.txt"):
        assert [p.heading for p in split(text, name)] == [
            "One > Two",
            "One > Two > Three",
            "Four",
        ]


def test_a_heading_with_only_a_rule_beneath_is_a_passage() -> None:
    assert texts("# Ideas\n\n---\n\n# Plans\n\nGo.\n") == ["# Ideas", "Go."]


def test_a_long_paragraph_that_markdown_takes_for_a_heading_stays_a_passage() -> None:
    paragraph = "Some words that someone wrote. " * 10
    assert texts(f"{paragraph}\n---\n\nend\n")[0].startswith(paragraph.rstrip())


def test_link_definitions_and_raw_html_are_learned() -> None:
    text = "[home]: http://example.org 'My home'\n\n<!-- a remark -->\n\nwords\n"
    assert texts(text) == ["[home]: http://example.org 'My home'", "<!-- a remark -->", "words"]


def test_front_matter_is_a_passage_and_an_empty_one_is_none() -> None:
    for name in ("a.md", "a.txt"):
        assert texts("---\ntitle: Bees\n# no heading\n---\n\nwords\n", name) == [
            "---\ntitle: Bees\n# no heading\n---",
            "words",
        ]
        assert texts("---\n---\nwords\n", name) == ["words"]


def test_a_code_block_is_whole_and_keeps_its_indentation() -> None:
    fence = "```py\ndef f():\n\n    # not a heading\n    return 1\n```"
    assert texts(f"words\n\n{fence}\n\nmore\n") == ["words", fence, "more"]
    assert texts(f"words\n\n{fence}\n\nmore\n", "a.txt") == ["words", fence, "more"]
    assert texts("words\n\n    a = 1\n\n    b = 2\n") == ["words", "    a = 1\n\n    b = 2"]


def test_a_code_block_beyond_the_limit_is_cut_at_line_ends() -> None:
    code = "".join(f"value_{i} = compute({i}, 'some text')\n" for i in range(200))
    found = texts(f"```\n{code}```\n")
    assert len(found) > 3
    assert "\n".join(found) == f"```\n{code}```"


def test_a_long_paragraph_is_cut_at_sentence_ends_even_when_wrapped() -> None:
    sentence = "The committee has met again\nand has decided nothing at all about it."
    found = texts(" ".join([sentence] * 60))
    assert len(found) > 1
    assert all(text.endswith("about it.") for text in found)
    assert all(tokens(text) <= LIMIT for text in found)


def test_a_table_is_whole_or_in_rows() -> None:
    head = "| city | people |\n|------|--------|\n"
    rows = "".join(f"| Town {i} | {i * 1000} people live there today |\n" for i in range(100))
    small = head + "| Bonn | 330000 |"
    assert texts(small) == texts(small, "a.txt") == [small]
    found = texts(head + rows)
    assert found[0].startswith(head)
    assert "\n".join(found) == (head + rows).rstrip()


def test_a_long_list_is_found_item_by_item() -> None:
    items = [
        f"- Item {i} says something that is quite long enough to be found and cited by itself,"
        "\n  over two lines of this list, with a few words more."
        for i in range(9)
    ]
    assert texts("Intro:\n\n" + "\n".join(items) + "\n") == ["Intro:", *items]


def test_short_items_of_a_long_list_go_together() -> None:
    found = texts("".join(f"- thing {i}\n" for i in range(200)))
    assert 10 < len(found) < 100
    assert all(text.startswith("- thing") for text in found)


def test_an_item_keeps_what_is_nested_in_it() -> None:
    item = (
        "- The kitchen needs a lot of work:\n  - new tiles for the whole floor\n"
        "  - a lamp\n\n    over the table, as bright as can be"
    )
    other = "\n".join(f"- Something else to be done about room number {i}" for i in range(30))
    for name in ("a.md", "a.txt", "a.org", "a.rst"):
        assert texts(f"{item}\n{other}\n", name)[0] == item


def test_days_come_from_the_nearest_heading_that_has_one() -> None:
    text = "# 8 May 2023\n\na\n\n## Plans\n\nb\n\n## 2023-06-01\n\nc\n\n# Else\n\nd\n"
    may, june = days_since_1970(2023, 5, 8), days_since_1970(2023, 6, 1)
    assert [p.day for p in split(text, "a.md")] == [may, may, june, None]


def test_a_line_that_is_only_a_date_is_a_heading() -> None:
    text = "# Diary\n\n8 May 2023\n\nRain.\n\n9 May 2023\n\nSun.\n\nWe met on 3 May 2023.\n"
    found = split(text, "a.txt")
    assert [(p.text, p.heading) for p in found] == [
        ("Rain.", "Diary > 8 May 2023"),
        ("Sun.", "Diary > 9 May 2023"),
        ("We met on 3 May 2023.", "Diary > 9 May 2023"),
    ]
    assert found[0].day == days_since_1970(2023, 5, 8)


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.org", "a.rst", "a.log"])
def test_lines_are_counted_as_editors_do(ending: str, name: str) -> None:
    text = ending.join(["\ufeffone", "two", "", "thr\u2028ee", "\f", "four", ""])
    found = split(text, name)
    assert [(p.first_line, p.last_line) for p in found] == [(1, 2), (4, 4), (6, 6)]
    assert found[0].text == f"one{ending}two"


def test_a_lone_carriage_return_ends_no_line_where_there_are_newlines() -> None:
    for name in ("a.md", "a.txt"):
        assert [p.first_line for p in split("one\rtwo\n\nthree\n", name)] == [1, 3]


def test_source_code_is_learned_in_its_blocks() -> None:
    code = "# not a heading\nimport os\n\n\ndef f():\n    return 1\n"
    assert texts(code, "dir/a.py") == ["# not a heading\nimport os", "def f():\n    return 1"]


def test_a_log_is_cut_at_line_ends() -> None:
    log = "".join(f"2026-10-06 10:32:{i % 60:02} worker {i}: started\n" for i in range(500))
    assert "\n".join(texts(log, "a.log")) == log.rstrip()


def test_a_parser_that_fails_costs_the_marks_alone() -> None:
    def broken(lines: Sequence[str]) -> list[Block]:
        raise RecursionError(len(lines))

    lines = Lines("# A\n\nwords\n")
    assert _parsed(lines, broken) == plain_blocks(lines.strings)


def test_markdown_of_very_many_lines_is_split_like_a_plain_note() -> None:
    text = "# A\n\n" + "- item\n\n" * (STRUCTURED_MOST // 2)
    assert split(text, "a.md") == split(text, "a.txt")
