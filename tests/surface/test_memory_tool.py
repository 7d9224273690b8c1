"""Claude's memory tool: what it answers, word for word, and what it leaves in the folder."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import ToolError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geniuzfs import NotFoundError
from geniuzfs.api.edits import LINES_MOST
from geniuzfs.api.opened import Opened
from geniuzfs.claude import LABELS, AsyncMemoryTool, MemoryTool
from geniuzfs.model import CHUNK
from geniuzfs.store import content, tree, whole
from geniuzfs.store.connection import Database
from tests.surface.messages import Messages, Turn

HEADER = (
    "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and"
    " node_modules:\n"
)
LINES = "Here's the content of {} with line numbers:\n"
EDITED = (
    "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
)


@pytest.fixture
def tool(mem: Opened) -> MemoryTool:
    return MemoryTool(mem)


def ask(tool: MemoryTool, command: str, path: Any = None, **given: Any) -> str:
    """What the tool answers."""
    whole = {"command": command, **({} if path is None else {"path": path}), **given}
    answer = tool.call(whole)
    assert isinstance(answer, str)
    return answer


def refused(tool: MemoryTool, command: str, path: Any = None, **given: Any) -> str:
    """What it answers with is_error."""
    with pytest.raises(ToolError) as error:
        ask(tool, command, path, **given)
    assert isinstance(error.value.content, str)
    return error.value.content


def put_bytes(mem: Opened, path: bytes, data: bytes, mode: int = whole.FILE_MODE) -> None:
    """Put what only a mount makes: any name, any bytes, any type."""
    database = Database.open(mem.folder.path)
    with database.txn() as txn:
        *above, name = whole.parts(path)
        parent = whole.make_directories(txn, above, whole.Maker(0, 0, 1))
        target = data if mode == 0o120777 else None
        number = tree.create(txn, parent, name, tree.New(mode, 0, 0, target=target), 1).number
        if mode == whole.FILE_MODE:
            pieces = {at // CHUNK: data[at : at + CHUNK] for at in range(0, len(data), CHUNK)}
            content.save(txn, number, content.Save(len(data), 1, 1, pieces))
    database.close()


def everything(mem: Opened) -> list[tuple[str, str]]:
    return [(file.path, file.version) for file in mem.files.iter()]


# view


def test_an_empty_folder_is_an_empty_directory(tool: MemoryTool) -> None:
    for path in ("/memories", "/memories/", "//memories//"):
        assert ask(tool, "view", path) == HEADER.format("/memories") + "0B\t/memories"


def test_a_directory_is_shown_two_levels_deep_with_sizes(tool: MemoryTool, mem: Opened) -> None:
    for path, size in {
        "/notes.md": 1536,
        "/projects/lumen.md": 100,
        "/projects/2026/q4.md": 2048,
        "/projects/2026/deep/plan.md": 10,
        "/.scratch.md": 5,
        "/node_modules/pkg/a.md": 7,
        "/projects/.cache/tmp.md": 3,
    }.items():
        mem.files.put(path, "x" * size)
    put_bytes(mem, b"projects/empty", b"", whole.DIRECTORY_MODE)
    put_bytes(mem, b"projects/link", b"lumen.md", 0o120777)
    put_bytes(mem, b"projects/\xff", b"1")
    assert ask(tool, "view", "/memories") == HEADER.format("/memories") + (
        "3.6K\t/memories\n"
        "1.5K\t/memories/notes.md\n"
        "2.1K\t/memories/projects/\n"
        "2.0K\t/memories/projects/2026/\n"
        "0B\t/memories/projects/empty/\n"
        "100B\t/memories/projects/lumen.md"
    )
    assert ask(tool, "view", "/memories/projects/").endswith(
        "/memories/projects\n"
        "2.0K\t/memories/projects/2026/\n"
        "10B\t/memories/projects/2026/deep/\n"
        "2K\t/memories/projects/2026/q4.md\n"
        "0B\t/memories/projects/empty/\n"
        "100B\t/memories/projects/lumen.md"
    )
    # What is hidden can be shown by its name.
    assert "7B\t/memories/node_modules/pkg/a.md" in ask(tool, "view", "/memories/node_modules")
    assert ask(tool, "view", "/memories/.scratch.md").endswith("     1\txxxxx")


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0B"), (1023, "1023B"), (1024, "1K"), (1280, "1.2K"), (2**20, "1M"), (3 * 2**30, "3G")],
)
def test_sizes_are_for_people(tool: MemoryTool, mem: Opened, size: int, shown: str) -> None:
    put_bytes(mem, b"a", b"")
    database = Database.open(mem.folder.path)
    with database.txn() as txn:
        found = whole.at(txn, [b"a"])
        assert found is not None
        content.save(txn, found.number, content.Save(size, 1, 1, {}))
    database.close()
    assert f"\n{shown}\t/memories/a" in ask(tool, "view", "/memories")


def test_a_file_is_shown_with_line_numbers(tool: MemoryTool, mem: Opened) -> None:
    mem.files.put("/a.md", "\ufeffone\r\n\ttwo\n\nfour\n")
    shown = LINES.format("/memories/a.md")
    assert ask(tool, "view", "/memories/a.md") == (
        f"{shown}     1\t\ufeffone\r\n     2\t\ttwo\n     3\t\n     4\tfour\n     5\t"
    )
    for view_range, lines in {
        (2, 3): "     2\t\ttwo\n     3\t",
        (4, -1): "     4\tfour\n     5\t",
        (-5, 1): "     1\t\ufeffone\r",
        (4, 400): "     4\tfour\n     5\t",
        (9, -1): "",
        (3, 2): "",
    }.items():
        asked = ask(tool, "view", "/memories/a.md", view_range=list(view_range))
        assert asked == shown + lines
    odd: list[list[Any]] = [[1], [1, 2, 3], ["a", "b"], [1.5, 2]]
    for given_ in odd:
        assert "`view_range`" in refused(tool, "view", "/memories/a.md", view_range=given_)


def test_what_is_not_there_or_no_text_is_not_shown(tool: MemoryTool, mem: Opened) -> None:
    assert refused(tool, "view", "/memories/nope.md") == (
        "The path /memories/nope.md does not exist. Please provide a valid path."
    )
    put_bytes(mem, b"picture", b"\xff\xd8")
    assert "not text" in refused(tool, "view", "/memories/picture")
    assert "not text" in refused(tool, "str_replace", "/memories/picture", old_str="a", new_str="b")
    put_bytes(mem, b"lines", b"\n" * 1_000_000)
    assert refused(tool, "view", "/memories/lines") == (
        "File /memories/lines exceeds maximum line limit of 999,999 lines."
    )


def test_a_question_is_answered_as_in_a_mount(tool: MemoryTool, mem: Opened) -> None:
    mem.files.put("/team/lumen.md", "Budget: 40.\n\nPriya Nair signs the renewal.")
    mem.files.put("/other.md", "Nobody signs here.")
    asked = "/memories/team/.recall/who signs mode:words limit:1"
    answer = ask(tool, "view", asked)
    assert answer.startswith(
        LINES.format(asked) + "     1\t- Priya Nair signs the renewal. [/memories/team/lumen.md:3, "
    )
    assert "\n     2\tsearched: " in answer
    assert "other" not in answer
    assert "/memories/other.md:1" in ask(tool, "view", "/memories/.recall/nobody/../ signs")
    assert "nothing is there" not in refused(tool, "view", "/memories/nope/.recall/who")
    refused(tool, "create", "/memories/.recall/x", file_text="x")


# create, str_replace, insert


def test_a_file_is_created_once_with_the_exact_text_and_a_label(
    tool: MemoryTool, mem: Opened
) -> None:
    text = "\ufeff# Lumen\r\n trailing  \n\n"
    created = ask(tool, "create", "/memories/a/b/lumen.md", file_text=text)
    assert created == "File created successfully at: /memories/a/b/lumen.md"
    read = mem.files.get("/a/b/lumen.md")
    assert (read.text, read.labels) == (text, LABELS)
    for path in ("/memories/a/b/lumen.md", "/memories/a/b", "/memories"):
        said = refused(tool, "create", path, file_text="x")
        assert said == f"Error: File {path} already exists"
    assert "file stands above" in refused(tool, "create", "/memories/a/b/lumen.md/x", file_text="x")
    assert mem.files.get("/a/b/lumen.md").version == read.version
    ask(tool, "create", "/memories/empty", file_text="")
    assert mem.files.get("/empty").text == ""


def test_a_text_is_replaced_where_it_stands_once_and_no_other_byte(
    tool: MemoryTool, mem: Opened
) -> None:
    before = "\ufeffone\r\ntwo\r\nthree\nfour\r\nfive\nno end"
    mem.files.put("/a", before, {"by": "me", "channel": "editor"})
    assert ask(tool, "str_replace", "/memories/a", old_str="three", new_str="3\n3b") == (
        f"{EDITED}     1\t\ufeffone\r\n     2\ttwo\r\n     3\t3\n     4\t3b\n     5\tfour\r"
    )
    read = mem.files.get("/a")
    assert read.bytes == before.replace("three", "3\n3b").encode()
    assert read.labels == {"by": "me", **LABELS}
    ask(tool, "str_replace", "/memories/a", old_str="\nfour")  # no new_str: taken away
    assert mem.files.get("/a").text == "\ufeffone\r\ntwo\r\n3\n3b\r\nfive\nno end"


@pytest.mark.parametrize(
    "given",
    [
        {"command": "str_replace", "path": "/memories/a", "old_str": "\ud800", "new_str": ""},
        {"command": "str_replace", "path": "/memories/a", "old_str": "", "new_str": "\ud800"},
        {"command": "insert", "path": "/memories/a", "insert_line": "\ud800", "insert_text": ""},
        {"command": "view", "path": "\ud800"},
        {"command": "view", "path": "/memories/\ud800"},
        {"command": "view", "path": "/memories/../\ud800"},
    ],
)
def test_half_a_character_from_claude_is_refused_in_a_text_that_can_be_sent(
    tool: MemoryTool, given: dict[str, Any]
) -> None:
    """JSON can say half a character; an answer that repeats it would end the whole run."""
    ask(tool, "create", "/memories/a", file_text="x")
    with pytest.raises(ToolError) as error:
        tool.call(given)
    assert isinstance(error.value.content, str)
    assert error.value.content.encode()
    assert ask(tool, "view", "/memories/a").endswith("1\tx")


def test_what_stands_there_never_or_again_is_not_replaced(tool: MemoryTool, mem: Opened) -> None:
    mem.files.put("/a", "x y\nx\n\naaa")
    version = mem.files.get("/a").version

    def said(old: str) -> str:
        return refused(tool, "str_replace", "/memories/a", old_str=old, new_str="z")

    assert said("nope") == (
        "No replacement was performed, old_str `nope` did not appear verbatim in /memories/a."
    )
    several = (
        "No replacement was performed. Multiple occurrences of old_str `{}` in lines: {}."
        " Please ensure it is unique"
    )
    assert said("x") == several.format("x", "1, 2")
    assert said("aa") == several.format("aa", "4, 4")
    assert "empty" in said("")
    for path in ("/memories/nope", "/memories"):
        answer = refused(tool, "str_replace", path, old_str="x", new_str="y")
        assert answer == f"Error: The path {path} does not exist. Please provide a valid path."
    assert mem.files.get("/a").version == version
    assert mem.files.get("/a").labels == {}


def test_a_text_that_stands_there_a_million_times_is_told_shortly(
    tool: MemoryTool, mem: Opened
) -> None:
    mem.files.put("/a", "x\n" * 1_000_000)
    said = refused(tool, "str_replace", "/memories/a", old_str="x", new_str="y")
    assert f", {LINES_MOST}, ...." in said
    assert len(said) < 1_000


@pytest.mark.parametrize(
    ("before", "line", "new", "after"),
    [
        ("a\nb\n", 0, "x", "x\na\nb\n"),
        ("a\nb\n", 1, "x\n", "a\nx\nb\n"),
        ("a\nb\n", 2, "x\ny", "a\nb\nx\ny\n"),
        ("a", 1, "x", "a\nx\n"),
        ("", 0, "x", "x\n"),
        ("", 0, "", "\n"),
        ("a\r\nb\r\n", 1, "x\r\n", "a\r\nx\r\nb\r\n"),
        ("\ufeffa\n", 0, "x", "\ufeffx\na\n"),
        ("\ufeffa\n", 1, "x", "\ufeffa\nx\n"),
    ],
)
def test_lines_are_inserted_after_a_line(
    tool: MemoryTool, mem: Opened, before: str, line: int, new: str, after: str
) -> None:
    mem.files.put("/a", before)
    answer = ask(tool, "insert", "/memories/a", insert_line=line, insert_text=new)
    assert answer == "The file /memories/a has been edited."
    assert (mem.files.get("/a").text, mem.files.get("/a").labels) == (after, LABELS)


def test_lines_are_not_inserted_where_there_is_no_line(tool: MemoryTool, mem: Opened) -> None:
    mem.files.put("/a", "a\nb\n")
    for line in (-1, 3, 1.5, "x", None):
        assert refused(tool, "insert", "/memories/a", insert_line=line, insert_text="x") == (
            f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of"
            " lines of the file: [0, 2]"
        )
    for path in ("/memories/nope", "/memories"):
        answer = refused(tool, "insert", path, insert_line=0, insert_text="x")
        assert answer == f"Error: The path {path} does not exist"
    assert mem.files.get("/a").text == "a\nb\n"


# delete, rename


def test_a_file_or_a_whole_directory_is_deleted(tool: MemoryTool, mem: Opened) -> None:
    for path in ("/notes.md", "/d/a", "/d/e/b", "/d-2"):
        mem.files.put(path, "x")
    put_bytes(mem, b"d/\xff/link", b"/etc", 0o120777)
    put_bytes(mem, b"d/empty", b"", whole.DIRECTORY_MODE)
    for path in ("/memories/notes.md", "/memories/d"):
        assert ask(tool, "delete", path) == f"Successfully deleted {path}"
        assert refused(tool, "delete", path) == f"Error: The path {path} does not exist"
    assert ask(tool, "view", "/memories").endswith("1B\t/memories\n1B\t/memories/d-2")


def test_a_directory_that_is_emptied_stays(tool: MemoryTool) -> None:
    ask(tool, "create", "/memories/d/a", file_text="x")
    ask(tool, "delete", "/memories/d/a")
    assert ask(tool, "view", "/memories").endswith("0B\t/memories/d/")
    ask(tool, "create", "/memories/d/a", file_text="x")
    rename(tool, "/memories/d/a", "/memories/b")
    assert "0B\t/memories/d/" in ask(tool, "view", "/memories")


def rename(tool: MemoryTool, old: Any, new: Any) -> Any:
    return tool.call({"command": "rename", "old_path": old, "new_path": new})


def test_a_file_or_a_whole_directory_is_renamed(tool: MemoryTool, mem: Opened) -> None:
    for path in ("/draft.md", "/d/a", "/d/e/b"):
        mem.files.put(path, path, {"by": "me"})
    put_bytes(mem, b"d/\xff/link", b"/etc", 0o120777)
    source = mem.files.get("/draft.md").source.id
    assert rename(tool, "/memories/draft.md", "/memories/x/final.md") == (
        "Successfully renamed /memories/draft.md to /memories/x/final.md"
    )
    moved = mem.files.get("/x/final.md")
    assert (moved.text, moved.labels, moved.source.id) == ("/draft.md", {"by": "me"}, source)
    rename(tool, "/memories/d", "/memories/x/y/d")
    assert [path for path, _ in everything(mem)] == ["/x/final.md", "/x/y/d/a", "/x/y/d/e/b"]
    assert mem.files.list().unlisted == 0  # a link is no file
    rename(tool, "/memories/x/y/d/e", "/memories/e")
    assert "/memories/x/y/d" in ask(tool, "view", "/memories/x")


def test_what_can_not_be_renamed_stays(tool: MemoryTool, mem: Opened) -> None:
    for path in ("/a.md", "/b.md", "/d/c.md", "/e/f.md", f"/d/{'n' * 100}/{'m' * 100}"):
        mem.files.put(path, path)
    before = everything(mem)

    def said(old: str, new: str) -> str:
        with pytest.raises(ToolError) as error:
            rename(tool, f"/memories{old}", f"/memories{new}")
        assert everything(mem) == before
        return str(error.value)

    assert said("/nope", "/x/y") == "Error: The path /memories/nope does not exist"
    for old, new in (("/a.md", "/b.md"), ("/a.md", "/d"), ("/d", "/a.md"), ("/d", "/e")):
        assert said(old, new) == f"Error: The destination /memories{new} already exists"
    assert said("/a.md", "/a.md") == "Error: The destination /memories/a.md already exists"
    assert said("/nope", "/a.md") == "Error: The destination /memories/a.md already exists"
    assert said("/a.md", "") == "Error: The destination /memories already exists"
    assert said("", "/x") == "Cannot rename the /memories directory itself"
    into_itself = said("/d", "/d/x")
    assert into_itself.startswith("Error: Cannot rename /memories/d to /memories/d/x: ")
    assert "lies in what is to be moved" in into_itself
    assert "file stands above" in said("/d", "/a.md/x")
    assert "at most 255 characters" in said("/d", f"/{'l' * 60}")


def test_the_top_stays(tool: MemoryTool, mem: Opened) -> None:
    mem.files.put("/a", "x")
    for path in ("/memories", "/memories/", "//memories"):
        said = refused(tool, "delete", path)
        assert said == "Cannot delete the /memories directory itself"
    with pytest.raises(NotImplementedError):
        tool.clear_all_memory()
    assert mem.files.get("/a").text == "x"


def test_many_calls_at_once_are_all_done(tool: MemoryTool, mem: Opened) -> None:
    ask(tool, "create", "/memories/a", file_text="")

    def insert(number: int) -> str:
        path = f"/memories/{number % 7}/new"
        with pytest.raises(ToolError):
            ask(tool, "view", f"{path}/nope")
        return ask(tool, "insert", "/memories/a", insert_line=0, insert_text=f"{number}")

    with ThreadPoolExecutor(16) as pool:
        answers = set(pool.map(insert, range(300)))
    assert answers == {"The file /memories/a has been edited."}
    assert sorted(map(int, mem.files.get("/a").text.split())) == list(range(300))


# hostile


TRAVERSAL = [
    "/memories/../etc",
    "/memories/../etc/passwd",
    "/memories/a/../../etc",
    "/memories/a/..",
    "/memories/%2e%2e/etc",
    "/memories/%252e%252e%252fetc",
    "/memories/%25252e%25252e%25252fetc",
    "/memories/..%5cetc",
    "/memories/..\\etc",
    "/memories\\..\\etc",
]
OUTSIDE = ["/etc", "/memoriesX/a", "memories/a", "", "/", "/memorie", "/%6demories/a", "\0"]
IMPOSSIBLE: list[Any] = [
    "/memories/a\0b",
    "/memories/a%00b",
    "/memories/a%2500b",
    "/memories/a\nb",
    "/memories/a\ud800",
    "/memories/./a",
    "/memories/" + "x" * 300,
    "/memories/" + "y/" * 300_000,
    "/memories/" + "%25" * 200,
    "/memories/.status",
    "/memories/a/.memories/x",
    None,
    5,
    ["/memories/a"],
]


@pytest.mark.parametrize(
    "path", [*TRAVERSAL, *OUTSIDE, *IMPOSSIBLE], ids=lambda path: repr(path)[:40]
)
def test_a_path_that_can_be_no_file_s_is_refused_before_anything_is_touched(
    tool: MemoryTool, mem: Opened, path: Any
) -> None:
    mem.files.put("/b", "x")
    for command in (
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "str_replace", "path": path, "old_str": "x", "new_str": "y"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "y"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/c"},
        {"command": "rename", "old_path": "/memories/b", "new_path": path},
    ):
        with pytest.raises(ToolError) as error:
            tool.call(command)
        said = str(error.value)
        assert len(said) < 500
        if path in TRAVERSAL and "\\.." not in path:
            assert said == f"Path {path} would escape /memories directory"
        elif path in OUTSIDE:
            assert said == f"Path must start with /memories, got: {path}"
    assert [file.path for file in mem.files.iter()] == ["/b"]
    assert mem.files.get("/b").text == "x"
    assert mem.directories.list().entries[1:] == ()


def test_a_name_with_a_percent_sign_is_that_name(tool: MemoryTool, mem: Opened) -> None:
    for name in ("a%20b.md", "100%.md", "100%25.md", "%zz"):
        ask(tool, "create", f"/memories/{name}", file_text=name)
        assert mem.files.get(f"/{name}").text == name
        assert f"\t/memories/{name}" in ask(tool, "view", "/memories")
        assert ask(tool, "view", f"/memories/{name}").endswith(f"\t{name}")


@pytest.mark.parametrize(
    "text", ["x" * 3_000_000, "a\0b", "\ud800", None, 5, ["x"]], ids=lambda x: repr(x)[:9]
)
def test_what_can_be_no_text_is_not_stored(tool: MemoryTool, mem: Opened, text: Any) -> None:
    mem.files.put("/b", "old\n")
    before = everything(mem)
    refused(tool, "create", "/memories/a", file_text=text)
    if text is not None:  # to leave new_str out takes the old text away
        refused(tool, "str_replace", "/memories/b", old_str="old", new_str=text)
    refused(tool, "str_replace", "/memories/b", old_str=text, new_str="x")
    refused(tool, "insert", "/memories/b", insert_line=0, insert_text=text)
    assert everything(mem) == before


ODD = st.one_of(
    st.none(),
    st.integers(-3, 9),
    st.text(st.characters(exclude_categories=()), max_size=6),
    st.lists(st.integers(-3, 9), max_size=3),
    st.sampled_from(["/memories", "/memories/a", "/memories/d/b", "/memories/d", "x", "view"]),
)
KEYS = ["path", "file_text", "old_str", "new_str", "insert_line", "insert_text", "view_range"]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    command=st.sampled_from(["view", "create", "str_replace", "insert", "delete", "rename"]),
    given_=st.dictionaries(st.sampled_from([*KEYS, "old_path", "new_path"]), ODD),
)
def test_odd_calls_are_answered_or_refused(
    tool: MemoryTool, mem: Opened, command: str, given_: dict[str, Any]
) -> None:
    mem.files.put("/a", "x\ny\n")
    before = everything(mem)
    try:
        answer = tool.call({"command": command, **given_})
    except ToolError as error:
        assert everything(mem) == before
        answer = error.content
    assert isinstance(answer, str)


@pytest.mark.parametrize("given_", [None, 5, [], "view", {}, {"command": "rm"}, {"command": []}])
def test_what_is_no_command_is_told(tool: MemoryTool, given_: Any) -> None:
    with pytest.raises(ToolError, match="`command` is one of view, create, "):
        tool.call(given_)


# the SDK's runner


TURNS: list[Turn] = [
    [{"command": "view", "path": "/memories"}],
    [
        {"command": "create", "path": "/memories/lumen.md", "file_text": "Priya signs.\n"},
        {
            "command": "insert",
            "path": "/memories/lumen.md",
            "insert_line": 1,
            "insert_text": "May.",
        },
        {
            "command": "str_replace",
            "path": "/memories/lumen.md",
            "old_str": "Priya",
            "new_str": "Tom",
        },
    ],
    [{"command": "view", "path": "/memories/lumen.md"}, {"command": "view", "path": "/etc"}],
    [{"command": "rename", "old_path": "/memories/lumen.md", "new_path": "/memories/a/b.md"}],
    [{"command": "delete", "path": "/memories/a/b.md"}, {"command": "delete", "path": "/memories"}],
]
ANSWERS = [
    (HEADER.format("/memories") + "0B\t/memories", False),
    ("File created successfully at: /memories/lumen.md", False),
    ("The file /memories/lumen.md has been edited.", False),
    (f"{EDITED}     1\tTom signs.\n     2\tMay.\n     3\t", False),
    (LINES.format("/memories/lumen.md") + "     1\tTom signs.\n     2\tMay.\n     3\t", False),
    ("Path must start with /memories, got: /etc", True),
    ("Successfully renamed /memories/lumen.md to /memories/a/b.md", False),
    ("Successfully deleted /memories/a/b.md", False),
    ("Cannot delete the /memories directory itself", True),
]
ASKED: dict[str, Any] = {
    "model": "claude-opus-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Who signs?"}],
}


def test_the_sdk_s_runner_has_claude_use_it(tool: MemoryTool, mem: Opened) -> None:
    with (
        Messages(TURNS) as api,
        Anthropic(api_key="none", base_url=api.url, max_retries=0) as client,
    ):
        last = client.beta.messages.tool_runner(tools=[tool], **ASKED).until_done()
        assert last.content[0].type == "text"
        assert api.results() == ANSWERS
        assert api.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert everything(mem) == []


def test_the_sdk_s_asynchronous_runner_has_claude_use_it(mem: Opened) -> None:
    async def run(url: str) -> None:
        async with AsyncAnthropic(api_key="none", base_url=url, max_retries=0) as client:
            runner = client.beta.messages.tool_runner(tools=[AsyncMemoryTool(mem)], **ASKED)
            await runner.until_done()

    with Messages(TURNS) as api:
        asyncio.run(run(api.url))
        assert api.results() == ANSWERS


def test_a_tool_closes_what_it_opened_alone(
    mem: Opened, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MemoryTool(mem) as tool:
        ask(tool, "create", "/memories/a", file_text="x")
    assert mem.files.get("/a").text == "x"
    monkeypatch.setenv("GENIUZ_HOME", str(tmp_path / "home"))
    with MemoryTool() as own:
        assert ask(own, "view", "/memories/a").endswith("1\tx")
    assert "closed" in refused(own, "view", "/memories")
    with pytest.raises(NotFoundError):
        MemoryTool("no such folder")
