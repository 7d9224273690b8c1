"""geniuzfs check"""

import sys

import click

from geniuzfs import runtime
from geniuzfs.api import Checked
from geniuzfs.cli import cli, output
from geniuzfs.errors import EXIT_PROBLEMS


@cli.command()
@click.option("--in", "name", metavar="NAME", help="Check this folder alone.")
@click.option("--repair", is_flag=True, help="Mend what can be mended; no byte is lost.")
@output.as_json
def check(name: str | None, repair: bool, as_json: bool) -> None:
    """Look for anything broken in the folders' databases.

    Exits with 0 when all is sound (or was mended), with 8 when something is not.
    """
    checked = runtime.geniuz().check(name, repair=repair)
    if as_json:
        output.tell_json({"folders": [_as_json(one) for one in checked]})
    else:
        for one in checked:
            _tell(one)
    if any(one.left for one in checked):
        sys.exit(EXIT_PROBLEMS)


def _as_json(one: Checked) -> dict[str, object]:
    return {
        "folder": one.folder.name,
        "problems": [problem._asdict() for problem in one.problems],
        "left": [problem._asdict() for problem in one.left],
    }


def _tell(one: Checked) -> None:
    mended = [problem for problem in one.problems if problem not in one.left]
    for word, problems in (("mended: ", mended), ("", one.left)):
        for problem in problems:
            click.echo(f"{one.folder.name}: {word}{problem.rule}: {problem.detail}")
    count = f"{len(one.left)} problem{'' if len(one.left) == 1 else 's'}"
    click.echo(f"{one.folder.name}: {count}")
