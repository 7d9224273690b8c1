"""geniuzfs backup"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from geniuzfs import runtime
from geniuzfs.api import Folder
from geniuzfs.cli import cli, naming, output


@cli.command()
@click.argument("destination", metavar="DEST", type=Path)
@naming.in_folder("Back up this folder alone.")
@output.as_json
def backup(destination: Path, name: str | None, as_json: bool) -> None:
    """Copy your folders into DEST, also while they are mounted and written to.

    DEST is a directory, in which each folder gets a file called by its name and the time, or a new
    file for one folder. Each holds all that was saved before, with its history, and is compared
    with the folder. "geniuzfs restore" makes a folder of it.
    """
    made: list[dict[str, Any]] = []
    try:
        for one in runtime.geniuz().copies.backups().backup(destination, name, _bar):
            made.append(
                {
                    "folder": one.folder.name,
                    "uuid": one.folder.identity.id,
                    "path": str(one.path),
                    "bytes": one.bytes,
                }
            )
            if not as_json:
                output.tell(f"{one.folder.name}: {one.path} ({one.bytes} bytes)")
    finally:  # what was made is told, also where something could not be
        if as_json and made:
            output.tell_json({"backups": made})


def _bar(folder: Folder) -> AbstractContextManager[Callable[[int, int], None]]:
    return output.telling(f"backing up {output.shown(folder.name)}")
