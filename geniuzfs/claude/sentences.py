"""The sentences of the memory tool, word for word as its public documentation has them.

Pure: what stands in the folder is given.
"""

from anthropic.lib.tools import ToolError

from geniuzfs.api.directories import Listing
from geniuzfs.api.edits import LINES_MOST
from geniuzfs.claude.places import ROOT

LINES = 999_999
"""Lines of a file that can be shown: their numbers have six digits."""

_WIDTH = len(str(LINES))


def missing(path: str) -> str:
    return f"The path {path} does not exist. Please provide a valid path."


def not_text(path: str) -> str:
    return f"Error: The file {path} is not text: it has bytes that are no UTF-8, or NULs"


def listed(path: str, listing: Listing) -> str:
    lines = [f"{_size(listing.size)}\t{path}"]
    for entry in listing.entries:
        shown = f"{ROOT}{entry.path}"
        if not any(map(_hidden, shown[len(path) :].split("/"))):
            lines.append(f"{_size(entry.size)}\t{shown}{'/' * entry.is_directory}")
    header = (
        f"Here're the files and directories up to 2 levels deep in {path},"
        " excluding hidden items and node_modules:"
    )
    return "\n".join([header, *lines])


def _hidden(name: str) -> bool:
    return name.startswith(".") or name == "node_modules"


def _size(count: int) -> str:
    """`0B`, `1.5K`, `2M`."""
    power = 0
    while count >= 1024 ** (power + 1) and power < 3:
        power += 1
    size = count / 1024**power
    return f"{size:.0f}{'BKMG'[power]}" if size == int(size) else f"{size:.1f}{'BKMG'[power]}"


def numbered(path: str, text: str, view_range: object) -> str:
    lines = text.split("\n")
    if len(lines) > LINES:
        raise ToolError(f"File {path} exceeds maximum line limit of {LINES:,} lines.")
    first, last = _range(view_range, len(lines))
    shown = [_line(number, line) for number, line in enumerate(lines[first:last], first + 1)]
    return "\n".join([f"Here's the content of {path} with line numbers:", *(shown or [""])])


def _range(view_range: object, count: int) -> tuple[int, int]:
    """What to leave out before, and where to end."""
    if not view_range:
        return 0, count
    if not (
        isinstance(view_range, list)
        and len(view_range) == 2
        and all(isinstance(each, int) for each in view_range)
    ):
        raise ToolError("Error: `view_range` is [first line, last line], -1: to the end")
    first, last = view_range
    return max(first, 1) - 1, count if last == -1 else last


def _line(number: int, text: str) -> str:
    return f"{number:>{_WIDTH}}\t{text}"


def around(text: str, changed: int) -> str:
    """The lines around one that was changed, two on each side."""
    lines = text.split("\n")
    first = max(0, changed - 2)
    return "\n".join(_line(n, line) for n, line in enumerate(lines[first : changed + 3], first + 1))


def not_once(path: str, old: str, lines: list[int]) -> str:
    if not lines:
        return f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
    told = ", ".join(map(str, lines)) + ", ..." * (len(lines) == LINES_MOST)
    return (
        f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {told}."
        " Please ensure it is unique"
    )
