"""Splits a file's text into passages: what is learned, found and cited, one by one.

It hides what a passage is. Promised: they stand in file order and never overlap; every line with
a letter, a digit or a sign beyond ASCII in it is in one of them or is a heading; and a passage's
text depends on the text near it alone, so one changed paragraph is one changed passage. Markdown
goes through a real parser; org, rst, plain notes and source code through readers of our own
(their modules say why). No text makes it raise, and its time grows with the length alone.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from geniuzfs.dates import day_of
from geniuzfs.learn.blocks import Block, Kind, Lines, is_markup
from geniuzfs.learn.boundaries import (
    LIMIT,
    Span,
    Way,
    at_blank_lines,
    at_lines,
    at_sentences,
    cut,
    fits,
    gather,
)
from geniuzfs.learn.dialogue import turns
from geniuzfs.learn.markdown import markdown_blocks
from geniuzfs.learn.org import org_blocks
from geniuzfs.learn.plain import plain_blocks, source_blocks
from geniuzfs.learn.rst import rst_blocks


class Passage(NamedTuple):
    text: str
    """Exactly `text[start:end]` of the file's text, without blank lines around it."""
    start: int
    end: int
    first_line: int
    """Counted from 1, as editors count."""
    last_line: int
    heading: str
    """The headings it stands under, from the top, joined by ` > `; empty: none."""
    day: int | None
    """Days since 1970 of the turn's own time, or of the nearest heading above, where one of them
    states a full date."""
    speaker: str
    """Who says it, in a conversation; else empty."""
    dialogue: bool


Parser = Callable[[Sequence[str]], list[Block]]

_PARSERS: tuple[tuple[str, Parser], ...] = (
    ("md markdown mkd mdown mkdn mdx qmd rmd", markdown_blocks),
    ("org org_archive", org_blocks),
    ("rst rest", rst_blocks),
    (
        "py pyi js mjs cjs ts tsx jsx c h cc cpp hpp cxx rs go java kt scala swift rb php pl pm "
        "lua r jl hs ml ex exs erl clj el lisp sh bash zsh fish ps1 bat sql css scss less html htm "
        "xml svg json jsonl ndjson yaml yml toml ini cfg conf env properties csv tsv log diff "
        "patch tf nix mk cmake gradle proto graphql vue svelte tex bib ipynb srt vtt",
        source_blocks,
    ),
)

STRUCTURED_MOST = 50_000
"""Lines of Markdown that are parsed. 2,000,000 characters in lines of a word or two take the parser
10 s and more, as a plain note 1 to 4.
"""

SHORT_LIST = 100
"""Tokens of a list that is one passage. In a longer one each item is found and cited alone."""
_LONE_ITEM = 24
_ITEMS = (40, 100)
"""Items of fewer tokens than a sentence are put together: at least, and at most, so many."""
_DATE_LINE = 101
"""The level of a line that is nothing but a date: below every heading."""

_PROSE: tuple[Way, ...] = (at_blank_lines, at_sentences)
_VERBATIM: tuple[Way, ...] = (at_blank_lines, at_lines)


def split(text: str, name: str) -> list[Passage]:
    """The passages of a file of this name, in file order."""
    lines = Lines(text)
    parser = _parser(name)
    blocks = _complete(lines, _parsed(lines, parser))
    if parser is not source_blocks:
        blocks = turns(lines, [_dated(lines, block) for block in blocks])
        blocks = list(_introduced(lines, blocks))
    return list(_passages(lines, blocks))


def _parser(name: str) -> Parser:
    extension = name.rpartition("/")[2].rpartition(".")[2].lower()
    for extensions, parser in _PARSERS:
        if "." in name and extension in extensions.split():
            return parser
    return plain_blocks


def _parsed(lines: Lines, parser: Parser) -> list[Block]:
    if len(lines) > STRUCTURED_MOST and parser is markdown_blocks:
        return plain_blocks(lines.strings)
    try:
        return parser(lines.strings)
    except Exception:  # noqa: BLE001 - a parser's bug must cost the marks, never the file
        return plain_blocks(lines.strings)


def _complete(lines: Lines, blocks: list[Block]) -> list[Block]:
    """The blocks without those that have no words, and paragraphs where no block was found."""
    found: list[Block] = []
    at = 0
    for block in [*blocks, Block(Kind.PROSE, len(lines), len(lines))]:
        found += _runs(lines, at, block.first)
        trimmed = _trimmed(lines, block._replace(first=max(at, block.first)))
        at = max(at, block.after)
        if trimmed is not None:
            found.append(trimmed)
    return found


def _runs(lines: Lines, first: int, after: int) -> Iterator[Block]:
    start = first
    for i in range(first, after + 1):
        if i == after or is_markup(lines.strings[i]):
            if i > start:
                yield Block(Kind.PROSE, start, i)
            start = i + 1


def _trimmed(lines: Lines, block: Block) -> Block | None:
    first, after = block.first, block.after
    while first < after and not lines.strings[first].strip():
        first += 1
    while first < after and not lines.strings[after - 1].strip():
        after -= 1
    if all(is_markup(line) for line in lines.strings[first:after]):
        return None
    return block._replace(first=first, after=after)


_DIGIT = re.compile(r"\d")
_DATE_WORDS = re.compile(r"[^\W\d_]+")


