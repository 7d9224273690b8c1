"""What holds for every text: order, place, completeness, stability, time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geniuzfs.learn.blocks import Lines, is_markup
from geniuzfs.learn.paragraphs import split

NAMES = ["a.md", "a.txt", "a.org", "a.rst", "a.log"]

SNIPPETS = st.sampled_from(
    [
        "# Head", "## Sub ##", "Title", "=====", "-----", "Anna: hi there!", "Ben: how are you?",
        "- item", "  - nested", "1. one", "    code", "```", "~~~", "> quote", ">", "| a | b |",
        "|---|---|", "<div>", "<!--", "-->", "[a]: b", "words and words", "8 May 2023", "* star",
        "#+begin_src", "#+end_src", ":X:", ":END:", ".. note::", "   body", "text::", "...", "---",
        "\ufeff", "\u2028", "\f", "🎉", "שלום", "e\u0301", "\t", " ", "", "", "", "\r", "name: x",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.lists(SNIPPETS, max_size=40).map("\n".join),
    st.lists(SNIPPETS, max_size=20).map("\r\n".join),
    st.lists(SNIPPETS, max_size=20).map("".join),
    st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])),
)


@given(TEXTS, st.sampled_from(NAMES))
def test_passages_stand_in_order_and_are_the_text_they_say(text: str, name: str) -> None:
    found = split(text, name)
    ending = "\r" if "\n" not in text else "\n"
    at = 0
    for passage in found:
        assert at <= passage.start < passage.end
        assert text[passage.start : passage.end] == passage.text
        assert not passage.text.startswith(("\n", "\r"))
        assert passage.text == passage.text.rstrip()
        assert passage.first_line == text.count(ending, 0, passage.start) + 1
        assert passage.last_line == text.count(ending, 0, passage.end) + 1
        at = passage.end
    assert split(text, name) == found


@given(TEXTS, st.sampled_from(NAMES))
def test_what_lies_between_is_white_space_marks_and_headings(text: str, name: str) -> None:
    found = split(text, name)
    edges = [0, *(edge for p in found for edge in (p.start, p.end)), len(text)]
    between = [text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    joined = "".join(a + p.text for a, p in zip(between, found, strict=False)) + between[-1]
    assert joined == text

    titles = {title for p in found for title in p.heading.split(" > ")}
    for line in Lines("".join(f"{gap}\n" for gap in between)).strings:
        if not is_markup(line.replace("\ufeff", "")):
            said = " ".join(line.strip("#*=\r\ufeff \t").split())
            assert any(said in title or title in said for title in titles if title)


def changed(before: str, after: str, name: str) -> tuple[int, int]:
    old, new = ({p.text for p in split(text, name)} for text in (before, after))
    return len(old - new), len(new - old)


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a.org", "a.rst"])
@pytest.mark.parametrize(
    "form",
    [
        "Paragraph {i} speaks of the matter number {i}.\n\n",
        "Anna: what do you think about the matter {i}?\n\nBen: nothing at all of {i}, my dear.\n\n",
        "Anna: what do you think about the matter {i}?\nBen: nothing at all of {i}, my dear.\n",
        "- Item {i} speaks of the matter at some length, since only long items have a passage of"
        " their own, which is what this is about: matter {i} and no other.\n",
    ],
    ids=["paragraphs", "turns", "lines", "items"],
)
def test_one_change_in_500_changes_one_passage(form: str, name: str) -> None:
    parts = [form.format(i=i) for i in range(500)]
    text = "# All\n\n" + "".join(parts)
    for at in (0, 250, 499):
        edited = [*parts]
        edited[at] = parts[at].replace("matter", "question", 1)
        assert changed(text, "# All\n\n" + "".join(edited), name) == (1, 1)


def test_one_short_item_changed_changes_its_group_alone() -> None:
    items = [f"- thing {i}\n" for i in range(500)]
    for at in range(0, 500, 25):
        edited = [*items]
        edited[at] = "- another\n"
        gone, new = changed("".join(items), "".join(edited), "a.md")
        assert 1 <= new <= 3
        assert 1 <= gone <= 3


HARD = {
    "one line": "word " * 100_000,
    "one word": "a" * 500_000,
    "one sign": "[" * 500_000,
    "one grapheme": "e" + "\u0301" * 500_000,
    "emoji": "👩‍👩‍👧" * 25_000,
    "Chinese": "中文" * 125_000,
    "items": "- an item of the list\n" * 22_000,
    "nested items": "\n".join("  " * depth + "- x" for depth in range(700)),
    "quotes": "> " * 250_000,
    "fences": "```x\n~~~\n" * 25_000,
    "definitions": "[a]: b\n" * 70_000,
    "open blocks": "".join(f"#+begin_{i}\n" for i in range(30_000)),
    "blank lines": "\n" * 500_000,
    "turns": "Anna: hi there, how is it?\nBen: very well thanks.\n" * 10_000,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", HARD.values(), ids=HARD)
def test_the_hardest_texts_take_seconds(text: str, name: str) -> None:
    started = time.process_time()
    found = split(text, name)
    # 0.1 to 1 s where it was measured; what is quadratic takes minutes.
    assert time.process_time() - started < 8
    assert all(text[p.start : p.end] == p.text for p in found)
