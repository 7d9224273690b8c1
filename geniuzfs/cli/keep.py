"""geniuzfs keep"""

import sys
from pathlib import Path

import click

from geniuzfs import runtime
from geniuzfs.api.keeping import Held
from geniuzfs.cli import cli, here, naming, output
from geniuzfs.errors import NotFound, UsageError


@cli.command()
@click.argument("words", nargs=-1, metavar="TEXT...")
@click.option(
    "-c", "content", metavar="CONTENT", help="The text; @FILE: of a file; -: of your input."
)
@click.option("-g", "--gist", metavar="GIST", help="What it says in short. Default: its beginning.")
@click.option("-p", "--parent", metavar="ID", help="The memory that it continues.")
@naming.in_folder("Keep it in this folder.")
@output.as_json
def keep(
    words: tuple[str, ...],
    content: str | None,
    gist: str | None,
    parent: str | None,
    name: str | None,
    as_json: bool,
) -> None:
    """Keep TEXT as a memory, which nothing can change any more, and print its address.

    Without --in it is kept in the folder that commands mean here: "geniuzfs folder use" shows it.

    ID is an address, a memory's ID, or 4 characters of its beginning and more. If no memory has
    it, the text is kept all the same, at the beginning of a thread of its own.
    """
    if bool(words) == (content is not None):
        raise UsageError("say what to keep: geniuzfs keep TEXT, or -c @FILE, or -c -")
    text = " ".join(words) if content is None else _content(content)
    held = runtime.geniuz().keep(name, text, gist, parent, here=here())
    if held.parent_unknown:
        output.complain(f"no memory is called {parent}: a new thread was begun")
    if as_json:
        output.tell_json(_object(held))
    else:
        output.tell(f"kept {held.address}")


def _content(value: str) -> str:
    if value == "-":
        held = sys.stdin.buffer.read()
    elif value.startswith("@"):
        try:
            held = Path(value[1:]).read_bytes()
        except OSError as error:
            raise NotFound(f"{value[1:]} can't be read: {error.strerror}") from error
    else:
        return value
    return held.decode("utf-8", "surrogateescape")


def _object(held: Held) -> dict[str, object]:
    memory = held.memory
    return {
        "address": held.address,
        "uuid": memory.id,
        "folder": held.folder.name,
        "gist": memory.gist,
        "created_at": memory.created_at,
        "parent": None if memory.parent == memory.id else memory.parent,
        "parent_unknown": held.parent_unknown,
    }
