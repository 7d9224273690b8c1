"""Which notes are conversations, and their turns."""

import pytest

from geniuzfs.dates import days_since_1970
from geniuzfs.learn.paragraphs import Passage, split

TALK = [
    "{}: Shall we meet on Friday?",
    "{}: Friday is bad. What about Monday?",
    "{}: Monday it is then.",
    "{}: Fine. I bring the maps.",
    "{}: And I bring the tea!",
]


def talk(form: str = "{}: {}", between: str = "\n\n") -> tuple[str, list[str]]:
    said = [
        form.format(line.format(name).partition(": ")[0], line.partition(": ")[2])
        for name, line in zip(["Anna", "Ben Li", "Anna", "Ben Li", "Anna"], TALK, strict=True)
    ]
    return between.join(said) + "\n", said


def is_dialogue(text: str, name: str = "a.md") -> bool:
    found = split(text, name)
    assert len({passage.dialogue for passage in found}) == 1
    return found[0].dialogue


@pytest.mark.parametrize("name", ["a.md", "a.txt", "a", "a.org", "a.rst"])
@pytest.mark.parametrize("between", ["\n\n", "\n"])
@pytest.mark.parametrize(
    "form",
    [
        "{}: {}",
        "**{}:** {}",
        "**{}**: {}",
        "[10:32] {}: {}",
        "(10:32 am) {}: {}",
        "{} (10:32): {}",
        "{} [10:32:05]: {}",
        "10:32 - {}: {}",
        "2026-10-06 10:32 - {}: {}",
        "[06.10.26, 10:32:05] {}: {}",
        "{}： {}",
    ],
)
def test_each_turn_is_a_passage_with_its_speaker(form: str, between: str, name: str) -> None:
    text, said = talk(form, between)
    found = split(text, name)
    assert [p.text for p in found] == said
    assert [p.speaker for p in found] == ["Anna", "Ben Li", "Anna", "Ben Li", "Anna"]
    assert all(p.dialogue for p in found)


@pytest.mark.parametrize("heading", ["# Session 3, 1:56 pm on 8 May, 2023", "8 May 2023"])
def test_a_session_has_the_day_of_its_heading(heading: str) -> None:
    text, said = talk()
    found = split(f"{heading}\n\n{text}", "a.txt")
    assert [p.text for p in found] == said
    assert [p.first_line for p in found] == [3, 5, 7, 9, 11]
    assert {p.day for p in found} == {days_since_1970(2023, 5, 8)}
    assert {p.heading for p in found} == {heading.removeprefix("# ")}


def test_a_line_with_its_own_date_has_that_day() -> None:
    text = "# 8 May 2023\n\n" + talk("2026-10-06 10:32 - {}: {}", "\n")[0]
    assert {p.day for p in split(text, "a.txt")} == {days_since_1970(2026, 10, 6)}


def test_further_lines_belong_to_the_turn() -> None:
    text = talk()[0] + "\nBen Li: Bring also:\n- bread\n- cheese\n\nand a knife.\n"
    last: Passage = split(text, "a.md")[-1]
    assert last.text == "Ben Li: Bring also:\n- bread\n- cheese\n\nand a knife."


def test_a_long_answer_is_cut_and_each_part_has_the_speaker() -> None:
    answer = "Ben Li: " + "The way over the hills is the longer one, but it has the views. " * 60
    parts = split(talk()[0] + "\n" + answer, "a.txt")[5:]
    assert len(parts) > 1
    assert {part.speaker for part in parts} == {"Ben Li"}


def test_one_section_of_a_note_can_be_a_conversation() -> None:
    minutes = "Some minutes that were written down.\n\n" * 12
    text = f"# Minutes\n\n{minutes}\n# Transcript\n\n{talk()[0]}\n{talk()[0]}"
    found = split(text, "a.md")
    assert {p.heading for p in found if p.dialogue} == {"Transcript"}
    assert sum(p.dialogue for p in found) == 10


@pytest.mark.parametrize(
    "text",
    [
        "Note: foo bar baz qux.\n\n" * 4 + "TODO: write this down soon.\n\n" * 4,
        "Warning: the stove is hot.\n\nTip: use a towel for it.\n\n" * 4,
        "host: localhost\nport: 80\n\nhost: example.org\nport: 81\n\n" * 4,
        "Street: Main road 5\nTown: Bonn am Rhein\nCode: 53111 it is\n\n" * 5,
        "See http://example.org/a\n\nhttp://example.org/b\n\n" * 5,
        "Pears: they are ripe in fall.\n\nPlums: they are ripe before that.\n\n"
        "Apples: they keep all winter.\n\nNuts: the squirrels take them all.\n",
        "Anna: hello there, you two!\n\nBen: hello to you!\n\n" + "A plain paragraph.\n\n" * 9,
        "Anna: hi there.\n\nBen: hello.\n",
    ],
)
def test_labels_and_records_are_no_conversation(text: str) -> None:
    for name in ("a.md", "a.txt"):
        assert not is_dialogue(text, name)


def test_a_config_file_is_no_conversation() -> None:
    assert not is_dialogue("Anna: says some words here\n\nBen: says other words\n\n" * 5, "a.yaml")
