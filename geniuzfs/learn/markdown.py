"""Markdown as blocks, by markdown-it-py: its tokens carry exact line ranges.

Only its block rules run (5 MB/s; inline ones would cost most of the time and say nothing about
borders). The rule for link definitions is off: it searches to the paragraph's end for each,
which is quadratic, and definitions are text to be learned.
"""

from collections.abc import Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from geniuzfs.learn.blocks import Block, Kind
from geniuzfs.learn.plain import HEADING_MOST, front_matter

_VERBATIM = {"fence", "code_block", "html_block"}
_LISTS = {"bullet_list_open", "ordered_list_open"}


def markdown_blocks(lines: Sequence[str]) -> list[Block]:
    front, first = front_matter(lines)
    # The parser takes a lone \r for a line's end, which editors do not, and a form feed for a word.
    shown = ("" if line.isspace() else line for line in lines[first:])
    source = "\n" * first + "\n".join(shown).replace("\r", " ")
    return front + _blocks(_parser().parse(source))


@cache
def _parser() -> MarkdownIt:
    """One for all: to make it takes 0.5 ms, and what it parses it keeps to itself."""
    parser = MarkdownIt("commonmark").enable("table").disable("reference")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _blocks(tokens: list[Token]) -> list[Block]:
    found: list[Block] = []
    quotes = 0
    i = 0
    while i < len(tokens):
        token = tokens[i]
        kind = token.type
        if kind == "blockquote_open":
            quotes += 1
        elif kind == "blockquote_close":
            quotes -= 1
        elif kind == "heading_open":
            found.append(_heading(token, tokens[i + 1].content, quoted=quotes > 0))
        elif kind == "paragraph_open":
            found.append(Block(Kind.PROSE, *_range(token)))
        elif kind in _VERBATIM:
            found.append(Block(Kind.VERBATIM, *_range(token)))
        elif kind in _LISTS or kind == "table_open":
            after = _close(tokens, i)
            found.append(_parted(tokens[i:after]))
            i = after - 1
        i += 1
    return found


def _range(token: Token) -> tuple[int, int]:
    assert token.map is not None  # every block that opens has one
    return token.map[0], token.map[1]


def _heading(token: Token, title: str, *, quoted: bool) -> Block:
    """A paragraph with `---` right beneath is a heading to Markdown, however long it is."""
    first, after = _range(token)
    if quoted or len(title) > HEADING_MOST or after - first > 3:
        return Block(Kind.PROSE, first, after)
    return Block(Kind.HEADING, first, after, int(token.tag[1:]), " ".join(title.split()))


def _close(tokens: list[Token], i: int) -> int:
    """The index after the token that closes the one at `i`."""
    level = tokens[i].level
    i += 1
    while tokens[i].level > level or tokens[i].nesting != -1:
        i += 1
    return i + 1


def _parted(tokens: list[Token]) -> Block:
    table = tokens[0].type == "table_open"
    opening = "tr_open" if table else "list_item_open"
    parts = tuple(
        (_range(token)[0], token.level - tokens[0].level)
        for token in tokens
        if token.type == opening
    )
    return Block(Kind.TABLE if table else Kind.LIST, *_range(tokens[0]), parts=parts)
