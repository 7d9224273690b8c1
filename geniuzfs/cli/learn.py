"""geniuzfs learn"""

import sys

import click

from geniuzfs import runtime
from geniuzfs.cli import cli, naming, output


@cli.command()
@naming.in_folder("Learn this folder alone.")
@click.option("--wait", is_flag=True, help="Show how far it is (what happens without it as well).")
@click.option("--again", is_flag=True, help="Look at every file again, learned or not.")
@click.option("--follow", is_flag=True, hidden=True, help="Go on until standard input ends.")
@output.as_json
def learn(name: str | None, wait: bool, again: bool, follow: bool, as_json: bool) -> None:
    """Learn what is still to be learned, or wait until the mount has done so.

    A mount learns by itself; this is for folders that are not mounted, and for scripts that
    want to be sure. Without a model the words alone are learned.
    """
    geniuz = runtime.geniuz()
    with geniuz.learning(name) as learning:
        if follow:
            learning.follow(sys.stdin)
            return
        if again:
            learning.again()
        note = ""
        with output.progress("learning") as bar:
            for progress in learning.until_done():
                left, note = progress.sources + progress.passages, progress.model_note
                bar.length = max(bar.length or 1, left)
                bar.update(bar.length - left - bar.pos)
    if as_json:
        output.tell_json({"learned": True, "meaning": not note, "note": note})
    else:
        output.tell(f"learned, words only: {note}" if note else "learned")
