"""The tools: which there are, what models are told of them, and how a call becomes an answer.

Promises: what goes wrong on purpose is the tool's own answer, `isError` with the error's one line;
anything else goes to the log, with a line that says so to the client. No call raises.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult, TextContent, Tool, ToolAnnotations

from geniuzfs.errors import GeniuzError
from geniuzfs.mcp import earlier, filing, remembering, schemas
from geniuzfs.mcp.door import Door
from geniuzfs.mcp.fence import fenced, one_line
from geniuzfs.mcp.schemas import Arguments, Result

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool."""

    name: str
    says: str
    takes: type[Arguments]
    gives: type[Result]
    does: Callable[[Door, Any], Result]
    """Takes a `takes`."""
    writes: bool = False
    destroys: bool = False
    """It may change or remove what was there."""
    again: bool = False
    """Done twice, it is as if done once."""


ALL: tuple[Offered, ...] = (
    Offered(
        "recall",
        "Find what notes and kept memories say about something, by meaning and by words, best"
        " first. Use it at the start of a conversation, and before answering from scratch."
        " `weak` hits are probably not what you asked for. The last line says what was searched.",
        remembering.Recall,
        remembering.Recalled,
        remembering.recall,
    ),
    Offered(
        "recent",
        "The newest notes and kept memories, newest first.",
        remembering.Recent,
        remembering.Recalled,
        remembering.recent,
    ),
    Offered(
        "open",
        "A kept memory in full, by the address that recall cites.",
        remembering.Named,
        remembering.Memory,
        remembering.open_memory,
    ),
    Offered(
        "thread",
        "All of the thread that a kept memory belongs to, its root first: how a decision came about"
        " and what corrected it.",
        remembering.Named,
        remembering.Recalled,
        remembering.thread,
    ),
    Offered(
        "folders",
        "The user's folders; * marks the one that is meant where you name none.",
        Arguments,
        remembering.Folders,
        remembering.folders,
    ),
    Offered(
        "keep",
        "Keep a memory for later sessions: a decision and why, a preference, a constraint, who"
        " somebody is. It can't be changed or removed afterwards; to correct it, keep another that"
        " continues it.",
        remembering.Keep,
        remembering.Kept,
        remembering.keep,
        writes=True,
    ),
    Offered(
        "read_file",
        "The text of a file, or some of its lines, with the version that edits are based on.",
        filing.ReadFile,
        filing.FileText,
        filing.read_file,
    ),
    Offered(
        "write_file",
        "Have a file hold a text, with the directories above it. What was in it before is replaced:"
        " read it first, and say its version.",
        filing.WriteFile,
        filing.Written,
        filing.write_file,
        writes=True,
        destroys=True,
        again=True,
    ),
    Offered(
        "edit_file",
        "Replace a text that stands in a file exactly once. Nothing else in the file changes, and"
        " no other edit comes between.",
        filing.EditFile,
        filing.Written,
        filing.edit_file,
        writes=True,
        destroys=True,
    ),
    Offered(
        "history",
        "The earlier versions of a file, also of one that was deleted, or the text of one of them.",
        earlier.History,
        earlier.Versions,
        earlier.history,
    ),
    Offered(
        "list_files",
        "The files of a folder in the order of their paths, a page at a time.",
        filing.ListFiles,
        filing.Files,
        filing.list_files,
    ),
    Offered(
        "move_file",
        "Move a file, or all that lies beneath a directory: all or nothing, and never onto"
        " another file.",
        filing.MoveFile,
        filing.Moved,
        filing.move_file,
        writes=True,
        destroys=True,
    ),
    Offered(
        "delete_file",
        "Delete a file. What only it said is not found any more; its history stays.",
        filing.DeleteFile,
        filing.Deleted,
        filing.delete_file,
        writes=True,
        destroys=True,
    ),
)


def offered(door: Door) -> dict[str, Offered]:
    """Those of a server, by name."""
    return {one.name: one for one in ALL if not (door.read_only and one.writes)}


def listed(door: Door) -> Sequence[Tool]:
    """The same, as they are listed."""
    one_folder = door.only is not None
    return [
        Tool(
            name=one.name,
            description=one.says,
            input_schema=schemas.schema(one.takes, one_folder=one_folder),
            output_schema=schemas.schema(one.gives),
            annotations=ToolAnnotations(
                read_only_hint=not one.writes,
                destructive_hint=one.destroys,
                idempotent_hint=one.again or not one.writes,
                open_world_hint=False,
            ),
        )
        for one in offered(door).values()
    ]


def call(door: Door, tool: Offered, given: dict[str, Any] | None) -> CallToolResult:
    """Do it, and answer. Blocks."""
    try:
        asked = schemas.taken(tool.takes, given, one_folder=door.only is not None)
        result = tool.does(door, asked)
        said = result.said()
        return CallToolResult(
            content=[TextContent(text=fenced(said) if result.somebodys else said)],
            structured_content=result.model_dump(mode="json", by_alias=True),
        )
    except GeniuzError as error:
        return failed(one_line(str(error)))
    except Exception:  # noqa: BLE001 - the client is told, and the server goes on
        _log.exception("the tool %s failed", tool.name)
        return failed("it failed for a reason that this server's log, its standard error, tells")


def failed(said: str) -> CallToolResult:
    """A tool's error."""
    return CallToolResult(content=[TextContent(text=said)], is_error=True)
