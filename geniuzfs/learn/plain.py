"""Plain notes, source code and logs as blocks, line by line; org and rst bring their own marks.

Plain notes are written with Markdown's habits, so `# ` and underlined headings, lists, fences
and `|` tables count here too; what Markdown alone knows (four spaces are code) does not. It takes
any text in linear time, so it also stands in where a real parser fails.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from geniuzfs.learn.blocks import Block, Kind, indent, is_blank


class Heading(NamedTuple):
    level: int
    title: str
    after: int


class Dialect(NamedTuple):
    """What a format has of its own, asked about line `i`."""

    heading: Callable[[Sequence[str], int], Heading | None]
    verbatim: Callable[[Sequence[str], int], int]
    """The line after a verbatim block that starts here; `i` itself: none does."""


_ITEM = re.compile(r"\s*(?:[-*+•‣◦–]|\(?(?:\d{1,9}|[a-zA-Z])[.)])\s+\S")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HASHES = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_UNDERLINE = re.compile(r"(=|-){3,}\s*")
HEADING_MOST = 200
"""Characters of a heading; a longer one is a paragraph that happens to be marked."""


def plain_blocks(lines: Sequence[str]) -> list[Block]:
    front, first = front_matter(lines)
    return front + scan(lines, Dialect(_heading, _fence), first)


def source_blocks(lines: Sequence[str]) -> list[Block]:
    """Runs of lines between blank ones."""
    found = []
    first = 0
    for i, line in enumerate([*lines, ""]):
        if is_blank(line):
            if i > first:
                found.append(Block(Kind.VERBATIM, first, i))
            first = i + 1
    return found


def front_matter(lines: Sequence[str]) -> tuple[list[Block], int]:
    """The block between `---` lines at the very top, if there is one, and the line after it."""
    if len(lines) > 2 and lines[0].rstrip() == "---" and not is_blank(lines[1]):
        for i in range(1, len(lines)):
            if lines[i].rstrip() in {"---", "..."}:
                return [Block(Kind.VERBATIM, 0, i + 1)], i + 1
    return [], 0


def scan(lines: Sequence[str], dialect: Dialect, first: int = 0) -> list[Block]:
    found: list[Block] = []
    i = first
    while i < len(lines):
        if is_blank(lines[i]):
            i += 1
            continue
        found.append(_block(lines, i, dialect))
        i = found[-1].after
    return found


def _block(lines: Sequence[str], i: int, dialect: Dialect) -> Block:
    if heading := dialect.heading(lines, i):
        return Block(Kind.HEADING, i, heading.after, heading.level, heading.title)
    if (after := dialect.verbatim(lines, i)) > i:
        return Block(Kind.VERBATIM, i, after)
    if _ITEM.match(lines[i]):
        return _list(lines, i, dialect)
    if _is_row(lines[i]):
        after = i + 1
        while after < len(lines) and _is_row(lines[after]):
            after += 1
        return Block(Kind.TABLE, i, after, parts=tuple((row, 0) for row in range(i, after)))
    after = i + 1
    while after < len(lines) and not _interrupts(lines, after, dialect):
        after += 1
    return Block(Kind.PROSE, i, after)


def _interrupts(lines: Sequence[str], i: int, dialect: Dialect) -> bool:
    line = lines[i]
    return (
        is_blank(line)
        or dialect.heading(lines, i) is not None
        or dialect.verbatim(lines, i) > i
        or (_ITEM.match(line) is not None and not line.lstrip()[0].isalnum())
        or _is_row(line)
    )


def _list(lines: Sequence[str], i: int, dialect: Dialect) -> Block:
    indents = [indent(lines[i])]
    base = indents[0]
    parts = [(i, 0)]
    after = at = i + 1
    while at < len(lines):
        line, depth = lines[at], indent(lines[at])
        if is_blank(line):
            at += 1
            continue
        if _ITEM.match(line) and depth >= base and not dialect.heading(lines, at):
            while indents[-1] > depth:
                indents.pop()
            if depth > indents[-1]:
                indents.append(depth)
            parts.append((at, len(indents) - 1))
        elif depth <= base and (after < at or _interrupts(lines, at, dialect)):
            break
        at = after = max(at + 1, _fence(lines, at))
    return Block(Kind.LIST, i, after, parts=tuple(parts))


def _is_row(line: str) -> bool:
    return line.lstrip()[:1] == "|" or line.lstrip()[:2] in {"+-", "+="}


def _heading(lines: Sequence[str], i: int) -> Heading | None:
    if lines[i].startswith("#") and (match := _HASHES.match(lines[i])):
        title = match[2].rstrip().rstrip("#").rstrip()
        return Heading(len(match[1]), title, i + 1) if len(title) <= HEADING_MOST else None
    if (
        i + 1 < len(lines)
        and lines[i + 1][:3] in {"===", "---"}
        and (i == 0 or is_blank(lines[i - 1]))
        and len(lines[i]) <= HEADING_MOST
        and not _UNDERLINE.fullmatch(lines[i])
        and (match := _UNDERLINE.fullmatch(lines[i + 1]))
    ):
        return Heading(1 if match[1] == "=" else 2, lines[i].strip(), i + 2)
    return None


def _fence(lines: Sequence[str], i: int) -> int:
    if not (opening := _FENCE.match(lines[i])):
        return i
    for after in range(i + 1, len(lines)):
        if lines[after].strip().startswith(opening[1]):
            return after + 1
    # Never closed: to take the rest for code would cost its headings.
    return i
