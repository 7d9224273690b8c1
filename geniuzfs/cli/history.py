"""geniuzfs history"""

from datetime import datetime
from typing import Any

import click

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.api.histories import Named
from geniuzfs.cli import cli, here, naming, output
from geniuzfs.errors import UsageError

_LATELY = 50


@cli.command()
@click.argument("path", required=False)
@naming.in_folder("In this folder; PATH is counted from its top.")
@click.option("--keep-days", type=float, metavar="N", help="Keep versions for N days; 0: none.")
@click.option("--keep-bytes", type=int, metavar="N", help="Keep at most N bytes of them.")
@output.as_json
def history(
    path: str | None,
    name: str | None,
    keep_days: float | None,
    keep_bytes: int | None,
    as_json: bool,
) -> None:
    """Show the earlier versions of a file, which may be removed by now.

    PATH is a file in a mount, or counted from the top of the folder that commands mean here.
    Without PATH: the files that were changed or removed lately, and for how long the folder keeps
    versions. ~conflict marks a version that was replaced by a program that had not read it.
    """
    geniuz = runtime.geniuz()
    if keep_days is not None or keep_bytes is not None:
        if path is not None:
            raise UsageError("versions are kept by folder: leave the PATH out")
        geniuz.histories.keep(name, keep_days, keep_bytes, here())
    if path is None:
        _tell_changed(geniuz, name, as_json)
    else:
        _tell_versions(geniuz.histories.of(name, path, here()), as_json)


def _tell_versions(known: list[Named], as_json: bool) -> None:
    if as_json:
        output.tell_json({"versions": [_version(one) for one in known]})
        return
    output.table(
        [
            (one.name, _day(one.version.mtime_ns), str(one.version.size), one.version.writer)
            for one in known
        ]
    )


def _tell_changed(geniuz: Geniuz, name: str | None, as_json: bool) -> None:
    found = geniuz.histories.changed(name, here())
    kept = geniuz.histories.kept(name, here())
    if as_json:
        files = [
            {
                "path": "/" + one.path.decode("utf-8", "surrogateescape"),
                "removed": one.removed,
                "changed_ns": one.changed_ns,
                "versions": one.versions,
                "conflicts": one.conflicts,
            }
            for one in found
        ]
        output.tell_json({"files": files, "keep_days": kept.days, "keep_bytes": kept.bytes})
        return
    output.table(
        [
            (
                _day(one.changed_ns),
                "/" + one.path.decode("utf-8", "surrogateescape"),
                f"{one.versions} version{'s' if one.versions > 1 else ''}",
                ("removed " if one.removed else "") + ("conflict" if one.conflicts else ""),
            )
            for one in found[:_LATELY]
        ]
    )
    if len(found) > _LATELY:
        output.tell(f"and {len(found) - _LATELY} more files")
    most = "" if kept.bytes is None else f", at most {kept.bytes} bytes"
    output.tell(f"versions are kept for {kept.days:g} days{most}" if kept.days else "none are kept")


def _version(one: Named) -> dict[str, Any]:
    version = one.version
    return {
        "name": one.name,
        "replaced_ns": version.replaced_ns,
        "mtime_ns": version.mtime_ns,
        "size": version.size,
        "mode": version.mode,
        "writer": version.writer,
        "conflict": bool(version.blind),
    }


def _day(time_ns: int) -> str:
    return f"{datetime.fromtimestamp(time_ns // 10**9).astimezone():%Y-%m-%d %H:%M:%S}"
