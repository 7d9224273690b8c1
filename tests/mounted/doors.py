"""A program that edits a file through one door, a step at a time or all at once:
`python -m tests.mounted.doors DOOR ROOT`, with orders on standard input, one JSON list a line, and
an answer to each on standard output.

`["see", TEXT]`: read /shared.md, and wait until it is TEXT. `["change", OLD, NEW]`: have line OLD
of what was seen be NEW: "done" or "refused". `["count", NAME, TIMES]`: raise NAME's number so
often.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from anthropic.lib.tools import ToolError

import geniuzfs
from geniuzfs.api.opened import Opened
from geniuzfs.claude import MemoryTool
from tests.daemon import wait_until

NAME = "shared.md"


class Door(Protocol):
    def see(self) -> str:
        """The file's text, read through this door."""

    def change(self, old: str, new: str) -> bool:
        """Whether it was done, and not refused for what others have done since `see`."""

    def count(self, name: str, number: int) -> None:
        """The number's next step, from `number`, while others write."""

    def end(self) -> None:
        """Give back what it holds."""


class Mounted(Door):
    """An editor on the mount. A file system knows no versions: what it saves is what it read when
    it did, with the change. What is counted gets a file of its own, put in place as editors do.
    """

    def __init__(self, root: Path, _mem: Opened) -> None:
        self._root = root

    def see(self) -> str:
        self._seen = (self._root / NAME).read_text()
        return self._seen

    def change(self, old: str, new: str) -> bool:
        self._seen = self._seen.replace(old, new)
        (self._root / NAME).write_text(self._seen)
        return True

    def count(self, name: str, number: int) -> None:
        temporary = self._root / f"{name}.tmp"
        temporary.write_text(f"{name}: {number + 1};\n")
        temporary.rename(self._root / f"{name}.md")


class Called(Door):
    """A program that calls, with versions."""

    def __init__(self, _root: Path, mem: Opened) -> None:
        self._files = mem.files

    def see(self) -> str:
        self._seen = self._files.get(f"/{NAME}")
        return self._seen.text

    def change(self, old: str, new: str) -> bool:
        text = self._seen.text.replace(old, new)
        try:
            self._files.put(f"/{NAME}", text, if_version=self._seen.version)
        except geniuzfs.ConflictError:
            return False
        return True

    def count(self, name: str, number: int) -> None:
        old, new = f"{name}: {number};", f"{name}: {number + 1};"
        self._files.edit(f"/{NAME}", lambda text: text.replace(old, new))


class Claude(Door):
    """A session of Claude with the memory tool."""

    def __init__(self, _root: Path, mem: Opened) -> None:
        self._tool = MemoryTool(mem)

    def see(self) -> str:
        shown = str(self._tool.call({"command": "view", "path": f"/memories/{NAME}"}))
        return "\n".join(line.partition("\t")[2] for line in shown.split("\n")[1:])

    def change(self, old: str, new: str) -> bool:
        command = {"command": "str_replace", "path": f"/memories/{NAME}"}
        try:
            self._tool.call({**command, "old_str": old, "new_str": new})
        except ToolError:
            return False
        return True

    def count(self, name: str, number: int) -> None:
        assert self.change(f"{name}: {number};", f"{name}: {number + 1};")


class Agent(Door):
    """An agent with a server of its own, that says which version it has read."""

    def __init__(self, _root: Path, _mem: Opened) -> None:
        from tests.mcp.serving import Spoken

        self._server = Spoken(Path(os.environ["GENIUZ_HOME"]))
        self._server.__enter__()

    def see(self) -> str:
        self._seen = self._server.call("read_file", path=f"/{NAME}")["structuredContent"]
        return str(self._seen["text"])

    def change(self, old: str, new: str) -> bool:
        return self._edited(old, new, if_version=self._seen["version"])

    def count(self, name: str, number: int) -> None:
        assert self._edited(f"{name}: {number};", f"{name}: {number + 1};")

    def end(self) -> None:
        self._server.__exit__(None)

    def _edited(self, old: str, new: str, **supposed: str) -> bool:
        called = self._server.call("edit_file", path=f"/{NAME}", old=old, new=new, **supposed)
        return not called["isError"]


DOORS: dict[str, Callable[[Path, Opened], Door]] = {
    "mount": Mounted,
    "api": Called,
    "claude": Claude,
    "mcp": Agent,
}
"""A further door is a further entry: test_doors lets each have a process."""


def main(kind: str, root: str) -> None:
    with geniuzfs.open() as mem:
        door = DOORS[kind](Path(root), mem)

        def sees(text: str) -> Callable[[], bool]:
            return lambda: door.see() == text

        for line in sys.stdin:
            match json.loads(line):
                case ["see", text]:
                    wait_until(sees(text))
                    answer = "seen"
                case ["change", old, new]:
                    answer = "done" if door.change(old, new) else "refused"
                case ["count", name, times]:
                    for number in range(times):
                        door.count(name, number)
                    answer = "counted"
                case order:
                    raise ValueError(order)
            sys.stdout.write(f"{answer}\n")
            sys.stdout.flush()
        door.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
