"""The tools about files: read, write, edit, list, move, delete.

Thin: api.files says what a path, a text and a version may be, and what is refused. What is here
alone is how a part of a file is named: by its lines, or, for an edit, by a text that stands in it
once.
"""

from collections.abc import Iterable
from typing import ClassVar

from pydantic import Field

from geniuzfs.api.edits import replaced
from geniuzfs.api.filed import Put
from geniuzfs.api.requests import PAGE, PAGE_MAX
from geniuzfs.errors import UsageError
from geniuzfs.mcp.door import Door
from geniuzfs.mcp.fence import encodable
from geniuzfs.mcp.schemas import InFolder, Part, Result

_PATH = "From the folder's top: /notes.md, /drafts/plan.md."
_VERSION = (
    "The version that you have read: where the file is another by now, nothing is changed and the"
    " answer is an error."
)


class At(InFolder):
    path: str = Field(description=_PATH)


class ReadFile(At):
    first_line: int | None = Field(None, description="From this line on, counted from 1.", ge=1)
    last_line: int | None = Field(None, description="Up to this line and with it.", ge=1)


class WriteFile(At):
    text: str = Field(description="All that the file is to hold. Up to 2,000,000 characters.")
    labels: dict[str, str] | None = Field(
        None, description="Replace the file's labels; {} removes them, left out they stay."
    )
    if_version: str | None = Field(
        None, description=f'{_VERSION} "": only if there is no such file.'
    )


class EditFile(At):
    old: str = Field(description="A text that stands in the file exactly once.", min_length=1)
    new: str = Field(description="What is to stand there instead.")
    if_version: str | None = Field(None, description=_VERSION)


class ListFiles(InFolder):
    prefix: str = Field("/", description="What paths begin with, as it stands: /, /drafts/, /dra.")
    limit: int = Field(PAGE, description="Files at most.", ge=1, le=PAGE_MAX)
    cursor: str | None = Field(None, description="What `next` of the page before says.")


class MoveFile(InFolder):
    path: str = Field(description=f"{_PATH} With / at the end: all that lies beneath.")
    to: str = Field(description="Where to; ends with / if `path` does. Nothing may be there.")


class DeleteFile(At):
    if_version: str | None = Field(None, description=_VERSION)


class FileText(Result):
    path: str
    text: str
    first_line: int
    lines: int
    """In the whole file."""
    size: int
    """Characters, in the whole file."""
    version: str
    updated_at: str
    labels: dict[str, str]

    def said(self) -> str:
        return self.text


class Written(Result):
    somebodys: ClassVar[bool] = False

    path: str
    size: int
    version: str
    updated_at: str
    created: bool

    def said(self) -> str:
        did = "made" if self.created else "changed"
        return f"{did} {self.path}: {self.size} characters, version {self.version}"


class Listed(Part):
    path: str
    size: int | None
    """Characters; none where it is no text."""
    version: str
    updated_at: str
    labels: dict[str, str]


class Files(Result):
    files: list[Listed]
    total: int
    next: str | None
    unlisted: int

    def said(self) -> str:
        lines = [
            f"{one.path}  {'no text' if one.size is None else one.size}  {one.updated_at}"
            for one in self.files
        ]
        more = f", go on with the cursor {self.next}" if self.next is not None else ""
        unlisted = f", {self.unlisted} with names that can't be asked for" if self.unlisted else ""
        return "\n".join([*lines, f"{len(lines)} of {self.total} files{unlisted}{more}"])


class Moved(Result):
    somebodys: ClassVar[bool] = False

    moved: int

    def said(self) -> str:
        return f"moved {self.moved} {'file' if self.moved == 1 else 'files'}"


class Deleted(Result):
    somebodys: ClassVar[bool] = False

    deleted: int

    def said(self) -> str:
        return f"deleted {self.deleted} file"


def read_file(door: Door, given: ReadFile) -> FileText:
    read = door.opened(given).files.get(given.path)
    lines = read.text.split("\n")
    count = len(lines) - (not lines[-1])  # what a newline ends is no further line
    first, last = given.first_line or 1, given.last_line or len(lines)
    if first > max(count, 1) or last < first:
        raise UsageError(f"the file has {count} lines: there is nothing from {first} to {last}")
    shown = "\n".join(lines[first - 1 : last]) + "\n" * (last < len(lines))
    return FileText(
        path=read.path,
        text=shown,
        first_line=first,
        lines=count,
        size=read.size or 0,
        version=read.version,
        updated_at=read.updated_at.isoformat(),
        labels=_labels(read.labels.items()),
    )


def write_file(door: Door, given: WriteFile) -> Written:
    files = door.opened(given).files
    return _written(files.put(given.path, given.text, given.labels, if_version=given.if_version))


def edit_file(door: Door, given: EditFile) -> Written:
    def edit(text: str) -> str:
        return replaced(text, given.old, given.new)

    return _written(door.opened(given).files.edit(given.path, edit, if_version=given.if_version))


def list_files(door: Door, given: ListFiles) -> Files:
    page = door.opened(given).files.list(given.prefix, given.limit, given.cursor)
    return Files(
        files=[
            Listed(
                path=one.path,
                size=one.size,
                version=one.version,
                updated_at=one.updated_at.isoformat(),
                labels=_labels(one.labels.items()),
            )
            for one in page.files
        ],
        total=page.total,
        next=page.next,
        unlisted=page.unlisted,
    )


def move_file(door: Door, given: MoveFile) -> Moved:
    return Moved(moved=door.opened(given).files.move(given.path, given.to))


def delete_file(door: Door, given: DeleteFile) -> Deleted:
    """What an agent deletes can be brought back: its history stays."""
    files = door.opened(given).files
    done = files.delete(given.path, if_version=given.if_version, keeps_history=True)
    return Deleted(deleted=done)


def _written(put: Put) -> Written:
    return Written(
        path=put.path,
        size=put.size,
        version=put.version,
        updated_at=put.updated_at.isoformat(),
        created=put.created,
    )


def _labels(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {encodable(key): encodable(value) for key, value in labels}
