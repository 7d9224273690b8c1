"""geniuzfs undo"""

import click

from geniuzfs import runtime
from geniuzfs.api.histories import Undone
from geniuzfs.cli import cli, here, naming, output


@cli.command()
@click.argument("path")
@click.option("--to", metavar="VERSION", help="Bring this version back: its name or its beginning.")
@naming.in_folder("In this folder; PATH is counted from its top.")
@output.as_json
def undo(path: str, to: str | None, name: str | None, as_json: bool) -> None:
    """Bring back what a file was before its last save, or a file that was removed.

    For a directory: the files that were last removed beneath it, all of them. What is there now
    becomes a version, so "undo" again undoes this.

    Of what was removed, files come back with their bytes and mode. They and the directories above
    them belong to the owner of the folder's top, and those directories have mode 755. Extended
    attributes, labels, links, devices and empty directories do not come back.
    """
    geniuz = runtime.geniuz()
    done = geniuz.histories.undo(name, path, to, here())
    if as_json:
        output.tell_json({"undone": [one._asdict() for one in done]})
        return
    for one in done:
        output.tell(_line(one))


def _line(one: Undone) -> str:
    if one.removed:
        return f"{one.path} is there again"
    return f"{one.path} is what it was until {one.version}"
