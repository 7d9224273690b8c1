"""geniuzfs restore"""

from pathlib import Path

import click

from geniuzfs import runtime
from geniuzfs.api.backups import Restored
from geniuzfs.cli import cli, output


@cli.command()
@click.argument("backup", type=Path)
@click.option("--as", "name", metavar="NAME", help="What the folder is to be called.")
@click.option("--at", "within", metavar="DIR", type=Path, help="In this directory.")
@output.as_json
def restore(backup: Path, name: str | None, within: Path | None, as_json: bool) -> None:
    """Make a folder of BACKUP, a file that "geniuzfs backup" has made.

    No folder that is here is changed. One that is here no longer comes back as itself; where it is
    here still, the backup becomes a folder beside it, called "NAME (restored)" or what --as says.
    """
    with output.telling("restoring") as told:
        restored = runtime.geniuz().copies.backups().restore(backup, name, within, told)
    _tell(restored, as_json)


def _tell(restored: Restored, as_json: bool) -> None:
    folder, was = restored
    if as_json:
        output.tell_json(
            {
                "folder": folder.name,
                "uuid": folder.identity.id,
                "path": str(folder.path),
                "was": {"folder": was.name, "uuid": was.id},
            }
        )
        return
    output.tell(f"restored: {folder.name}  {folder.path}")
    if folder.identity.id != was.id:
        output.tell(f"{was.name!r} is here still: this is a folder of its own beside it")
