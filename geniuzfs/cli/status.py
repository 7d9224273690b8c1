"""geniuzfs status"""

from typing import Any

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
        output.tell(output.good("mounted"), f" at {path}")
    if not mounted:
        output.tell("nothing is mounted")
    if output.to_people() and folders:
        output.table([_COLUMNS, *map(_row, folders)])
    else:
        for folder in folders:
            output.tell(folder.line())
    for line in not_used:
        output.tell(output.bad(line))


_COLUMNS = ("", "files", "directories", "bytes", "memories", "passages", "to be learned")


def _row(status: FolderStatus) -> tuple[str, ...]:
    counted = status.counts
    numbers = (
        counted.files,
        counted.directories,
        counted.bytes,
        counted.memories,
        counted.passages,
        counted.due + counted.awaiting,
    )
    return output.heading(status.folder.name), *(f"{number:,}" for number in numbers)


def _object(status: FolderStatus) -> dict[str, Any]:
    return {
        "name": status.folder.name,
        "uuid": status.folder.identity.id,
        "path": str(status.folder.path),
        **status.counts._asdict(),
        "database_bytes": status.database_bytes,
        "wal_bytes": status.wal_bytes,
    }
