"""A script as agents are: it writes through the mount, recalls by MCP and edits with the memory
tool, and after each step all doors say the same.
"""

from collections.abc import Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from anthropic import Anthropic
from mcp import Client
from mcp_types import TextContent, TextResourceContents

import geniuzfs
from geniuzfs.api.opened import Opened
from geniuzfs.claude import MemoryTool
from tests.daemon import Daemon, listed, wait_until
from tests.mcp.serving import http_server, over_http, over_stdio
from tests.surface.messages import Messages

HEADER = "Here's the content of /memories/{} with line numbers:\n"


class Note(NamedTuple):
    """What stands in a file, and a question that it answers."""

    text: str
    question: str


@pytest.fixture
def mem(mount: Daemon) -> Iterator[Opened]:
    """The folder, called by this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENIUZ_HOME", str(mount.home))
        with geniuzfs.open() as opened:
            yield opened


def claude(mem: Opened, *commands: dict[str, Any]) -> list[tuple[str, bool]]:
    """What the memory tool answers in a conversation that the SDK's runner leads."""
    with Messages([[command] for command in commands]) as api, MemoryTool(mem) as tool:
        client = Anthropic(api_key="none", base_url=api.url, max_retries=0)
        runner = client.beta.messages.tool_runner(
            model="claude-sonnet-5-5",
            max_tokens=64,
            messages=[{"role": "user", "content": "Tidy up."}],
            tools=[tool],
        )
        runner.until_done()
        return api.results()


