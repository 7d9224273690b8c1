"""The tool about what files were before.

Thin: api.files knows the versions and what they hold. Nothing is brought back here: an agent
reads what a file was and writes it, as any other text, with the version of what is there now.
"""

from pydantic import Field

from geniuzfs.api import filed
from geniuzfs.api.filed import characters
from geniuzfs.errors import NotText
from geniuzfs.mcp.door import Door
from geniuzfs.mcp.fence import encodable, one_line
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
            f"{' by ' * bool(one.writer)}{one_line(one.writer)}{', in conflict' * one.conflict}"
            for one in self.versions
        )


def history(door: Door, given: History) -> Versions:
    files, text = door.opened(given).files, None
    known = files.versions(given.path)
    if given.version is not None:
        held = files.earlier(given.path, given.version)  # raises where several begin so
        exact = [one for one in known if one.name == given.version]
        known = exact or [one for one in known if one.name.startswith(given.version)]
        text = _text(known[0].name, held)
    return Versions(path=given.path, versions=[_earlier(one) for one in known], text=text)


def _text(name: str, held: bytes) -> str:
    if characters(held, len(held)) is None:
        raise NotText(f"what the file was at {name} is not text")
    return held.decode()


def _earlier(one: filed.Earlier) -> Earlier:
    return Earlier(
        name=encodable(one.name),
        written_at=one.updated_at.isoformat(),
        replaced_at=one.replaced_at.isoformat(),
        bytes=one.length,
        writer=encodable(one.by),
        conflict=one.conflict,
    )
