"""What clients offer people besides tools: files and questions as resources, and a prompt.

Hides: URIs: `geniuz://13625F6B/drafts/plan.md` names a file by the beginning of its folder's ID and
its path, `recall://what%20is%20due` a question. Promises: an answer that comes this way is fenced
as the tool's is. A file comes as it is, as text where it is text: whoever picks it has seen its
name, and means its exact text.
"""

import re
from base64 import b64encode
from urllib.parse import quote, unquote

from mcp_types import (
    BlobResourceContents,
    GetPromptResult,
    ListResourcesResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from geniuzfs.addresses import SHORT
from geniuzfs.api import Folder
from geniuzfs.api.filed import File
from geniuzfs.errors import NotFound, NotText, UsageError
from geniuzfs.mcp import remembering
from geniuzfs.mcp.door import Door
from geniuzfs.mcp.fence import fenced
from geniuzfs.mcp.schemas import Arguments

_RECALL = "recall://"
_FILE = re.compile(r"geniuz://([0-9A-Fa-f]{8}[0-9A-Fa-f-]*)(/.*)", re.DOTALL)
_CURSOR = re.compile(r"([0-9A-F]{8}[0-9A-F-]*):(.*)", re.DOTALL)

TEMPLATES = (
    ResourceTemplate(
        name="recall",
        uri_template=_RECALL + "{query}",
        description="What notes and kept memories say about a question, and where they say it.",
        mime_type="text/plain",
    ),
    ResourceTemplate(
        name="file",
        uri_template="geniuz://{folder}{+path}",
        description="A file: the first 8 characters of its folder's ID, and its path.",
    ),
)

PROMPTS = (
    Prompt(
        name="recall",
        description="Begin with what your notes and kept memories say about something.",
        arguments=[PromptArgument(name="question", description="What it is about.", required=True)],
    ),
)


def listed(door: Door, cursor: str | None) -> ListResourcesResult:
    """A page of the files of all folders that the door has. Raises UsageError for the cursor."""
    folders = sorted(door.folders(), key=lambda one: one.identity.id)
    after, path = _after(cursor)
    for number, folder in enumerate(folders):
        id_ = folder.identity.id.upper()
        if id_ < after:
            continue
        page = door.held(folder).files.list(cursor=path if id_ == after else None)
        going_on = None
        if page.next is not None:
            going_on = f"{id_}:{page.next}"
        elif number + 1 < len(folders):
            going_on = f"{folders[number + 1].identity.id.upper()}:"
        return ListResourcesResult(
            resources=[_resource(folder, file) for file in page.files], next_cursor=going_on
        )
    return ListResourcesResult(resources=[])


def read(door: Door, uri: str) -> ReadResourceResult:
    """What a URI names. Raises NotFound, and UsageError for what makes no sense."""
    if uri.startswith(_RECALL):
        text = fenced(_answer(door, _decoded(uri.removeprefix(_RECALL))))
        return ReadResourceResult(
            contents=[TextResourceContents(uri=uri, mime_type="text/plain", text=text)]
        )
    named = _FILE.fullmatch(uri)
    if named is None:
        raise NotFound("no resource has this URI")
    file = door.held(_folder(door, named[1])).files.get(_decoded(named[2]))
    try:
        return ReadResourceResult(
            contents=[TextResourceContents(uri=uri, mime_type=_kind(file.path), text=file.text)]
        )
    except NotText:
        blob = b64encode(file.bytes).decode()
        return ReadResourceResult(contents=[BlobResourceContents(uri=uri, blob=blob)])


def prompt(door: Door, name: str, given: dict[str, str] | None) -> GetPromptResult:
    """A prompt, filled in. Raises UsageError."""
    if name != "recall":
        raise UsageError("there is no prompt of that name")
    if not given or given.keys() != {"question"}:
        raise UsageError("this prompt takes a question, and nothing else")
    question = given["question"]
    text = f"{question}\n\nMy notes say about this:\n\n{fenced(_answer(door, question))}"
    return GetPromptResult(
        description="A question, and what notes and memories say about it.",
        messages=[PromptMessage(role="user", content=TextContent(text=text))],
    )


def _answer(door: Door, question: str) -> str:
    return remembering.ask(door, Arguments(), question, []).said()


def _after(cursor: str | None) -> tuple[str, str | None]:
    """Where a page begins: a folder's ID, and after which path in it."""
    if cursor is None:
        return "", None
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise UsageError("the cursor is what nextCursor of the page before says")
    return found[1], found[2] or None


def _resource(folder: Folder, file: File) -> Resource:
    uri = f"geniuz://{folder.identity.id[:SHORT].upper()}{quote(file.path)}"
    return Resource(
        uri=uri,
        name=f"{folder.name}{file.path}",
        mime_type=None if file.size is None else _kind(file.path),
    )


def _folder(door: Door, id_: str) -> Folder:
    for folder in door.folders():
        if folder.identity.id.upper().startswith(id_.upper()):
            return folder
    raise NotFound("no folder has this ID")


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise UsageError("the URI is no UTF-8") from error


def _kind(path: str) -> str:
    return "text/markdown" if path.endswith((".md", ".markdown")) else "text/plain"
