"""geniuzfs status"""

import json
import time
from typing import Any

import click

from geniuzfs import runtime
from geniuzfs.api import FolderStatus, Geniuz
from geniuzfs.cli import cli, output
from geniuzfs.cli.shown import Shown, look
from geniuzfs.fs.counted import told

WATCH_SECONDS = 1.0


@cli.command()
@click.option("--watch", "-w", is_flag=True, help="Go on until Ctrl-C.")
@click.option("--metrics", metavar="FILE", help="Write it for Prometheus; - is standard output.")
@output.as_json
def status(watch: bool, metrics: str | None, as_json: bool) -> None:
    """Show what is mounted, what the folders hold, and what is still to be learned."""
    geniuz = runtime.geniuz()
    if metrics is not None:
        from geniuzfs.cli import metrics as prometheus  # brings prometheus_client

        prometheus.write(look(geniuz), metrics)
    elif as_json:
        output.tell_json(_object(look(geniuz)))
    elif watch:
        _watch(geniuz)
    else:
        _tell(look(geniuz))


def _tell(shown: Shown) -> None:
    for path in shown.mounts:
        output.tell(output.good("mounted"), f" at {path}")
    if not shown.mounts:
        output.tell("nothing is mounted")
    if output.to_people() and shown.folders:
        output.table([_COLUMNS, *map(_row, shown.folders)])
    else:
        for folder in shown.folders:
            output.tell(folder.line())
    for waiting in filter(None, [one.waiting_line(shown.now_ns) for one in shown.folders]):
        output.tell(waiting)
    output.tell(shown.learns.line())
    for path, counters in shown.mounts.items():
        if counters is None:
            output.tell(output.bad(f"{path} does not answer"))
        else:
            output.tell("\n".join(told(counters)))
    for line in shown.not_used:
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


def _watch(geniuz: Geniuz) -> None:
    """Once a second on a terminal; in a pipe whenever something has changed."""
    before: Shown | None = None
    try:
        while True:
            shown = look(geniuz)
            if output.to_people():
                click.clear()
                _tell(shown)
            elif before is None or shown._replace(now_ns=0) != before._replace(now_ns=0):
                _tell(shown)
            before = shown
            time.sleep(WATCH_SECONDS)
    except KeyboardInterrupt:
        return


def _object(shown: Shown) -> dict[str, Any]:
    return {
        "mounts": [str(path) for path in shown.mounts],
        "folders": [_folder(folder, shown.now_ns) for folder in shown.folders],
        "not_used": shown.not_used,
        "learns": shown.learns._asdict(),
        "counters": {
            str(path): counters and json.loads(counters) for path, counters in shown.mounts.items()
        },
    }


def _folder(status: FolderStatus, now_ns: int) -> dict[str, Any]:
    return {
        "name": status.folder.name,
        "uuid": status.folder.identity.id,
        "path": str(status.folder.path),
        **status.counts._asdict(),
        "oldest_waits_seconds": status.waits(now_ns),
        "database_bytes": status.database_bytes,
        "wal_bytes": status.wal_bytes,
    }
