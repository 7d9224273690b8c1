"""Which notes are conversations, and where each turn of one begins.

A turn is a paragraph or a line that begins `Name:`, with or without a time, brackets or bold:
`Anna: hi`, `**Anna:** hi`, `[10:32] Anna: hi`, `2026-10-06 10:32 - Anna: hi`, `Anna (10:32): hi`.
A file is a conversation if it has at least 4 turns by at least 2 speakers who each speak more
than once, 2.5 turns a speaker or more, and if 60 % of its turns and other paragraphs are turns.
Turns without a time must also be speech: 3 words on average, and no record whose fields come
round in the same order. What notes label (`Note:`, `TODO:`, `Date:`) is no speaker. A file that
is none is asked again section by section, with at least 6 turns in each.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from geniuzfs.learn.blocks import Block, Kind, Lines
from geniuzfs.learn.boundaries import fits

_STAMP = (
    r"(?P<stamp>[\[(<]\d[^\])>\n]{2,30}[\])>]|"
    r"\d(?:[\d/.:,\u202f -]|(?<=\d)T(?=\d)){2,30}(?:Z|[aApP]\.?[mM]\b\.?)?)\s?(?:[-–—]\s?)?"
)
_NAME = r"(?P<name>[^\W\d_][\w.'’-]{0,30}(?: [(\w][\w.'’)-]{0,30}){0,3})"
_TURN = re.compile(
    rf"\s{{0,3}}(?:{_STAMP})?(?:\*\*|__|<)?{_NAME}(?:\*\*|__|>)?"
    r"\s?(?P<time>[\[(]\d[^\])\n]{2,30}[\])])?(?:\*\*|__)?\s?(?::|：)(?:\*\*|__)?(?:\s|$)\s*"
)
_OPENING = 160
"""Characters of a line that are looked at: a name and a time are shorter."""

_SHORT_TURN = 100
"""Tokens of a turn that is one passage though it has several paragraphs."""

_LABEL_WORDS = """
note notes todo fixme xxx hack warning caution danger important attention tip hint info
example examples error bug fix date time when where who what why how name names email e-mail
phone tel fax address city country subject from to cc bcc reply-to author authors title
status state type kind tags tag category categories version url link links source see
summary description details result results pros cons goal goals idea ideas decision
decisions action actions agenda attendees participants location place price total amount
id key value input output returns return raises args parameters default usage ps nb http
https ftp mailto file hinweis achtung datum uhrzeit betreff ort titel thema remarque
attention objet nota fecha asunto data oggetto примечание дата тема
"""
_LABELS = frozenset(_LABEL_WORDS.split())


class Turn(NamedTuple):
    line: int
    speaker: str
    stamp: str
    words: int


def turns(lines: Lines, blocks: Sequence[Block]) -> list[Block]:
    """The blocks, with those of a conversation cut at its turns and marked."""
    found = _openings(lines, blocks)
    if _is_conversation(found, blocks, least=4):
        return _marked(lines, blocks, found)
    if not found:
        return list(blocks)
    marked: list[Block] = []
    for _, group in groupby(_sections(blocks), key=lambda numbered: numbered[0]):
        section = [block for _, block in group]
        found = _openings(lines, section)
        talking = _is_conversation(found, section, least=6)
        marked += _marked(lines, section, found) if talking else section
    return marked


def spoken(turn: str) -> str:
    """What is said in a turn, without the name and the time before it."""
    opening = _TURN.match(turn[:_OPENING])
    return turn if opening is None else turn[opening.end() :]


def _sections(blocks: Sequence[Block]) -> list[tuple[int, Block]]:
    numbered = []
    section = 0
    for block in blocks:
        section += block.kind is Kind.HEADING
        numbered.append((section, block))
    return numbered


def _openings(lines: Lines, blocks: Sequence[Block]) -> list[Turn]:
    """Every line that begins as a turn does: a paragraph's first, and those beneath such a one."""
    found = []
    for block in blocks:
        if block.kind is not Kind.PROSE:
            continue
        for i in range(block.first, block.after):
            match = _TURN.match(lines.strings[i][:_OPENING])
            if match is None or match["name"].casefold() in _LABELS:
                if i == block.first:
                    break
                continue
            words = len(lines.strings[i][match.end() : match.end() + 400].split())
            stamp = (match["stamp"] or match["time"] or "").strip()
            found.append(Turn(i, match["name"], stamp, words))
    return found


def _is_conversation(found: list[Turn], blocks: Sequence[Block], least: int) -> bool:
    counts = Counter(turn.speaker for turn in found)
    speakers = frozenset(name for name, count in counts.items() if count > 1)
    said = [turn for turn in found if turn.speaker in speakers]
    # A name that speaks once may be a guest, or a label among labels.
    if len(said) < max(least, 2.5 * len(counts)) or len(speakers) < 2:
        return False
    first = {turn.line for turn in said}
    others = sum(block.kind is not Kind.HEADING and block.first not in first for block in blocks)
    if len(said) < 0.6 * (len(said) + others):
        return False
    timed = sum(turn.stamp != "" for turn in said) >= 0.8 * len(said)
    return timed or (sum(turn.words for turn in said) >= 3 * len(said) and not _is_record(said))


def _is_record(said: list[Turn]) -> bool:
    """Whether three or more names come round in the same order: `Street: … Town: … Code: …`."""
    names = [turn.speaker for turn in said]
    period = len(set(names))
    same = sum(a == b for a, b in zip(names, names[period:], strict=False))
    return period > 2 and same >= 0.9 * (len(names) - period)


def _marked(lines: Lines, blocks: Sequence[Block], found: list[Turn]) -> list[Block]:
    openings = {turn.line: turn for turn in found}
    marked: list[Block] = []
    for block in blocks:
        if block.kind is Kind.HEADING:
            marked.append(block)
            continue
        for piece in _pieces(block, openings):
            turn = openings.get(piece.first)
            above = marked[-1] if marked and marked[-1].dialogue else None
            if turn is not None:
                marked.append(piece._replace(speaker=turn.speaker, stamp=turn.stamp, dialogue=True))
            elif above is not None and _continues(lines, above, piece):
                marked[-1] = above._replace(after=piece.after)
            else:
                speaker = above.speaker if above is not None else ""
                stamp = above.stamp if above is not None else ""
                marked.append(piece._replace(speaker=speaker, stamp=stamp, dialogue=True))
    return marked


def _continues(lines: Lines, above: Block, piece: Block) -> bool:
    """Whether it belongs to the turn above: without a blank line between it always does; a
    paragraph of its own does if both are short.
    """
    start, end = lines.starts[above.first], lines.end(piece.after - 1)
    return above.after == piece.first or (
        above.kind is piece.kind is Kind.PROSE and fits(lines.text, start, end, _SHORT_TURN)
    )


def _pieces(block: Block, openings: dict[int, Turn]) -> list[Block]:
    """A paragraph, cut before each line that opens a turn; anything else as it is."""
    if block.kind is not Kind.PROSE:
        return [block]
    inner = [i for i in range(block.first + 1, block.after) if i in openings]
    edges = [block.first, *inner, block.after]
    return [block._replace(first=first, after=after) for first, after in pairwise(edges)]
