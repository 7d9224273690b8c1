"""geniuzfs recall: the flags are the operators of a question, and are read as those are."""

import sys

import click

from geniuzfs import runtime
from geniuzfs.cli import cli
from geniuzfs.recall import render
from geniuzfs.recall.query import LONGEST, Format


@cli.command()
@click.argument("words", nargs=-1, metavar="QUERY...")
@click.option("--in", "name", metavar="NAME", help="Ask this folder alone.")
@click.option(
    "--since",
    metavar="WHEN",
    help="7d (h, d, w, m, y), 2026-10-01, 2026-10, today, 12:30, RFC 3339.",
)
@click.option("--until", metavar="WHEN", help="The same; a day, month or year counts to its end.")
@click.option("--on", metavar="DAY", help="One day, month or year.")
@click.option("--path", metavar="PATH", help="This file, or what lies beneath this directory.")
@click.option("--label", "labels", metavar="KEY=VALUE", multiple=True, help="With this label.")
@click.option("--limit", metavar="N", help="Hits at most: 10, or what you say up to 200.")
@click.option(
    "--mode", metavar="MODE", help="auto, words, meaning, grep, thread, random or recent."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def recall(
    words: tuple[str, ...],
    name: str | None,
    since: str | None,
    until: str | None,
    on: str | None,
    path: str | None,
    labels: tuple[str, ...],
    limit: str | None,
    mode: str | None,
    as_json: bool,
) -> None:
    """Find what your folders know about QUERY, by meaning and by words.

    QUERY may hold operators instead of the flags: since:7d, until:2026-10-01, on:yesterday,
    path:drafts/, label:channel=claude, limit:20, mode:words, format:json. Words in double quotes
    must be in the answer as they stand (your shell takes one pair of quotes for itself). A QUERY
    of - is read from standard input. Without words, the newest notes of a time, path or label are
    listed.

    Exits with 0 when there is an answer, also when that is: nothing found.
    """
    geniuz = runtime.geniuz()
    flags = {"since": since, "until": until, "on": on, "path": path, "limit": limit, "mode": mode}
    query = geniuz.parse(_asked(words), operators(flags, labels, as_json))
    answer = geniuz.recall(name, query)
    if query.format is Format.JSON:
        written = render.json(answer)
    else:
        written = render.text(answer, show_folder=name is None)
    # As bytes: notes are UTF-8, whatever the terminal's locale says.
    click.echo(written.encode(), nl=False)


def operators(
    flags: dict[str, str | None], labels: tuple[str, ...], as_json: bool
) -> list[tuple[str, str]]:
    """The flags as a question's operators, (key, value)."""
    given = [(key, value) for key, value in flags.items() if value is not None]
    given += [("label", label) for label in labels]
    return given + [("format", "json")] * as_json


def _asked(words: tuple[str, ...]) -> str:
    if words != ("-",):
        return " ".join(words)
    most = 4 * LONGEST + 1  # bytes: more characters than may be asked, so that it is refused
    return sys.stdin.buffer.read(most).decode("utf-8", "surrogateescape")
