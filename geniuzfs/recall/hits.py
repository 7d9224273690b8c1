"""What recall answers with: hits, and the account of what was searched. Frozen, without rules."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from geniuzfs.recall.query import Mode


class Kind(StrEnum):
    PASSAGE = "passage"
    MEMORY = "memory"


class Hit(NamedTuple):
    """One thing that was found."""

    kind: Kind
    folder: str
    """The folder's name."""
    path: str
    """From the folder's top, with a leading `/`; bytes that are not UTF-8 as lone surrogates
    (surrogateescape). "" for a memory.
    """
    first_line: int
    last_line: int
    """Where the text stands in the file, counted from 1, both ends included; 0 for a memory."""
    text: str
    """All of the passage or memory, as it was written."""
    date: str
    """`YYYY-MM-DD`; "" when there is none."""
    score: float
    address: str = ""
    """A memory's, `13625F6B:3487B9B0`; "" for a passage."""
    labels: Mapping[str, str] = MappingProxyType({})
    weak: bool = False
    """Its score says that it is probably not what was asked for."""


class Searched(NamedTuple):
    """What an answer was looked for in, how, and what was left out."""

    passages: int
    memories: int
    """How many there were to choose from, after every filter."""
    mode: Mode
    words: bool
    meaning: bool
    """Whether words and whether vectors had a part in it."""
    since: str | None = None
    until: str | None = None
    """The window as it was asked for, equal for `on:`."""
    path: str | None = None
    """The directory or file that it was kept to."""
    labels: tuple[tuple[str, str], ...] = ()
    quoted: tuple[str, ...] = ()
    """Phrases that had to be contained."""
    model_note: str = ""
    """Why meaning had no part: `the model is not available: ...`; "" when it had, or was not to."""
    waiting: int = 0
    """Files that are still being learned: found by their words at best."""
    folders: tuple[str, ...] = ()
    """Names of the folders that were searched."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Names of those that were not, each with the reason."""
    named: bool = False
    """A memory was asked for by its name: nothing was searched at all."""


class Answer(NamedTuple):
    """What a question gets. The best hit comes first."""

    query: str
    """The question as it was asked, operators and all."""
    hits: tuple[Hit, ...]
    searched: Searched
    full: bool = False
    """Texts are to be shown to their end."""
