"""geniuzfs import"""

import io
import sys
from pathlib import Path

import click

from geniuzfs import runtime
from geniuzfs.cli import cli, naming, output
from geniuzfs.errors import UsageError


@cli.command("import")
@click.argument("source", metavar="SOURCE")
@naming.in_folder("Into this folder.")
@click.option("--as", "new_name", metavar="NAME", help="Into a new folder of this name.")
@output.as_json
def import_(source: str, name: str | None, new_name: str | None, as_json: bool) -> None:
    """Take the tar archive SOURCE (- for your input) into a folder, all of it or nothing.

    Without --in that is a new folder, called as the one that was exported. With it, a file of the
    archive that is in the folder already ends it, and kept memories that are there stay as they
    are. Archives of other programs are taken too, packed or not.
    """
    if name is not None and new_name is not None:
        raise UsageError("give --in for a folder that is here, or --as for a new one")
    geniuz = runtime.geniuz()
    exchange = geniuz.copies.exchange()
    read: Path | io.BufferedReader = Path(source)
    if source == "-":
        read = io.open(sys.stdin.fileno(), "rb", closefd=False)  # noqa: SIM115, UP020 - not ours
    with output.telling("importing") as told:
        if name is not None:
            folder = geniuz.folder(name)
            done = exchange.import_into(folder, read, told)
        else:
            done, (folder, _was) = exchange.import_new(read, new_name, told)
    for left_out in done.left_out:
        output.complain(f"left out: {left_out}")
    counted = {"files": done.files, "memories": done.memories, "known": done.known}
    if as_json:
        named = {"folder": folder.name, "uuid": folder.identity.id, "path": str(folder.path)}
        output.tell_json({**named, **counted, "left_out": done.left_out})
        return
    known = f", kept already: {done.known}" if done.known else ""
    output.tell(
        f"imported: {folder.name} (files and directories: {done.files},"
        f" kept memories: {done.memories}{known})"
    )
