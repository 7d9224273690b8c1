"""Claude's memory tool beside the SDK's own for local directories, which is pointed at a mount of
another folder: the same commands are answered in the same words, and leave the same files.

What is not the same, and why, is said in `as_documented` and `different_on_purpose`.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geniuzfs.api import Geniuz
from geniuzfs.api.opened import Opened
from geniuzfs.claude import MemoryTool
from geniuzfs.config import Config
from geniuzfs.ports import SystemClock
from tests.daemon import Daemon, listed
from tests.embed.fake import FakeEmbedder

Command = dict[str, Any]


class Sides:
    """Both tools, each on a folder of its own. The mount's root is called `memories`, as the SDK's
    tool wants it.
    """

    def __init__(self, mount: Daemon, mem: Opened) -> None:
        self.root = mount.root
        self.theirs = BetaLocalFilesystemMemoryTool(str(mount.root.parent))
        self.mem = mem
        self.ours = MemoryTool(mem)

    def empty(self) -> None:
        for name in listed(self.root):
            path = self.root / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        for entry in self.mem.directories.list().entries:
            self.mem.directories.remove(entry.path)

    def their_files(self) -> dict[str, bytes | None]:
        """Path → bytes, None for a directory."""
        found: dict[str, bytes | None] = {}
        for name in listed(self.root):
            top = self.root / name
            for path in [top, *top.rglob("*")]:
                shown = f"/{path.relative_to(self.root)}"
                found[shown] = None if path.is_dir() else path.read_bytes()
        return found

    def our_files(self) -> dict[str, bytes | None]:
        return {
            entry.path: None if entry.is_directory else self.mem.files.get(entry.path).bytes
            for entry in self.mem.directories.list(depth=99).entries
        }

    def ask_theirs(self, command: Command) -> tuple[str, bool] | None:
        """(answer, is it an error); None for an exception that is no ToolError. The directories
        that it makes before it refuses are removed: ours changes nothing then.
        """
        before = self.their_files()
        try:
            return str(self.theirs.call(command)), False
        except (ToolError, OSError) as error:
            for path in sorted(self.their_files().keys() - before.keys(), reverse=True):
                os.rmdir(f"{self.root}{path}")
            return (str(error), True) if isinstance(error, ToolError) else None

    def ask_ours(self, command: Command) -> tuple[str, bool]:
        before = self.our_files()
        try:
            return str(self.ours.call(command)), False
        except ToolError as error:
            assert self.our_files() == before
            return str(error), True


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    directory = tmp_path_factory.mktemp("sides")
    daemon = Daemon(directory)
    daemon.root = directory / "memories"
    environment = {"HOME": str(directory), "GENIUZ_HOME": str(directory / "ours")}
    geniuz = Geniuz(Config.from_environment(environment), SystemClock(), FakeEmbedder())
    with daemon, geniuz.opened(None) as mem:
        yield Sides(daemon, mem)
        assert [each.problems for each in geniuz.check(None, repair=False)] == [[]]
    geniuz.close()


def as_documented(command: Command, said: str) -> str:
    """What the SDK's tool (2.14) says, in the words of the tool's documentation where those are
    others: ours are those.
    """
    path = command.get("path")
    kind = command["command"]
    said = said.replace("hidden items:\n", "hidden items and node_modules:\n", 1)
    if kind == "create" and said == f"File {path} already exists":
        return f"Error: {said}"
    if kind in ("str_replace", "insert"):
        # A directory is to be told as a file that does not exist.
        said = said.replace(
            f"The path {path} is not a file.",
            f"The path {path} does not exist. Please provide a valid path.",
        )
    if kind == "insert":
        said = said.replace(". Please provide a valid path.", "")
        if said.startswith("Invalid `insert_line`"):
            head, _, lines = said.removesuffix(".").partition("within the range [")
            return f"Error: {head}within the range of lines of the file: [{lines}"
    if kind != "view" and said.startswith(("The path ", "The destination ")):
        return f"Error: {said}"
    return said


def without_sizes_of_directories(said: str) -> str:
    """Theirs are what stat(2) says, which depends on the file system and is 0 in the mount; ours
    count the bytes of all files beneath, so that no full directory looks empty.
    """
    header, *lines = said.split("\n")
    if not header.startswith("Here're the files"):
        return said
    shown = [line.split("\t") for line in lines]
    top = shown[0][1]
    return "\n".join(
        [header, *("\t".join(["", p] if p.endswith("/") or p == top else [s, p]) for s, p in shown)]
    )


PATHS = st.sampled_from(
    [
        *("/a", "/b", "/a/b", "/d", "/d/a", "/d/e", "/d/e/b", "/d/e/f/a", "/.h", "/d/.h/a"),
        *("/ü.md", "/a%20b", ""),
    ]
).map("/memories{}".format)
TEXTS = st.lists(st.sampled_from(["a", "b", "ab\n", "\r\n", "\n", "ü", " "]), max_size=6).map(
    "".join
)
OLD = st.sampled_from(["a", "b", "ab", "ab\n", "\n", "\r\n", "ü", "b\nü", "nope"])
LINES = st.integers(-2, 5)
COMMANDS: st.SearchStrategy[Command] = st.one_of(
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": PATHS},
        optional={"view_range": st.lists(LINES, min_size=2, max_size=2)},
    ),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": PATHS, "old_str": OLD, "new_str": TEXTS}
    ),
    st.fixed_dictionaries(
        {
            "command": st.just("insert"),
            "path": PATHS,
            "insert_line": LINES,
            "insert_text": TEXTS,
        }
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(commands=st.lists(COMMANDS, min_size=3, max_size=14))
def test_both_tools_answer_the_same_and_leave_the_same_files(
    sides: Sides, commands: list[Command]
) -> None:
    sides.empty()
    for command in [*commands, {"command": "view", "path": "/memories"}]:
        theirs, (ours, is_error) = sides.ask_theirs(command), sides.ask_ours(command)
        if theirs is None:  # an OSError: Claude is shown its repr()
            assert is_error
            assert ours.startswith("Error: ")
        else:
            assert is_error == theirs[1]
            assert without_sizes_of_directories(ours) == without_sizes_of_directories(
                as_documented(command, theirs[0])
            )
        assert sides.our_files() == sides.their_files()


def put(sides: Sides, path: str, text: str) -> None:
    for tool in (sides.theirs, sides.ours):
        tool.call({"command": "create", "path": f"/memories{path}", "file_text": text})


def view(path: str) -> Command:
    return {"command": "view", "path": path}


def test_what_is_different_on_purpose(sides: Sides) -> None:
    sides.empty()
    put(sides, "/a", "\ufeffaaa\n")
    put(sides, "/node_modules/x", "x")

    def both(command: Command) -> tuple[str, str]:
        theirs = sides.ask_theirs(command)
        assert theirs is not None
        return theirs[0], sides.ask_ours(command)[0]

    # The documentation leaves node_modules out.
    theirs, ours = both(view("/memories"))
    assert "node_modules/x" in theirs
    assert "node_modules/x" not in ours
    # What overlaps itself stands there more than once: which one is meant is open.
    replace = {"command": "str_replace", "path": "/memories/a", "old_str": "aa", "new_str": "b"}
    theirs, ours = both(replace)
    assert theirs.startswith("The memory file has been edited.")
    assert "Multiple occurrences of old_str `aa` in lines: 1, 1." in ours
    # A byte order mark within a text is a stray character.
    both({"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "x"})
    assert sides.their_files()["/a"] == "x\n\ufeffba\n".encode()
    assert sides.our_files()["/a"] == "\ufeffx\naaa\n".encode()
    # What only looks like /memories lies beside it. A path that goes up is refused, wherever it
    # ends.
    assert both(view("/memoriesa"))[1] == "Path must start with /memories, got: /memoriesa"
    assert "would escape" in both(view("/memories/x/../a"))[1]
    # Slashes that are too many are not told back.
    theirs, ours = both(view("/memories//"))
    assert "/memories///a" in theirs
    assert "\t/memories/a" in ours
    # No text, an empty old_str, a NUL, and more than 2,000,000 characters.
    for text in ("a\0", "x" * 2_000_001):
        assert both({"command": "create", "path": "/memories/c", "file_text": text})[1].startswith(
            "Error: a text has "
        )
    put(sides, "/e", "")
    theirs, ours = both(replace | {"path": "/memories/e", "old_str": ""})
    assert theirs.startswith("The memory file has been edited.")
    assert ours.startswith("Error: ")


def test_a_question_is_answered_by_both(sides: Sides) -> None:
    sides.empty()
    put(sides, "/team/lumen.md", "Priya Nair signs the renewal.\n")
    for where in ("", "/team"):
        asked = view(f"/memories{where}/.recall/who signs? mode:words")
        theirs, (ours, _) = sides.ask_theirs(asked), sides.ask_ours(asked)
        assert theirs is not None
        # Ours cites what Claude can view, and says which part of the folder it searched.
        assert ours.replace(" · in /team", "") == theirs[0].replace("[/team", "[/memories/team")


def test_it_cites_and_shows_what_is_written_in_the_mount(mount: Daemon) -> None:
    environment = {"HOME": str(mount.home), "GENIUZ_HOME": str(mount.home)}
    geniuz = Geniuz(Config.from_environment(environment), SystemClock(), FakeEmbedder())
    with geniuz.opened(None) as mem:
        tool = MemoryTool(mem)
        (mount.root / "notes.md").write_text("Tea at four.\r\nMilk first.")
        change = {"old_str": "four", "new_str": "five"}
        tool.call({"command": "str_replace", "path": "/memories/notes.md", **change})
        assert "[/memories/notes.md:1, " in str(tool.call(view("/memories/.recall/tea mode:words")))
        tool.call(
            {"command": "rename", "old_path": "/memories/notes.md", "new_path": "/memories/t"}
        )
        assert mem.files.get("/t").bytes == b"Tea at five.\r\nMilk first."
        assert os.getxattr(mount.root / "t", "user.geniuz.label.channel") == b"claude-memory"
        assert Path(mount.root / "t").read_bytes() == b"Tea at five.\r\nMilk first."
    geniuz.close()
