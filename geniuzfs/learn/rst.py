"""reStructuredText as blocks: underlined headings, literal blocks and directives.

A small reader of our own. docutils gives a first line for most nodes, but none for an end and a
literal block's or table's is one off; it reads 1.3 MB/s and runs directives, which a note must
not be able to make it do.
"""

import re
from collections.abc import Sequence

from geniuzfs.learn.blocks import Block, Kind, indent, is_blank
from geniuzfs.learn.plain import HEADING_MOST, Dialect, Heading, scan

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1{2,}\s*")
_EXPLICIT = re.compile(r"\s*\.\.(?:\s+|$)(?:([\w:-]+)::)?")
_OPTIONS_MOST = 20
"""Lines of a directive and its options; more is a paragraph."""
_WHOLE_NAMES = """
code code-block sourcecode parsed-literal literalinclude math highlight image figure toctree
table csv-table list-table raw include testcode testoutput doctest productionlist
"""
_WHOLE = frozenset(_WHOLE_NAMES.split())


def rst_blocks(lines: Sequence[str]) -> list[Block]:
    levels: dict[str, int] = {}  # style -> level, in the order of their appearance

    def heading(lines: Sequence[str], i: int) -> Heading | None:
        found = _overlined(lines, i) or _underlined(lines, i)
        if found is None:
            return None
        style, title, after = found
        return Heading(levels.setdefault(style, len(levels) + 1), title, after)

    return _with_bodies(lines, scan(lines, Dialect(heading, _verbatim)))


def _with_bodies(lines: Sequence[str], blocks: list[Block]) -> list[Block]:
    """`.. note::` says nothing by itself: it goes with the paragraph beneath it."""
    found: list[Block] = []
    for block in blocks:
        above = found[-1] if found else None
        if (
            above is not None
            and above.kind is block.kind is Kind.PROSE
            and _EXPLICIT.match(lines[above.first])
            and indent(lines[block.first]) > indent(lines[above.first])
            and is_blank(lines[block.first - 1])
            and all(map(is_blank, lines[above.after : block.first]))
            and above.after - above.first < _OPTIONS_MOST
        ):
            found[-1] = above._replace(after=block.after)
        else:
            found.append(block)
    return found


def _overlined(lines: Sequence[str], i: int) -> tuple[str, str, int] | None:
    if i + 2 >= len(lines) or not (over := _ADORNMENT.fullmatch(lines[i])):
        return None
    title = lines[i + 1].strip()
    if not title or len(title) > HEADING_MOST or lines[i + 2].rstrip() != lines[i].rstrip():
        return None
    return over[1] * 2, title, i + 3


def _underlined(lines: Sequence[str], i: int) -> tuple[str, str, int] | None:
    if i + 1 >= len(lines) or not (under := _ADORNMENT.fullmatch(lines[i + 1])):
        return None
    title = lines[i]
    if is_blank(title) or title[0].isspace() or len(title) > HEADING_MOST:
        return None
    if (i and not is_blank(lines[i - 1])) or _ADORNMENT.fullmatch(title):
        return None
    return under[1], title.strip(), i + 2


def _verbatim(lines: Sequence[str], i: int) -> int:
    if match := _EXPLICIT.match(lines[i]):
        name = match[1]
        if name is None or name.rpartition(":")[2] in _WHOLE:
            return _indented(lines, i + 1, indent(lines[i]))
        return i
    if i and indent(lines[i]):
        # `text::`, a blank line, then what is deeper than it
        above = i - 1
        while above > 0 and above > i - 4 and is_blank(lines[above]):
            above -= 1
        before = lines[above].rstrip()
        opens = before.endswith("::") and not _EXPLICIT.match(before)
        if opens and above < i - 1 and indent(before) < indent(lines[i]):
            return _indented(lines, i, indent(before))
    return i


def _indented(lines: Sequence[str], i: int, depth: int) -> int:
    """The line after the last that stands deeper than `depth`, from line `i` on."""
    after = i
    while i < len(lines):
        if not is_blank(lines[i]):
            if indent(lines[i]) <= depth:
                break
            after = i + 1
        i += 1
    return after
