"""geniuzfs export"""

import sys
from pathlib import Path
from typing import IO

import click

from geniuzfs import runtime
from geniuzfs.api.exchange import Exported
from geniuzfs.cli import cli, here, naming, output
from geniuzfs.errors import UsageError


@cli.command()
@click.argument("destination", metavar="DEST")
@naming.in_folder("Export this folder.")
@click.option("--zstd", is_flag=True, help="Pack it with Zstandard.")
@output.as_json
def export(destination: str, name: str | None, zstd: bool, as_json: bool) -> None:
    """Write a folder as a tar archive to DEST: a new file, a directory, or - for your output.

    It holds the files exactly (bytes, holes, modes, owners, times, links, labels and other extended
    attributes) and, in .geniuz/, the kept memories as JSON lines. "geniuzfs import" and any tar
    read it: tar --xattrs --xattrs-include='*' -xf DEST. Earlier versions are not in it: "geniuzfs
    backup" has them.
    """
    geniuz = runtime.geniuz()
    folder = geniuz.arranging.meant(name, here())
    out: Path | IO[bytes] = Path(destination)
    if destination == "-":
        if as_json or sys.stdout.isatty():
            raise UsageError("an archive is not for a terminal, nor beside JSON: name a file")
        out = sys.stdout.buffer
    with output.telling(f"exporting {output.shown(folder.name)}") as told:
        done, path = geniuz.copies.exchange().export(folder, out, told, packed=zstd)
    for left_out in done.left_out:
        output.complain(f"left out, a socket: {left_out}")
    if as_json:
        output.tell_json({"folder": folder.name, "path": str(path), **done._asdict()})
    elif path is not None:
        output.tell(f"exported: {folder.name} ({_counted(done)})  {path}")


def _counted(done: Exported) -> str:
    return f"files and directories: {done.files}, kept memories: {done.memories}"
