"""How commands speak to people, pipes and programs.

Hides: what a terminal gets that a pipe does not: colours, columns, bars. Promises: whatever names
and texts say, no escape sequence of theirs reaches a terminal; colours and bars go to terminals
alone, and no colours where NO_COLOR is set or the terminal is dumb; with --json, standard output
is one JSON object and nothing else; what goes wrong is one line on standard error.
"""

import io
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import click

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
"""The option that every command has."""

_FORMATS = frozenset({"Mn", "Me", "Cf"})
"""Categories of characters that take no place of their own on a terminal."""


class Shown(str):
    """A text that is fit to be printed as it is: escaped already, perhaps coloured by us."""

    __slots__ = ()


def tell(*parts: str) -> None:
    """Print a line or several, as plain characters but for what `heading` and its like made."""
    click.echo("".join(map(shown, parts)))


def tell_json(values: Mapping[str, Any]) -> None:
    """Print the one JSON object of a command."""
    click.echo(json.dumps(values))


def complain(text: str) -> None:
    """Say on standard error what is wrong, in one line."""
    click.echo(f"geniuzfs: {shown(' '.join(text.splitlines()))}", err=True)


def table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns: aligned for people, apart by two blanks in a pipe."""
    cells = [[shown(cell).replace("\n", "\\n") for cell in row] for row in rows]
    widths = [0] * max((len(row) for row in cells), default=0)
    if to_people():
        for row in cells:
            widths = [max(pair) for pair in zip(widths, map(_width, row), strict=True)]
    for row in cells:
        filled = [
            cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
        ]
        click.echo("  ".join(filled).rstrip())


def to_people() -> bool:
    """Whether somebody reads standard output on a terminal."""
    return sys.stdout.isatty()


def heading(text: str) -> Shown:
    """Bold on a terminal, as all of these: plain where it takes no colours."""
    return _styled(text, bold=True)


def good(text: str) -> Shown:
    """Green."""
    return _styled(text, fg="green")


def bad(text: str) -> Shown:
    """Red."""
    return _styled(text, fg="red")


def dim(text: str) -> Shown:
    """Beside what was asked for."""
    return _styled(text, dim=True)


def progress(label: str, length: int = 1) -> "click._termui_impl.ProgressBar[int]":
    """A bar on standard error, for a `with`; shown to people, not in a log or a pipe."""
    out = sys.stderr if sys.stderr.isatty() else io.StringIO()
    return click.progressbar(length=length, label=label, file=out)


@contextmanager
def telling(label: str) -> Iterator[Callable[[int, int], None]]:
    """The same for what tells how much is done, and of how much, if it has anything to tell: no bar
    for a single step.
    """
    with ExitStack() as ending:
        bars: list[click._termui_impl.ProgressBar[int]] = []

        def told(done: int, of: int) -> None:
            if of > 1 and not bars:
                bars.append(ending.enter_context(progress(label, of)))
            for bar in bars:
                bar.update(done - bar.pos)

        yield told


def shown(text: str) -> Shown:
    """Names and descriptions may come from anybody: no escape sequences of theirs."""
    if isinstance(text, Shown):
        return text
    return Shown(
        "".join(
            c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
        )
    )


def _styled(text: str, **style: Any) -> Shown:
    coloured = to_people() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Shown(click.style(shown(text), **style)) if coloured else shown(text)


def _width(text: str) -> int:
    """Places that a text takes on a terminal: wide characters have two."""
    return sum(
        0 if unicodedata.category(c) in _FORMATS else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in click.unstyle(text)
    )
