"""One text in place of another that stands in a file exactly once: the edit that agents make.

Pure, and linear in the text: it runs while everybody waits for the write lock.
"""

from geniuzfs.errors import NotOnce, UsageError

LINES_MOST = 100
"""Of the lines in which a text stands again and again."""


def replaced(text: str, old: str, new: str) -> str:
    """`text` with `new` in place of the one `old` in it. Raises NotOnce where it stands nowhere or
    more than once, overlapping or not, and UsageError for an empty one.
    """
    if not old:
        raise UsageError("what is to be replaced is empty")
    at = text.find(old)
    if at < 0:
        raise NotOnce("what is to be replaced does not stand in the file: nothing was changed", [])
    if text.find(old, at + 1) >= 0:
        lines = _lines(text, old)
        raise NotOnce(
            f"what is to be replaced stands in lines {lines[0]} and {lines[1]} at least: nothing"
            " was changed, write more of what is around it",
            lines,
        )
    return text[:at] + new + text[at + len(old) :]


def _lines(text: str, wanted: str) -> list[int]:
    """The lines in which it begins, from 1: the first LINES_MOST."""
    lines: list[int] = []
    line, counted = 1, 0
    at = text.find(wanted)
    while at >= 0 and len(lines) < LINES_MOST:
        line, counted = line + text.count("\n", counted, at), at
        lines.append(line)
        at = text.find(wanted, at + 1)
    return lines
