"""The shape that every parser hands to `geniuzfs.learn.paragraphs`: blocks of whole lines.

It hides what a line is and how each format marks its parts. Blocks stand in file order and do not
overlap. A parser may leave lines out: whatever has words in it becomes a paragraph afterwards.
"""

import re
from enum import Enum, auto
from itertools import accumulate
from typing import NamedTuple

BOM = "\ufeff"


class Kind(Enum):
    HEADING = auto()
    PROSE = auto()
    LIST = auto()
    TABLE = auto()
    VERBATIM = auto()
    """Code, logs, raw HTML, front matter: its lines mean something, so it is cut at their ends."""


class Block(NamedTuple):
    """Lines `first` up to, not including, `after`, counted from 0."""

    kind: Kind
    first: int
    after: int
    level: int = 0
    """A heading's: 1 is the highest."""
    title: str = ""
    parts: tuple[tuple[int, int], ...] = ()
    """A list's items or a table's rows: the line each starts on, and how deeply it is nested."""
    speaker: str = ""
    stamp: str = ""
    """When a turn was said, as it is written there."""
    dialogue: bool = False


class Lines:
    """A text as editors count its lines: `\\n` ends one, and so does `\\r\\n`; a lone `\\r` does so
    only in a text without any `\\n`. A byte order mark belongs to no line.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        ending = "\r" if "\n" not in text and "\r" in text else "\n"
        raw = text.split(ending)
        self.starts = [0, *accumulate(len(line) + 1 for line in raw[:-1])]
        self.strings = [line.removesuffix("\r") for line in raw] if ending == "\n" else raw
        if text.startswith(BOM):
            self.starts[0] = 1
            self.strings[0] = self.strings[0][1:]

    def __len__(self) -> int:
        return len(self.strings)

    def end(self, line: int) -> int:
        """Where line `line` ends in the text, without what ends it."""
        return self.starts[line] + len(self.strings[line])


_MARKUP = re.compile(r"[\s!-/:-@\[-`{-~]*")


def is_markup(line: str) -> bool:
    """Whether nothing can be learned from it: no more than white space and ASCII punctuation."""
    return _MARKUP.fullmatch(line) is not None


def is_blank(line: str) -> bool:
    return not line or line.isspace()


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())
