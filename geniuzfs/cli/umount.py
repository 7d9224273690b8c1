"""geniuzfs umount"""

import os
from pathlib import Path

import click

from geniuzfs import runtime
from geniuzfs.cli import cli, naming, output


@cli.command()
# Not click.Path: that asks for its status, which a dead mount may never give.
@click.argument("mountpoint", required=False, type=Path, shell_complete=naming.mounted)
@click.option("--lazy", is_flag=True, help="Detach now; what is open may still be finished.")
@click.option("--dead", is_flag=True, help="Clear away what a killed daemon left; else do nothing.")
@output.as_json
def umount(mountpoint: Path | None, lazy: bool, dead: bool, as_json: bool) -> None:
    """End the mount at MOUNTPOINT (default: ~/Memory). Everything is saved first."""
    from geniuzfs.fs import mount as fs  # brings pyfuse3 and trio

    target = Path(os.path.abspath(mountpoint or runtime.geniuz().config.mountpoint))
    if dead:
        fs.clear_dead(target)
    else:
        fs.unmount(target, lazy=lazy)
    if as_json:
        output.tell_json({"mountpoint": str(target)})
