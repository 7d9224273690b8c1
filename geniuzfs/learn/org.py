"""Org files as blocks: headings by their stars, `#+begin` blocks and drawers whole.

A small reader of our own: orgparse (2 MB/s) has exact line numbers for headings alone, which one
pattern finds as well, and knows nothing of the blocks, lists and tables beneath them.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

from geniuzfs.learn.blocks import Block
from geniuzfs.learn.plain import Dialect, Heading, scan

_STARS = re.compile(r"(\*+)[ \t]+(\S.*)")
_STATE = re.compile(r"(?:TODO|DONE|NEXT|WAITING|CANCELLED)\s+(?:\[#\w\]\s+)?(?=\S)")
_TAGS = re.compile(r"\s+:[\w@#%:]+:\s*$")
_BEGIN = re.compile(r"\s*#\+begin_(\S+)", re.IGNORECASE)
_END = re.compile(r"\s*#\+end_(\S+)", re.IGNORECASE)
_DRAWER = re.compile(r"\s*:[\w-]+:\s*")
_CLOSED = re.compile(r"\s*:end:\s*", re.IGNORECASE)
_DRAWER_MOST = 200
"""Lines in which a drawer must end: one that is left open takes nothing, at no great cost."""


def org_blocks(lines: Sequence[str]) -> list[Block]:
    ends: dict[str, list[int]] = defaultdict(list)
    for i, line in enumerate(lines):
        if found := _END.match(line):
            ends[found[1].lower()].append(i)

    def verbatim(lines: Sequence[str], i: int) -> int:
        begin = _BEGIN.match(lines[i])
        if begin is None:
            return _drawer(lines, i)
        after = ends[begin[1].lower()]
        at = bisect_right(after, i)
        return after[at] + 1 if at < len(after) else i

    return scan(lines, Dialect(_heading, verbatim))


def _heading(lines: Sequence[str], i: int) -> Heading | None:
    if not lines[i].startswith("*") or not (match := _STARS.match(lines[i])):
        return None
    title = _TAGS.sub("", _STATE.sub("", match[2], count=1))
    return Heading(len(match[1]), title.strip(), i + 1)


def _drawer(lines: Sequence[str], i: int) -> int:
    if _DRAWER.fullmatch(lines[i]):
        for after in range(i + 1, min(i + _DRAWER_MOST, len(lines))):
            if _CLOSED.fullmatch(lines[after]):
                return after + 1
    return i