def _dated(lines: Lines, block: Block) -> Block:
    """A line of its own that says no more than a date is the heading of what follows."""
    if block.kind is not Kind.PROSE or block.after - block.first > 1:
        return block
    title = lines.strings[block.first].strip()
    if len(title) > 60 or not _DIGIT.search(title) or title[-1] in ".!?;,:":
        return block
    words = [w for w in _DATE_WORDS.findall(title) if w.lower() not in {"am", "pm", "on", "at"}]
    if len(words) > 3 or day_of(title) is None:
        return block
    return Block(Kind.HEADING, block.first, block.after, _DATE_LINE, title)


def _introduced(lines: Lines, blocks: list[Block]) -> Iterator[Block]:
    """A short list goes with the paragraph that announces it by a colon."""
    above: Block | None = None
    for block in blocks:
        if above is not None and _announces(lines, above, block):
            above = above._replace(after=block.after)
            continue
        if above is not None:
            yield above
        above = block
    if above is not None:
        yield above


def _announces(lines: Lines, above: Block, block: Block) -> bool:
    return (
        above.kind is Kind.PROSE
        and block.kind is Kind.LIST
        and not above.dialogue
        and lines.strings[above.after - 1].rstrip()[-1:] in {":", "："}
        and fits(lines.text, *_span(lines, block), SHORT_LIST)
        and fits(lines.text, *_span(lines, above), SHORT_LIST)
    )


def _span(lines: Lines, block: Block) -> Span:
    return lines.starts[block.first], lines.end(block.after - 1)


class _Context(NamedTuple):
    """A heading that is open, and the day it states."""

    level: int
    title: str
    day: int | None


def _passages(lines: Lines, blocks: list[Block]) -> Iterator[Passage]:
    above: list[_Context] = []
    path, day = "", None
    for block, following in pairwise([*blocks, None]):
        assert block is not None  # only the last has none after it
        if block.kind is not Kind.HEADING:
            yield from _cited(lines, block, path, _day_said(block, day))
            continue
        while above and above[-1].level >= block.level:
            above.pop()
        outer = " > ".join(context.title for context in above)
        above.append(_Context(block.level, block.title, _day(block.title)))
        path = " > ".join(context.title for context in above)
        day = next((open_.day for open_ in reversed(above) if open_.day is not None), None)
        if following is None or (following.kind is Kind.HEADING and following.level <= block.level):
            yield from _cited(lines, block, outer, day)


def _day(title: str) -> int | None:
    # Most headings have no digit, and to look for dates takes 6 us.
    return day_of(title) if _DIGIT.search(title) else None


def _day_said(block: Block, day: int | None) -> int | None:
    if len(block.stamp) < 8:  # a time of day alone
        return day
    said = day_of(block.stamp)
    return day if said is None else said


def _cited(lines: Lines, block: Block, heading: str, day: int | None) -> Iterator[Passage]:
    text = lines.text
    line = block.first
    for start, end in _pieces(lines, block):
        start, end = _stripped(text, start, end, block.kind)
        if start == end:
            continue
        while line + 1 < block.after and lines.starts[line + 1] <= start:
            line += 1
        first = line
        while line + 1 < block.after and lines.starts[line + 1] < end:
            line += 1
        yield Passage(
            text[start:end], start, end, first + 1, line + 1, heading, day,
            block.speaker, block.dialogue,
        )  # fmt: skip


def _pieces(lines: Lines, block: Block) -> list[Span]:
    start, end = _span(lines, block)
    ways = _VERBATIM if block.kind in {Kind.VERBATIM, Kind.TABLE} else _PROSE
    whole = SHORT_LIST if block.kind is Kind.LIST else LIMIT
    if not block.parts or block.dialogue or fits(lines.text, start, end, whole):
        return cut(lines.text, start, end, ways)
    units = _units(lines, block, end)
    return [
        piece for group in _grouped(lines.text, units) for piece in cut(lines.text, *group, ways)
    ]


def _units(lines: Lines, block: Block, end: int) -> Iterator[Span]:
    """A list's items or a table's rows, each with what is nested in it if that fits together.
    What stands above the first row goes with it.
    """
    starts = [lines.starts[line] for line, _ in block.parts]
    afters = _subtree_ends(block, starts, end)
    starts[0] = lines.starts[block.first]
    i = 0
    while i < len(starts):
        after = i + 1
        if fits(lines.text, starts[i], afters[i], SHORT_LIST):
            while after < len(starts) and starts[after] < afters[i]:
                after += 1
        if (stop := starts[after] if after < len(starts) else end) > starts[i]:
            yield starts[i], stop
        i = after


def _subtree_ends(block: Block, starts: list[int], end: int) -> list[int]:
    ends = [end] * len(starts)
    open_: list[int] = []
    for i, (_, depth) in enumerate(block.parts):
        while open_ and block.parts[open_[-1]][1] >= depth:
            ends[open_.pop()] = starts[i]
        open_.append(i)
    return ends


def _grouped(text: str, units: Iterator[Span]) -> Iterator[Span]:
    """An item of a sentence or more stands alone; runs of shorter ones are gathered."""
    short: list[Span] = []
    for unit in units:
        if fits(text, *unit, _LONE_ITEM):
            short.append(unit)
            continue
        yield from gather(text, short, *_ITEMS)
        short = []
        yield unit
    yield from gather(text, short, *_ITEMS)


def _stripped(text: str, start: int, end: int, kind: Kind) -> Span:
    """Without white space around it; code keeps the indentation of its first line."""
    piece = text[start:end]
    end = start + len(piece.rstrip())
    lead = len(piece) - len(piece.lstrip())
    if kind is Kind.VERBATIM:
        lead = max(piece.rfind("\n", 0, lead), piece.rfind("\r", 0, lead)) + 1
    return min(start + lead, end), end
