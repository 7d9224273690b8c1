"""geniuzfs check"""

import json
import sys

import click

from geniuzfs import runtime
from geniuzfs.cli import cli
from geniuzfs.errors import EXIT_PROBLEMS


@cli.command()
@click.option("--in", "name", metavar="NAME", help="Check this folder alone.")
@click.option("--repair", is_flag=True, help="Mend what can be mended; no byte is lost.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def check(name: str | None, repair: bool, as_json: bool) -> None:
    """Look for anything broken in the folders' databases.

    Exits with 0 when all is sound (or was mended), with 8 when something is not.
    """
    geniuz = runtime.geniuz()
    folders = [geniuz.folder(name)] if name is not None else geniuz.folders()
    checked = [geniuz.check(folder, repair=repair) for folder in folders]
    if as_json:
        found = [
            {
                "folder": one.folder.name,
                "problems": [problem._asdict() for problem in one.problems],
                "left": [problem._asdict() for problem in one.left],
            }
            for one in checked
        ]
        click.echo(json.dumps({"folders": found}))
    else:
        for one in checked:
            for problem in one.problems:
                click.echo(f"{one.folder.name}: {problem.rule}: {problem.detail}")
            mended = len(one.problems) - len(one.left) if repair else 0
            click.echo(
                f"{one.folder.name}: {len(one.left)} problems"
                + (f", {mended} mended" if mended else "")
            )
    if any(one.left for one in checked):
        sys.exit(EXIT_PROBLEMS)
