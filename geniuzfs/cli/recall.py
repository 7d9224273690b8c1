"""geniuzfs recall: the flags are the operators of a question, and are read as those are."""

import sys
from collections.abc import Sequence

import click

from geniuzfs import runtime
from geniuzfs.cli import cli, here, naming, output
from geniuzfs.errors import UsageError
from geniuzfs.recall import render
from geniuzfs.recall.query import LONGEST, Mode


@cli.command()
@click.argument("words", nargs=-1, metavar="QUERY...")
@naming.in_folder("Ask this folder alone.")
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
    "--mode",
    metavar="MODE",
    shell_complete=naming.words(*Mode),
    help="auto, words, meaning, grep, thread, random or recent.",
)
@click.option("--keyword", "modes", flag_value="words", multiple=True, help="--mode words.")
@click.option("--recent", "modes", flag_value="recent", multiple=True, help="--mode recent.")
@click.option("--random", "modes", flag_value="random", multiple=True, help="--mode random.")
@click.option(
    "--grep", "held", metavar="TEXT", multiple=True, help="What holds each TEXT, newest first."
)
@click.option("--thread", metavar="ID", help="The thread of this kept memory, from its root on.")
@click.option("--full", is_flag=True, help="Show texts to their end, and memories whole.")
@click.option("--all", "everywhere", is_flag=True, help="Ask every folder, whichever was chosen.")
@output.as_json
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
    modes: tuple[str, ...],
    held: tuple[str, ...],
    thread: str | None,
    full: bool,
    everywhere: bool,
    as_json: bool,
) -> None:
    """Find what your folders know about QUERY, by meaning and by words.

    Without --in the folder is asked that GENIUZ_DB, a file .geniuz-folder here or above, or
    "geniuzfs folder use" has chosen, and all of them where none was.

    A QUERY that is the address or ID of a kept memory opens it in full.

    QUERY may hold operators instead of the flags: since:7d, until:2026-10-01, on:yesterday,
    path:drafts/, label:channel=claude, limit:20, mode:words, grep:text, full:yes,
    format:json. Words in double quotes must be in the answer as they stand (your shell takes one
    pair of quotes for itself). A QUERY of - is read from standard input. Without words, the newest
    notes of a time, path or label are listed.

    Exits with 0 when there is an answer, also when that is: nothing found; with 1 when an address
    that was asked for is not there.
    """
    if everywhere and name is not None:
        raise UsageError("--all and --in exclude each other")
    if thread is not None and words:
        raise UsageError("--thread takes the ID of a memory, and no QUERY beside it")
    geniuz, place = runtime.geniuz(), here()
    if thread is None:
        asked = _asked(words)
    else:
        named = geniuz.open_memory(name, thread, here=place, everywhere=everywhere)
        asked = f"{named.folder.identity.id}:{named.memory.id}"
    flags = {"since": since, "until": until, "on": on, "path": path, "limit": limit, "mode": mode}
    given = operators(flags, labels, as_json) + kinds(modes, held, thread is not None, full)
    query = geniuz.parse(asked, given)
    if thread is not None:
        query = query._replace(asked=thread)
    answer = geniuz.recall(name, query, here=place, everywhere=everywhere)
    written = render.written(answer, query.format, show_folder=name is None, beside=_dim)
    # As bytes: notes are UTF-8, whatever the terminal's locale says.
    click.echo(written.encode(), nl=False)


def _dim(text: str) -> str:
    """What render.text has made is fit to be shown, and may hold more than output.shown lets be."""
    return output.dim(output.Shown(text))


def operators(
    flags: dict[str, str | None], labels: tuple[str, ...], as_json: bool
) -> list[tuple[str, str]]:
    """The flags as a question's operators, (key, value)."""
    given = [(key, value) for key, value in flags.items() if value is not None]
    given += [("label", label) for label in labels]
    return given + [("format", "json")] * as_json


def kinds(
    modes: Sequence[str], held: Sequence[str], thread: bool, full: bool
) -> list[tuple[str, str]]:
    """The flags for kinds of recall as a question's operators, (key, value)."""
    given = [("mode", mode) for mode in modes] + [("grep", text) for text in held]
    return given + [("mode", "thread")] * thread + [("full", "yes")] * full


def _asked(words: tuple[str, ...]) -> str:
    if words != ("-",):
        return " ".join(words)
    most = 4 * LONGEST + 1  # bytes: more characters than may be asked, so that it is refused
    return sys.stdin.buffer.read(most).decode("utf-8", "surrogateescape")
