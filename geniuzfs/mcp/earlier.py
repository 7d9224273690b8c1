"""The tool about what files were before.

Thin: api.histories knows the versions and what they hold. Nothing is brought back here: an agent
reads what a file was and writes it, as any other text, with the version of what is there now.
"""

from datetime import UTC, datetime

from pydantic import Field

from geniuzfs.api import requests
from geniuzfs.api.filed import characters
from geniuzfs.api.histories import Named
from geniuzfs.errors import NotText
from geniuzfs.mcp.door import Door
from geniuzfs.mcp.fence import encodable
from geniuzfs.mcp.filing import At
from geniuzfs.mcp.schemas import Part, Result


class History(At):
    version: str | None = Field(
        None, description="The `name` of a version, whose text you want, or its beginning."
    )


class Earlier(Part):
    name: str
    written_at: str
    replaced_at: str
    bytes: int
    writer: str
    """The program that had written it; "" where that is not known."""
    conflict: bool
    """It was replaced by somebody who had not read it."""


class Versions(Result):
    path: str
    versions: list[Earlier]
    """The oldest first; the one that was asked for, where one was."""
    text: str | None
    """Of that one."""

    def said(self) -> str:
        if self.text is not None:
            return self.text
        return "\n".join(
            f"{one.name}  {one.bytes} bytes, written {one.written_at}"
            f"{' by ' * bool(one.writer)}{one.writer}{', in conflict' * one.conflict}"
            for one in self.versions
        )


def history(door: Door, given: History) -> Versions:
    path, name = requests.path(given.path), door.folder(given).name
    histories = door.geniuz.histories
    known, text = histories.of(name, path, door.here), None
    if given.version is not None:
        (found, held), *_ = histories.texts(name, path, (given.version,), door.here)
        known = [one for one in known if one.name == found]
        text = _text(found, held)
    return Versions(path=path, versions=[_earlier(one) for one in known], text=text)


def _text(name: str, held: bytes) -> str:
    if characters(held, len(held)) is None:
        raise NotText(f"what the file was at {name} is not text")
    return held.decode()


def _earlier(one: Named) -> Earlier:
    version = one.version
    return Earlier(
        name=encodable(one.name),
        written_at=_moment(version.mtime_ns),
        replaced_at=_moment(version.replaced_ns),
        bytes=version.size,
        writer=encodable(version.writer),
        conflict=version.blind,
    )


def _moment(ns: int) -> str:
    return datetime.fromtimestamp(ns // 10**9, UTC).isoformat()
