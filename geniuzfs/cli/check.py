"""geniuzfs check"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from geniuzfs import runtime
from geniuzfs.cli import cli, naming, output
from geniuzfs.errors import EXIT_PROBLEMS

if TYPE_CHECKING:
    from geniuzfs.api.checking import Checked


@cli.command()
@naming.in_folder("Check this folder alone.")
@click.option("--repair", is_flag=True, help="Mend what can be mended; no byte is lost.")
@click.option("--rebuild-index", "rebuild", is_flag=True, help="Have all that was learned anew.")
@output.as_json
def check(name: str | None, repair: bool, rebuild: bool, as_json: bool) -> None:
    """Look for anything broken in the folders' databases.

    Where pages of a file can't be read, --repair brings what can be into a new one, keeps the
    damaged one beside it, as memory.db.damaged-TIME, and says what was lost. --rebuild-index
    repairs too.

    Exits with 0 when all is sound (or was mended), with 8 when something is not or was lost.
    """
    with output.telling("checking") as told:
        checked = runtime.geniuz().check(name, repair=repair, rebuild=rebuild, told=told)
    if as_json:
        output.tell_json({"folders": [_as_json(one) for one in checked]})
    else:
        _tell(checked)
    if any(one.left for one in checked):
        output.complain("there are problems: geniuzfs check --repair mends what can be mended")
    if any(one.left or one.lost for one in checked):
        sys.exit(EXIT_PROBLEMS)


def _as_json(one: "Checked") -> dict[str, object]:
    return {
        "folder": one.folder.name,
        "problems": [problem._asdict() for problem in one.problems],
        "left": [problem._asdict() for problem in one.left],
        "lost": one.lost,
        "kept": None if one.kept is None else str(one.kept),
    }


def _tell(checked: "Sequence[Checked]") -> None:
    for one in checked:
        _tell_all(one)
        if not output.to_people():
            output.tell(f"{one.folder.name}: {_count(one)}")
    if output.to_people():
        verdicts = (output.bad(_count(one)) if one.left else output.good("ok") for one in checked)
        output.table([(one.folder.name, said) for one, said in zip(checked, verdicts, strict=True)])


def _tell_all(one: "Checked") -> None:
    name = one.folder.name
    mended = [problem for problem in one.problems if problem not in one.left]
    for word, problems in (("mended: ", mended), ("", one.left)):
        for problem in problems:
            output.tell(f"{name}: {word}{problem.rule}: {problem.detail}")
    for line in one.lost:
        output.tell(f"{name}: lost: {line}")
    if one.kept is not None:
        output.tell(f"{name}: made anew; the damaged file is kept as {one.kept}")


def _count(one: "Checked") -> str:
    return f"{len(one.left)} problem{'' if len(one.left) == 1 else 's'}"
