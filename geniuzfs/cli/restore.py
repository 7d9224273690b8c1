"""geniuzfs restore"""

from pathlib import Path

import click

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.api.backups import Restored
from geniuzfs.cli import cli, output
from geniuzfs.errors import UsageError


@cli.command()
@click.argument("backup", required=False, type=Path)
@click.option("--as", "name", metavar="NAME", help="What the folder is to be called.")
@click.option("--at", metavar="DIR|TIME", help="In this directory; of a replica: as it was then.")
@click.option("--from", "url", metavar="URL", help="Of this replica instead of a BACKUP.")
@click.option("--in", "which", metavar="NAME", help="Of the replica, this folder: name or UUID.")
@output.as_json
def restore(
    backup: Path | None,
    name: str | None,
    at: str | None,
    url: str | None,
    which: str | None,
    as_json: bool,
) -> None:
    """Make a folder of BACKUP, a file that "geniuzfs backup" has made.

    No folder that is here is changed. One that is here no longer comes back as itself; where it is
    here still, the backup becomes a folder beside it, called "NAME (restored)" or what --as says.

    With --from it is what a replica holds, now or at TIME: 2h, 12:30, 2026-10-01T12:30.
    """
    geniuz = runtime.geniuz()
    if (backup is None) == (url is None):
        raise UsageError("say what to restore: geniuzfs restore BACKUP, or --from URL")
    if url is not None:
        restored = _from_replica(geniuz, url, at, which, name)
    elif backup is not None and which is None:
        within = None if at is None else Path(at)
        with output.telling("restoring") as told:
            restored = geniuz.copies.backups().restore(backup, name, within, told)
    else:
        raise UsageError("--in chooses among the folders of a replica: a BACKUP holds one")
    _tell(restored, as_json)


def _from_replica(
    geniuz: Geniuz, url: str, at: str | None, which: str | None, name: str | None
) -> Restored:
    until = None if at is None else geniuz.parse("restore", [("until", at)]).until_ns
    return geniuz.copies.replicating().restore(url, which, until, name)


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
