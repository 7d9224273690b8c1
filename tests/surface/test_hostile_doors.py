"""Each door that is called refuses the same, stores nothing then, and keeps nothing of it."""

import gc
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from anthropic.lib.tools import ToolError

from geniuzfs import GeniuzError
from geniuzfs.api import Geniuz
from geniuzfs.api.opened import Opened
from geniuzfs.claude import MemoryTool
from geniuzfs.mcp import tools
from geniuzfs.mcp.door import Door
from tests.mcp.serving import resident_mb

Write = Callable[[Any, Any], str | None]
"""Have the file at a path hold a text, or refuse it: what is said then, else None."""

THERE = "/there"
LARGE = "x" * 3_000_000
THREADS = 16


def by_api(mem: Opened, geniuz: Geniuz) -> Write:
    def put(path: Any, text: Any) -> str | None:
        try:
            mem.files.put(path, text)
        except GeniuzError as error:
            return str(error)
        return None

    return put


def by_edit(mem: Opened, geniuz: Geniuz) -> Write:
    """The text of a file that is there, or its way to another path."""

    def edit(path: Any, text: Any) -> str | None:
        try:
            if path == "/n":
                mem.files.edit(THERE, lambda _: text)
            else:
                mem.files.move(THERE, path)
        except GeniuzError as error:
            return str(error)
        return None

    return edit


def by_claude(command: str) -> Callable[[Opened, Geniuz], Write]:
    def made(mem: Opened, geniuz: Geniuz) -> Write:
        tool = MemoryTool(mem)

        def call(path: Any, text: Any) -> str | None:
            shown = f"/memories{path}" if isinstance(path, str) else path
            given = {"file_text": text, "new_str": text, "insert_text": text, "path": shown}
            if path == "/n" and command != "create":
                given["path"] = f"/memories{THERE}"
            try:
                tool.call({"command": command, "old_str": "held", "insert_line": 0, **given})
            except ToolError as error:
                return str(error)
            return None

        return call

    return made


def by_mcp(name: str) -> Callable[[Opened, Geniuz], Write]:
    def made(mem: Opened, geniuz: Geniuz) -> Write:
        door = Door(geniuz)
        tool = tools.offered(door)[name]

        def call(path: Any, text: Any) -> str | None:
            given = {"path": path, "text": text}
            if name == "edit_file":
                given = {"path": THERE if path == "/n" else path, "old": "held", "new": text}
            answer = tools.call(door, tool, given)
            return cast("Any", answer.content[0]).text if answer.is_error else None

        return call

    return made


DOORS: dict[str, Callable[[Opened, Geniuz], Write]] = {
    "put": by_api,
    "edit and move": by_edit,
    "create": by_claude("create"),
    "str_replace": by_claude("str_replace"),
    "insert": by_claude("insert"),
    "write_file": by_mcp("write_file"),
    "edit_file": by_mcp("edit_file"),
}

HOSTILE: tuple[tuple[Any, Any], ...] = (
    ("/" + "a" * 299, "x"),
    ("/" + "ü" * 200, "x"),
    ("/d/../../etc/passwd", "x"),
    ("/./n", "x"),
    ("/a\0b", "x"),
    ("/a\\..\\b", "x"),
    ("/a\nb", "x"),
    ("/\ud800", "x"),
    ("/.recall/n", "x"),
    (None, "x"),
    (5, "x"),
    (["/n"], "x"),
    ("/n", LARGE),
    ("/n", "a\0b"),
    ("/n", "\ud800"),
    ("/n", 5),
    ("/n", ["x"]),
)


@pytest.fixture(params=DOORS)
def write(request: pytest.FixtureRequest, mem: Opened, geniuz: Geniuz) -> Write:
    mem.files.put(THERE, "what is held")
    return DOORS[request.param](mem, geniuz)


@pytest.mark.parametrize(("path", "text"), HOSTILE, ids=range(len(HOSTILE)))
def test_what_breaks_a_rule_is_refused_in_short_and_stores_nothing(
    geniuz: Geniuz, write: Write, path: Any, text: Any
) -> None:
    before = [one.counts for one in geniuz.status()]
    said = write(path, text)
    assert said is not None
    assert len(said.encode()) < 1_200
    assert "Traceback" not in said
    assert str(geniuz.config.home) not in said
    assert [one.counts for one in geniuz.status()] == before
    assert [one.problems for one in geniuz.check(None, repair=False)] == [[]]


def test_a_thousand_refused_calls_at_once_leave_nothing_behind(
    geniuz: Geniuz, write: Write
) -> None:
    """Kept, the texts alone would be 180 MB."""
    for path, text in HOSTILE:
        write(path, text)  # what is imported and opened once
    before, mb, open_ = [one.counts for one in geniuz.status()], resident(), descriptors()
    with ThreadPoolExecutor(THREADS) as pool:
        said = list(pool.map(lambda n: write(*HOSTILE[n % len(HOSTILE)]), range(1_000)))
    assert None not in said
    # SQLite keeps those of a database that was closed while it is open elsewhere, for who opens it.
    assert descriptors() <= open_ + 2 * THREADS
    assert resident() < mb + 100
    assert [one.counts for one in geniuz.status()] == before
    assert [one.problems for one in geniuz.check(None, repair=False)] == [[]]


def resident() -> float:
    gc.collect()
    return resident_mb(os.getpid())


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
