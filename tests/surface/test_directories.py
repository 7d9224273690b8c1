"""Directories for whoever shows them, and the edit that agents make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geniuzfs import BadPath, ConflictError, InvalidRequest, NotFoundError
from geniuzfs.api.edits import LINES_MOST, replaced
from geniuzfs.api.opened import Opened
from geniuzfs.errors import AlreadyExists, BeneathFile, NotOnce
from geniuzfs.store import tree, whole
from geniuzfs.store.connection import Database

MAKER = whole.Maker(0, 0, 1)


@pytest.fixture
def filled(mem: Opened) -> Opened:
    for path in ("/b", "/a/1", "/a/c/2", "/a/c/d/3", "/ab/4"):
        mem.files.put(path, "xyz")
    return mem


def beside(mem: Opened) -> Database:
    """For what only a mount makes."""
    return Database.open(mem.folder.path)


def listed(mem: Opened, path: str = "/", depth: int = 1) -> list[tuple[str, int]]:
    entries = mem.directories.list(path, depth).entries
    return [(f"{each.path}{'/' * each.is_directory}", each.size) for each in entries]


def test_each_directory_stands_before_what_is_in_it(filled: Opened) -> None:
    assert listed(filled) == [("/a/", 9), ("/ab/", 3), ("/b", 3)]
    assert listed(filled, "/a", 2) == [("/a/1", 3), ("/a/c/", 6), ("/a/c/2", 3), ("/a/c/d/", 3)]
    assert len(listed(filled, depth=9)) == 9
    assert filled.directories.list().size == 15
    assert filled.directories.list("/a/c").size == 6


def test_what_can_not_be_asked_for_is_in_the_sizes_alone(filled: Opened) -> None:
    database = beside(filled)
    with database.txn() as txn:
        top = whole.make_directories(txn, [b"a"], MAKER)
        whole.put(txn, [b"a", b"\xff"], b"12345", MAKER)
        whole.put(txn, [b"a", b"back\\slash"], b"12345", MAKER)
        tree.create(txn, top, b"link", tree.New(0o120777, 0, 0, target=b"1"), 1)
        found = whole.at(txn, [b"b"])
        assert found is not None
        tree.link(txn, found.number, top, b"same", 1)
    database.close()
    assert listed(filled, "/a") == [("/a/1", 3), ("/a/c/", 6), ("/a/same", 3)]
    assert filled.directories.list("/a").size == 22
    assert filled.directories.list().size == 25  # of two names once
    filled.directories.remove("/a")
    assert listed(filled) == [("/ab/", 3), ("/b", 3)]


@pytest.mark.parametrize("path", ["/nope", "/b", "/b/x", "/a/nope/x"])
def test_what_is_no_directory_is_not_listed(filled: Opened, path: str) -> None:
    with pytest.raises(NotFoundError):
        filled.directories.list(path)


@pytest.mark.parametrize("path", ["", "a", "/a/", "/a//b", "/../a", "/a/.recall", "/a\0"])
def test_what_is_no_path_is_refused(filled: Opened, path: str) -> None:
    with pytest.raises(BadPath):
        filled.directories.list(path)
    for each in (path, "/"):  # the top can't be either
        with pytest.raises(BadPath):
            filled.directories.remove(each)
        with pytest.raises(BadPath):
            filled.directories.rename(each, "/x")
        with pytest.raises(BadPath):
            filled.directories.rename("/b", each)
    assert len(listed(filled, depth=9)) == 9


def test_removing_takes_all_beneath_and_keeps_what_it_empties(filled: Opened) -> None:
    filled.directories.remove("/a/c/d/3")
    filled.directories.remove("/a/1")
    assert listed(filled, "/a", 2) == [("/a/c/", 3), ("/a/c/2", 3), ("/a/c/d/", 0)]
    filled.directories.remove("/a/c")
    assert listed(filled) == [("/a/", 0), ("/ab/", 3), ("/b", 3)]
    for path in ("/a/c", "/b/x"):
        with pytest.raises(NotFoundError):
            filled.directories.remove(path)


def test_a_directory_thousands_deep_is_removed(mem: Opened) -> None:
    database = beside(mem)
    with database.txn() as txn:
        whole.make_directories(txn, [b"d"] * 3_000, MAKER)
    database.close()
    mem.directories.remove("/d")
    assert listed(mem) == []


def test_renaming_takes_all_beneath_and_keeps_what_it_empties(filled: Opened) -> None:
    filled.directories.rename("/a/c", "/new/place")
    assert listed(filled, "/new", 2) == [
        ("/new/place/", 6),
        ("/new/place/2", 3),
        ("/new/place/d/", 3),
    ]
    filled.directories.rename("/a/1", "/1")
    assert ("/a/", 0) in listed(filled)
    filled.directories.rename("/a", "/e")  # an empty one too
    assert ("/e/", 0) in listed(filled)
    assert filled.files.get("/new/place/d/3").text == "xyz"


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("/a", "/ab", AlreadyExists),
        ("/a", "/b", AlreadyExists),
        ("/b", "/b", AlreadyExists),
        ("/b", "/a/c", AlreadyExists),
        ("/nope", "/x/y", NotFoundError),
        ("/nope", "/b", ConflictError),
        ("/a", "/a/x", InvalidRequest),
        ("/a", "/a/c/x/y", InvalidRequest),
        ("/a", "/b/x", BeneathFile),
        ("/a", "/" + "n" * 250, BadPath),
    ],
)
def test_what_can_not_be_renamed_stays(
    filled: Opened, old: str, new: str, error: type[Exception]
) -> None:
    before = listed(filled, depth=9)
    with pytest.raises(error):
        filled.directories.rename(old, new)
    assert listed(filled, depth=9) == before


def test_an_edit_adds_labels(mem: Opened) -> None:
    mem.files.put("/a", "x", {"by": "me", "channel": "editor"})
    put = mem.files.edit("/a", lambda text: text + "y", {"channel": "claude"})
    assert put.source.labels == {"by": "me", "channel": "claude"}
    with pytest.raises(InvalidRequest):
        mem.files.edit("/a", str.upper, {"a b": "c"})
    assert mem.files.get("/a").text == "xy"


TEXTS = st.text("ab\n", max_size=12)


@given(text=TEXTS, old=TEXTS, new=TEXTS)
def test_what_stands_there_exactly_once_is_replaced(text: str, old: str, new: str) -> None:
    places = [at for at in range(len(text)) if old and text.startswith(old, at)]
    if not old:
        with pytest.raises(InvalidRequest):
            replaced(text, old, new)
    elif len(places) != 1:
        with pytest.raises(NotOnce) as error:
            replaced(text, old, new)
        assert error.value.lines == [text.count("\n", 0, at) + 1 for at in places]
    else:
        after = text[: places[0]] + new + text[places[0] + len(old) :]
        assert replaced(text, old, new) == after


def test_the_lines_of_what_stands_there_often_are_not_all_told() -> None:
    with pytest.raises(NotOnce, match="in lines 1 and 2 at least") as error:
        replaced("x\n" * 1_000_000, "x", "y")
    assert error.value.lines == list(range(1, LINES_MOST + 1))
