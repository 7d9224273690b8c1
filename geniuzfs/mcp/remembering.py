"""The tools about what is remembered: recall, recent, thread, open, keep, folders.

Thin: a checked request, one call of api.Geniuz, a result. What recall answers is what a mount's
`.recall` does, text and JSON alike (recall.render).
"""

import json
from typing import Any, ClassVar, Literal

from pydantic import Field

from geniuzfs.api import requests
from geniuzfs.api.keeping import Held
from geniuzfs.mcp.door import Door
from geniuzfs.mcp.fence import encodable, one_line
from geniuzfs.mcp.schemas import Arguments, InFolder, Part, Result
from geniuzfs.recall import render
from geniuzfs.recall.query import LIMIT, LIMIT_MAX, LONGEST

Kind = Literal["auto", "words", "meaning", "grep", "thread", "random", "recent"]

_WHEN = "7d (h, d, w, m, y), today, 2026-10-01, 2026-10, 12:30 or RFC 3339."
_ADDRESS = "An address such as 13625F6B:3487B9B0, or the memory's ID or its beginning."


class _Asked(InFolder):
    since: str | None = Field(None, description=f"Not older: {_WHEN}")
    until: str | None = Field(None, description="Not newer; a day counts to its end.")
    path: str | None = Field(None, description="This file, or what lies beneath this directory.")
    labels: dict[str, str] | None = Field(None, description="With all of these labels.")
    limit: int | None = Field(
        None, description=f"Hits at most; {LIMIT} if left out.", ge=1, le=LIMIT_MAX
    )

    def operators(self, mode: str | None) -> list[tuple[str, str]]:
        """As those of a question. Raises UsageError."""
        return requests.operators(
            {
                "since": self.since,
                "until": self.until,
                "path": self.path,
                "labels": self.labels,
                "limit": self.limit,
                "mode": mode,
            }
        )


class Recall(_Asked):
    query: str = Field(
        description='What you want to know, in a sentence. "Quoted" words must stand there.',
        max_length=LONGEST,
    )
    mode: Kind | None = Field(None, description="auto, the default, is by words and by meaning.")


class Recent(_Asked):
    pass


class Named(InFolder):
    address: str = Field(description=_ADDRESS, max_length=100)


class Keep(InFolder):
    text: str = Field(description="What to keep, in whole sentences with names and dates.")
    gist: str | None = Field(None, description="What it says in a line. Default: its beginning.")
    continues: str | None = Field(None, description=f"The memory that it continues. {_ADDRESS}")


class Hit(Part):
    kind: str
    folder: str
    path: str
    lines: list[int]
    text: str
    date: str
    score: float
    address: str
    labels: dict[str, str]
    weak: bool


class Searched(Part):
    passages: int
    memories: int
    since: str | None
    until: str | None
    path: str | None
    labels: list[str]
    quoted: list[str]
    mode: str
    words: bool
    meaning: bool
    note: str
    waiting: int
    folders: list[str]
    left_out: dict[str, str]


class Recalled(Result):
    """An answer, as `format:json` gives it, and the text that `.recall` gives."""

    query: str
    hits: list[Hit]
    searched: Searched
    _text: str = ""

    def said(self) -> str:
        return self._text


class Memory(Result):
    address: str
    uuid: str
    folder: str
    gist: str
    created_at: str
    continues: str | None
    content: str

    def said(self) -> str:
        return f"{self.content}\n[{self.address}, {self.created_at} UTC]"


class Kept(Result):
    somebodys: ClassVar[bool] = False

    address: str
    uuid: str
    folder: str
    created_at: str
    continues: str | None
    continued_nothing: bool

    def said(self) -> str:
        new = ": there is no memory of that name to continue, so it begins a thread"
        return f"kept {self.address}{new if self.continued_nothing else ''}"


class Folder(Part):
    name: str
    uuid: str
    description: str
    pinned: bool
    meant: bool


class Folders(Result):
    folders: list[Folder]

    def said(self) -> str:
        return "\n".join(
            f"{'*' if one.meant else ' '} {one.name}: {one_line(one.description)}".rstrip(": ")
            for one in self.folders
        )


def recall(door: Door, given: Recall) -> Recalled:
    return ask(door, given, given.query, given.operators(given.mode))


def recent(door: Door, given: Recent) -> Recalled:
    return ask(door, given, "", given.operators("recent"))


def thread(door: Door, given: Named) -> Recalled:
    held = door.geniuz.open_memory(door.name(given), given.address, here=door.here)
    asked = f"{held.folder.identity.id}:{held.memory.id}"
    return ask(door, given, asked, [("mode", "thread"), ("full", "yes")])


def open_memory(door: Door, given: Named) -> Memory:
    held = door.geniuz.open_memory(door.name(given), given.address, here=door.here)
    memory = held.memory
    return Memory(
        address=held.address,
        uuid=memory.id,
        folder=held.folder.name,
        gist=encodable(memory.gist),
        created_at=memory.created_at,
        continues=_continued(held),
        content=encodable(memory.content),
    )


def keep(door: Door, given: Keep) -> Kept:
    held = door.opened(given).keep(given.text, given.gist, given.continues)
    return Kept(
        address=held.address,
        uuid=held.memory.id,
        folder=held.folder.name,
        created_at=held.memory.created_at,
        continues=_continued(held),
        continued_nothing=held.parent_unknown,
    )


def folders(door: Door, given: Arguments) -> Folders:
    meant = door.folder(given).identity.id
    pinned = door.geniuz.arranging.pinned()
    return Folders(
        folders=[
            Folder(
                name=one.name,
                uuid=one.identity.id,
                description=encodable(one.identity.description),
                pinned=one.identity.id in pinned,
                meant=one.identity.id == meant,
            )
            for one in door.folders()
        ]
    )


def ask(door: Door, given: Arguments, query: str, operators: list[tuple[str, str]]) -> Recalled:
    """The answer to a question. Raises UsageError and NotFound."""
    parsed = door.geniuz.parse(query, operators)
    answer = door.geniuz.recall(door.name(given), parsed, here=door.here)
    recalled = Recalled.model_validate(_encodable(json.loads(render.json(answer))))
    recalled._text = render.text(answer, show_folder=len(answer.searched.folders) > 1)
    return recalled


def _continued(held: Held) -> str | None:
    return None if held.memory.parent == held.memory.id else held.memory.parent


def _encodable(value: Any) -> Any:
    """Every string in a JSON value, fit to be sent."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    if isinstance(value, dict):
        return {encodable(key): _encodable(each) for key, each in value.items()}
    return value