async def do(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    held: dict[str, Any] = result.structured_content
    return held


class Doors:
    """All doors of one folder, with what is expected behind them."""

    def __init__(self, mount: Daemon, mem: Opened, clients: list[Client]) -> None:
        self.mount = mount
        self.mem = mem
        self.clients = clients
        self.notes: dict[str, Note] = {}
        self.earlier: dict[str, list[str]] = {}

    async def agree(self) -> None:
        """Bytes, listing, version, recall and history, from every door."""
        for name, note in self.notes.items():
            await in_thread(wait_until, partial(holds, self.mount.root / name, note.text))
        commands = [view("")]
        for name, note in self.notes.items():
            commands += [view(f"/{name}"), view(f"/.recall/{asked(note)}")]
        (listing, *shown), errors = zip(*await in_thread(claude, self.mem, *commands), strict=True)
        assert not any(errors)
        for number, (name, note) in enumerate(self.notes.items()):
            await self._file(f"/{name}", note, shown[2 * number])
            await self._recalled(f"/{name}", note, shown[2 * number + 1])
        await self._listed(listing)
        for name, texts in self.earlier.items():
            await self._history(name, texts)

    async def _file(self, path: str, note: Note, shown: str) -> None:
        read = self.mem.files.get(path)
        assert read.text == note.text
        lines = enumerate(note.text.split("\n"), 1)
        numbered = "\n".join(f"{number:>6}\t{line}" for number, line in lines)
        assert shown == HEADER.format(path[1:]) + numbered
        for client in self.clients:
            file = await do(client, "read_file", path=path)
            there = file["text"], file["version"], file["labels"]
            assert there == (note.text, read.version, dict(read.labels))

    async def _recalled(self, path: str, note: Note, shown: str) -> None:
        """The mount's answer, whose text all others give, cites the file."""
        answer = await in_thread((self.mount.root / ".recall" / asked(note)).read_text)
        assert f"[{path}:" in answer
        assert self.mem.context(asked(note)) == answer
        assert [hit.path for hit in self.mem.recall(asked(note))] == [path]
        assert f"[/memories{path}:" in shown
        for client in self.clients:
            result = await client.call_tool("recall", {"query": asked(note)})
            assert result.structured_content is not None
            assert [one["path"] for one in result.structured_content["hits"]] == [path]
            (content,) = result.content
            assert isinstance(content, TextContent)
            assert answer in content.text

    async def _listed(self, shown: str) -> None:
        expected = sorted(f"/{name}" for name in self.notes)
        page = self.mem.files.list()
        assert [file.path for file in page.files] == expected
        assert await in_thread(walked, self.mount.root) == expected
        there = {line.partition("\t")[2] for line in shown.split("\n")[1:]}
        assert {path for path in there if "." in path} == {f"/memories{path}" for path in expected}
        for client in self.clients:
            listing = await do(client, "list_files")
            assert [(one["path"], one["version"]) for one in listing["files"]] == [
                (file.path, file.version) for file in page.files
            ]
            resources = (await client.list_resources()).resources
            assert [one.name for one in resources] == [f"My memory{path}" for path in expected]
            for resource, path in zip(resources, expected, strict=True):
                (held,) = (await client.read_resource(resource.uri)).contents
                assert isinstance(held, TextResourceContents)
                assert held.text == self.notes[path[1:]].text

    async def _history(self, name: str, texts: list[str]) -> None:
        past = self.mount.root / ".history" / name
        versions = await in_thread(lambda: {one: (past / one).read_bytes() for one in listed(past)})
        assert [held.decode() for _, held in sorted(versions.items())] == texts
        for client in self.clients:
            history = await do(client, "history", path=f"/{name}")
            assert [one["name"] for one in history["versions"]] == sorted(versions)
            for one in sorted(versions):
                held = await do(client, "history", path=f"/{name}", version=one)
                assert held["text"].encode() == versions[one]


def holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def walked(root: Path) -> list[str]:
    """The files in a mount, as paths in the folder."""
    tops = [root / name for name in listed(root)]
    every = [each for top in tops for each in (top, *top.rglob("*")) if each.is_file()]
    return sorted(f"/{path.relative_to(root)}" for path in every)


def asked(note: Note) -> str:
    return f"{note.question} mode:words limit:1"


def view(path: str) -> dict[str, Any]:
    return {"command": "view", "path": f"/memories{path}"}


in_thread: Any = anyio.to_thread.run_sync


@asynccontextmanager
async def clients(mount: Daemon) -> Any:
    """One on each transport."""
    with http_server(mount.home) as (url, token):
        async with over_stdio(mount.home) as first, over_http(url, token) as second:
            yield [first, second]


def test_all_doors_agree_at_every_step_of_an_agents_script(mount: Daemon, mem: Opened) -> None:
    async def script() -> None:
        async with clients(mount) as both:
            stdio, http = both
            doors = Doors(mount, mem, both)

            # It writes notes through the mount.
            (mount.root / "team").mkdir()
            plan = "The launch of Lumen is in May.\nPriya Nair signs the renewal.\n"
            (mount.root / "team/lumen.md").write_text(plan)
            doors.notes["team/lumen.md"] = Note(plan, "who signs the renewal")
            await doors.agree()
            todo = "Call the plumber about the boiler.\n"
            (mount.root / "todo.md").write_text(todo)
            doors.notes["todo.md"] = Note(todo, "plumber")
            await doors.agree()

            # It recalls by MCP, and edits what it has found with the memory tool.
            found = await do(stdio, "recall", query="who signs the renewal", mode="words")
            path = found["hits"][0]["path"]
            edited = plan.replace("Priya Nair", "Tom Ibsen")
            answers = await in_thread(
                partial(
                    claude,
                    mem,
                    {
                        "command": "str_replace",
                        "path": f"/memories{path}",
                        "old_str": "Priya Nair",
                        "new_str": "Tom Ibsen",
                    },
                    {"command": "create", "path": "/memories/log.md", "file_text": "Tidied.\n"},
                )
            )
            assert [is_error for _, is_error in answers] == [False, False]
            doors.notes["team/lumen.md"] = Note(edited, "Ibsen")
            doors.notes["log.md"] = Note("Tidied.\n", "tidied")
            doors.earlier["team/lumen.md"] = [plan]
            await doors.agree()
            assert dict(mem.files.get(path).labels) == {"channel": "claude-memory"}

            # It edits by MCP, with the version that the other server told.
            version = (await do(stdio, "read_file", path=path))["version"]
            again = edited.replace("May", "June")
            args = {"path": path, "old": "May", "new": "June", "if_version": version}
            await do(http, "edit_file", **args)
            refused = await stdio.call_tool("edit_file", {**args, "old": "June"})
            assert refused.is_error
            doors.notes["team/lumen.md"] = Note(again, "june")
            doors.earlier["team/lumen.md"] = [plan, edited]
            await doors.agree()

            # It moves, deletes and keeps.
            await in_thread(
                claude,
                mem,
                {
                    "command": "rename",
                    "old_path": "/memories/todo.md",
                    "new_path": "/memories/done/todo.md",
                },
            )
            doors.notes["done/todo.md"] = doors.notes.pop("todo.md")
            await doors.agree()
            await do(http, "delete_file", path="/log.md")
            del doors.notes["log.md"]
            await doors.agree()
            kept = await do(stdio, "keep", text="Tom Ibsen prefers calls before noon.")
            assert mem.open_memory(kept["address"]).memory.content.startswith("Tom Ibsen prefers")
            (mount.root / "done/todo.md").write_text("Nothing is left to do.\n")
            doors.notes["done/todo.md"] = Note("Nothing is left to do.\n", "nothing left")
            doors.earlier["done/todo.md"] = [todo]
            await doors.agree()

    anyio.run(script)
