"""What memories are called in `.memories/`, and what a new name there asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geniuzfs.errors import UsageError
from geniuzfs.fs import gists
from geniuzfs.model import NAME_MAX, Memory, MemoryId

ID = MemoryId("3487B9B0-0000-4000-8000-000000000001")


def called(gist: str) -> bytes:
    return gists.name(Memory(ID, "content", gist, "2026-10-06 12:00:00", ID))


@pytest.mark.parametrize(
    ("gist", "name"),
    [
        ("Priya signs", "2026-10-06 Priya signs~3487B9B0.md"),
        ("und/oder", "2026-10-06 und_oder~3487B9B0.md"),
        ("two\nlines\t\x1b[31m", "2026-10-06 two lines _[31m~3487B9B0.md"),
        ("\u202egnp.exe\ud800", "2026-10-06 _gnp.exe_~3487B9B0.md"),
        ("", "2026-10-06 ~3487B9B0.md"),
    ],
)
def test_a_name_is_day_gist_and_id(gist: str, name: str) -> None:
    assert called(gist) == name.encode()


def test_an_id_of_another_tool_makes_a_name_as_well() -> None:
    made_up = MemoryId("a/b\n" + "ä" * 32)
    named = gists.name(Memory(made_up, "", "gist", "2026-10-06 12:00:00", made_up))
    assert named.decode() == "2026-10-06 gist~A_B_ÄÄÄÄ.md"


@given(st.text())
def test_any_gist_makes_a_name_that_leads_back(gist: str) -> None:
    name = called(gist * 40)
    assert len(name) <= NAME_MAX
    assert b"/" not in name
    assert name.decode().isprintable() or any(ch.isspace() or ord(ch) > 127 for ch in name.decode())
    assert gists.named(name) == ("", "3487B9B0")


def test_a_name_is_cut_between_characters() -> None:
    for begin in ("", "a", "ab", "abc"):
        name = called(begin + "𐍈" * 100)
        assert NAME_MAX - 4 < len(name) <= NAME_MAX
        assert "\ufffd" not in name.decode()


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("3487b9b0", ("", "3487B9B0")),
        ("3487B9B0.md", ("", "3487B9B0")),
        ("whatever~3487B9B0", ("", "3487B9B0")),
        ("~3487B9B0.md", ("", "3487B9B0")),
        (ID, ("", ID)),
        ("13625F6B:3487B9B0", ("13625F6B", "3487B9B0")),
        ("3487B9B", None),
        ("3487B9B0 and more", None),
        ("x 3487B9B0", None),
        ("3487B9B0.txt", None),
        ("re 3487B9B0", None),
    ],
)
def test_a_name_that_means_a_memory(name: str, address: tuple[str, str] | None) -> None:
    assert gists.named(name.encode()) == address


@pytest.mark.parametrize(
    ("name", "gist", "parent"),
    [
        ("pricing", "pricing", None),
        ("pricing.md", "pricing", None),
        ("re 3487B9B0", "", "3487B9B0"),
        ("re 3487B9B0 from May", "from May", "3487B9B0"),
        ("Re: 3487b9b0: from May.md", "from May", "3487b9b0"),
        (f"re {ID} from May", "from May", ID),
        ("re pricing", "re pricing", None),
        ("re 3487B9B0x", "re 3487B9B0x", None),
        ("more 3487B9B0", "more 3487B9B0", None),
    ],
)
def test_a_new_name_is_a_gist_and_may_continue_a_memory(
    name: str, gist: str, parent: str | None
) -> None:
    assert gists.wanted(name.encode()) == (gist, parent)


def test_a_new_name_must_be_utf_8() -> None:
    with pytest.raises(UsageError):
        gists.wanted(b"\xff")
