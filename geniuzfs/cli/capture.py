"""geniuzfs capture"""

from collections import Counter
from pathlib import Path

import click

from geniuzfs import runtime
from geniuzfs.api.capturing import Captured
from geniuzfs.cli import cli, here, naming, output

_TOLD = ("unreadable", "too large")
"""What was left out for these reasons is named, one a line: people would miss it."""


@cli.command()
@click.argument("paths", nargs=-1, required=True, type=Path, metavar="PATH...")
@naming.in_folder("Into this folder.")
@click.option("--into", metavar="DIR", help="Into this directory of it, which is made if need be.")
@click.option("--as-memories", is_flag=True, help="Keep each text as a memory instead.")
@click.option("--all", "everything", is_flag=True, help="What is ignored or temporary too.")
@click.option("--replace", is_flag=True, help="Overwrite files that are there with other bytes.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@output.as_json
def capture(
    paths: tuple[Path, ...],
    name: str | None,
    into: str | None,
    as_memories: bool,
    everything: bool,
    replace: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Bring existing files and directories into a folder, as "cp -a" would.

    A directory comes with all beneath it, but for what a .gitignore or .geniuzignore there covers,
    version control's own directories and temporary files. Links stay links. A file that is there
    with the same bytes is left as it is; one with other bytes is refused before anything is
    changed. Interrupted, it goes on when it is run again.
    """
    with output.progress("bringing in") as bar:

        def step(done: int, of: int) -> None:
            bar.length = of
            bar.update(done)

        captured = runtime.geniuz().capture(
            name,
            paths,
            into=into,
            as_memories=as_memories,
            everything=everything,
            replace=replace,
            dry_run=dry_run,
            here=here(),
            step=step,
        )
    if as_json:
        output.tell_json(_object(captured, dry_run))
        return
    output.tell(_line(captured, dry_run))
    counted = Counter(str(one.reason) for one in captured.left_out)
    if counted:
        output.tell("left out: " + ", ".join(f"{n} {reason}" for reason, n in counted.items()))
    for one in captured.left_out:
        if one.reason in _TOLD:
            output.complain(f"left out, {one.reason}: {one.path}")


def _line(captured: Captured, dry_run: bool) -> str:
    counts = (
        (captured.files, "files"),
        (captured.directories, "directories"),
        (captured.links, "links"),
        (captured.memories, "memories"),
    )
    came = ", ".join(f"{count} {what}" for count, what in counts if count)
    replaced = f", {captured.replaced} of them replaced" if captured.replaced else ""
    there = f"; {captured.already_there} there already" if captured.already_there else ""
    begun = "would bring in" if dry_run else "brought in"
    return f"{begun}: {came or 'nothing'} ({captured.bytes} bytes){replaced}{there}"


def _object(captured: Captured, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "files": captured.files,
        "directories": captured.directories,
        "links": captured.links,
        "memories": captured.memories,
        "bytes": captured.bytes,
        "already_there": captured.already_there,
        "replaced": captured.replaced,
        "left_out": [{"path": one.path, "reason": one.reason} for one in captured.left_out],
    }
