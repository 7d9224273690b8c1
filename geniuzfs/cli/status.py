"""geniuzfs status"""

from typing import Any

import click

from geniuzfs import runtime
from geniuzfs.api import FolderStatus
from geniuzfs.cli import cli, output


@cli.command()
@output.as_json
def status(as_json: bool) -> None:
    """Show what is mounted and what the folders hold."""
    geniuz = runtime.geniuz()
    folders, mounted = geniuz.status(), [str(path) for path in geniuz.mounted()]
    not_used = geniuz.arranging.seen().warnings()
    if as_json:
        shown = [_object(folder) for folder in folders]
        output.tell_json({"mounts": mounted, "folders": shown, "not_used": not_used})
        return
    for path in mounted:
        click.echo(f"mounted at {path}")
    if not mounted:
        click.echo("nothing is mounted")
    for folder in folders:
        click.echo(folder.line())
    for line in not_used:
        click.echo(line)


def _object(status: FolderStatus) -> dict[str, Any]:
    return {
        "name": status.folder.name,
        "uuid": status.folder.identity.id,
        "path": str(status.folder.path),
        **status.counts._asdict(),
        "database_bytes": status.database_bytes,
        "wal_bytes": status.wal_bytes,
    }
