"""Claude's memory tool on a folder: what Claude writes beneath /memories are the folder's files.

Hides: the sentences that Claude knows this tool to answer with; they are those of its public
documentation, and where it has none, of the SDK's own tool for local directories. Promises: a
path is refused before anything is touched when it, or what percent-decoding makes of it, is no
path of a file; what is refused changes nothing; an edit is one transaction, so of two sessions'
edits none is lost. Refuses: the top itself, and `clear_all_memory`: the folder's other notes lie
there too. Needs the extra `anthropic`.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaFunctionToolResultType,
    ToolError,
)
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from geniuzfs import runtime
from geniuzfs.api.directories import TOP
from geniuzfs.api.edits import replaced
from geniuzfs.api.opened import Opened
from geniuzfs.claude import sentences
from geniuzfs.claude.places import ROOT, path_of, place_of
from geniuzfs.errors import (
    AlreadyExists,
    BeneathFile,
    Busy,
    Changed,
    Conflict,
    NotFound,
    NotOnce,
    NotText,
    TreeError,
    UsageError,
)

LABELS = {"channel": "claude-memory"}
"""What each file bears that was written here."""

_RECALL = "/.recall/"
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")


@contextmanager
def _told() -> Iterator[None]:
    """What Claude can do something about becomes the tool's answer. What it can't (a full disk, a
    damaged database) stays an exception, which the SDK's runner logs.
    """
    try:
        yield
    except (UsageError, Conflict, TreeError, NotFound, Busy) as error:
        raise ToolError(f"Error: {error}") from error


class MemoryTool(BetaAbstractMemoryTool):
    """`client.beta.messages.tool_runner(..., tools=[MemoryTool()])`. May be used from several
    threads, while the folder is mounted and while other sessions write.
    """

    def __init__(
        self,
        folder: Opened | str | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        """`folder`: what `geniuzfs.open` gave, which stays the caller's to close; or the name of
        one, None as there. Raises what that raises.
        """
        super().__init__(cache_control=cache_control)
        self._owns = not isinstance(folder, Opened)
        self._mem = folder if isinstance(folder, Opened) else runtime.opened(folder)

    def call(self, input: object) -> BetaFunctionToolResultType:
        """Do what Claude asks. Raises ToolError, whose text is the answer then."""
        command = input.get("command") if isinstance(input, dict) else None
        if command not in COMMANDS:
            raise ToolError(f"Error: `command` is one of {', '.join(COMMANDS)}")
        try:
            return super().call(input)
        except ToolError as error:  # may repeat what Claude has sent, and can't be sent back
            raise ToolError(str(error).encode("utf-8", "backslashreplace").decode()) from error

    @_told()
    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A directory two levels deep, a file's lines, or (`/memories/.recall/<question>`) what the
        folder knows.
        """
        asked: object = command.path
        if isinstance(asked, str) and _RECALL in asked:
            return sentences.numbered(asked, self._recalled(asked), command.view_range)
        path = path_of(asked)
        try:
            listing = self._mem.directories.list(place_of(path), 2)
        except NotFound:
            return sentences.numbered(path, self._text(path), command.view_range)
        return sentences.listed(path, listing)

    @_told()
    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """A new file, with the directories above it."""
        path = path_of(command.path)
        text = _given("file_text", command.file_text)
        if path == ROOT:
            raise ToolError(f"Error: File {path} already exists")
        try:
            self._mem.files.put(place_of(path), text, LABELS, if_version="")
        except BeneathFile as error:
            raise ToolError(f"Error: A file stands above {path}") from error
        except (AlreadyExists, Changed) as error:
            raise ToolError(f"Error: File {path} already exists") from error
        return f"File created successfully at: {path}"

    @_told()
    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Put another text in place of one that stands in the file exactly once."""
        path = path_of(command.path)
        old, new = _given("old_str", command.old_str), _given("new_str", command.new_str or "")
        edited = ""

        def change(text: str) -> str:
            nonlocal edited
            after = replaced(text, old, new)
            edited = sentences.around(after, text.count("\n", 0, text.find(old)))
            return after

        try:
            self._edit(path, change)
        except NotFound as error:
            raise ToolError(f"Error: {sentences.missing(path)}") from error
        except NotOnce as error:
            raise ToolError(sentences.not_once(path, old, error.lines)) from error
        return (
            "The memory file has been edited. Here is the snippet showing the change"
            f" (with line numbers):\n{edited}"
        )

    @_told()
    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Put lines after a line of the file, 0: before all."""
        path = path_of(command.path)
        line, new = command.insert_line, _given("insert_text", command.insert_text)
        try:
            self._edit(path, lambda text: _inserted(text, line, new))
        except NotFound as error:
            raise ToolError(f"Error: The path {path} does not exist") from error
        return f"The file {path} has been edited."

    @_told()
    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Remove a file, or a directory with all beneath; the history stays."""
        path = path_of(command.path)
        if path == ROOT:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        try:
            self._mem.directories.remove(place_of(path))
        except NotFound as error:
            raise ToolError(f"Error: The path {path} does not exist") from error
        return f"Successfully deleted {path}"

    @_told()
    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Give a file or directory another path, which must be free."""
        old, new = path_of(command.old_path), path_of(command.new_path)
        if old == ROOT:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        if new == ROOT:
            raise ToolError(f"Error: The destination {new} already exists")
        try:
            self._mem.directories.rename(place_of(old), place_of(new))
        except NotFound as error:
            raise ToolError(f"Error: The path {old} does not exist") from error
        except BeneathFile as error:
            raise ToolError(f"Error: A file stands above {new}") from error
        except AlreadyExists as error:
            raise ToolError(f"Error: The destination {new} already exists") from error
        except UsageError as error:
            raise ToolError(f"Error: Cannot rename {old} to {new}: {error}") from error
        return f"Successfully renamed {old} to {new}"

    def close(self) -> None:
        """Give the folder back, where it was opened here."""
        if self._owns:
            self._mem.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _recalled(self, path: str) -> str:
        directory, _, question = path.partition(_RECALL)
        place = place_of(path_of(directory))
        within = None if place == TOP else f"{place}/"
        return self._mem.context(question, path=within, prefix=ROOT)

    def _text(self, path: str) -> str:
        try:
            return self._mem.files.get(place_of(path)).text
        except NotFound as error:
            raise ToolError(sentences.missing(path)) from error
        except NotText as error:
            raise ToolError(sentences.not_text(path)) from error

    def _edit(self, path: str, change: Callable[[str], str]) -> None:
        if path == ROOT:
            raise NotFound(f"{path} is no file")
        try:
            self._mem.files.edit(place_of(path), change, LABELS)
        except NotText as error:
            raise ToolError(sentences.not_text(path)) from error


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for AsyncAnthropic: each command in a thread."""

    def __init__(
        self,
        folder: Opened | str | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = MemoryTool(folder)

    async def call(self, input: object) -> BetaFunctionToolResultType:
        return await asyncio.to_thread(self._tool.call, input)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await asyncio.to_thread(self._tool.rename, command)

    def close(self) -> None:
        self._tool.close()


def _given(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ToolError(f"Error: `{name}` is missing, or no string")
    return value


def _inserted(text: str, line: object, new: str) -> str:
    """The text with lines after line `line`. All end with a newline then; a byte order mark stays
    where it is.
    """
    mark = "\ufeff" if line == 0 and text.startswith("\ufeff") else ""
    lines = text.removeprefix(mark).split("\n")
    if not lines[-1]:
        lines.pop()
    if not isinstance(line, int) or not 0 <= line <= len(lines):
        raise ToolError(
            f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of"
            f" lines of the file: [0, {len(lines)}]"
        )
    lines.insert(line, new.rstrip("\n"))
    return mark + "\n".join(lines).removesuffix("\n") + "\n"
