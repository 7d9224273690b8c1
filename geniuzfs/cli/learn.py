"""geniuzfs learn"""

import sys

import click

from geniuzfs import runtime
from geniuzfs.cli import cli


@cli.command()
@click.option("--in", "name", metavar="NAME", help="Learn this folder alone.")
@click.option("--wait", is_flag=True, help="Show how far it is (what happens without it as well).")
@click.option("--follow", is_flag=True, hidden=True, help="Go on until standard input ends.")
def learn(name: str | None, wait: bool, follow: bool) -> None:
    """Learn what is still to be learned, or wait until the mount has done so.

    A mount learns by itself; this is for folders that are not mounted, and for scripts that
    want to be sure. Without a model the words alone are learned.
    """
    geniuz = runtime.geniuz()
    with geniuz.learning(name) as learning:
        if follow:
            learning.follow(sys.stdin)
            return
        most, note = 0, ""
        with click.progressbar(length=1, label="learning", file=sys.stderr) as bar:
            for progress in learning.until_done():
                left = progress.sources + progress.passages
                most, note = max(most, left), progress.model_note
                bar.length = max(most, 1)
                bar.pos = most - left
                bar.update(0)
    if note:
        click.echo(f"learned, words only: {note}")
    else:
        click.echo("learned")
