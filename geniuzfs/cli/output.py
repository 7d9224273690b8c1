"""How commands speak to people, pipes and programs.

Hides: what a terminal gets that a pipe does not. Promises: whatever names and texts say, no
escape sequence of theirs reaches a terminal; colours and bars go to terminals alone; with
--json, standard output is one JSON object and nothing else.
"""

import io
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
"""The option that every command has."""


def tell(text: str) -> None:
    """Print `text`, a line or several, as plain characters."""
    click.echo(shown(text))


def tell_json(values: Mapping[str, Any]) -> None:
    """Print the one JSON object of a command."""
    click.echo(json.dumps(values))


def table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns: aligned for people, apart by two blanks in a pipe."""
    widths = [0] * max((len(row) for row in rows), default=0)
    if sys.stdout.isatty():
        for row in rows:
            widths = [max(pair) for pair in zip(widths, map(len, row), strict=True)]
    for row in rows:
        cells = [shown(cell).ljust(width) for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())


def heading(text: str) -> str:
    """Bold on a terminal; click.echo takes the sequences away elsewhere."""
    return click.style(shown(text), bold=True)


def good(text: str) -> str:
    """Green on a terminal."""
    return click.style(shown(text), fg="green")


def bad(text: str) -> str:
    """Red on a terminal."""
    return click.style(shown(text), fg="red")


def progress(label: str, length: int = 1) -> "click._termui_impl.ProgressBar[int]":
    """A bar on standard error, for a `with`; shown to people, not in a log or a pipe."""
    out = sys.stderr if sys.stderr.isatty() else io.StringIO()
    return click.progressbar(length=length, label=label, file=out)


def shown(text: str) -> str:
    """Names and descriptions may come from anybody: no escape sequences of theirs."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )
