"""geniuzfs doctor: what is wrong here, and the one command that mends it."""

import sys
from collections.abc import Iterator

import click

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.cli import cli, output
from geniuzfs.errors import EXIT_PROBLEMS
from geniuzfs.model import Finding


@cli.command()
@output.as_json
def doctor(as_json: bool) -> None:
    """Look at all that a mount needs. Exits with 8 when something is wrong.

    The machine, the folders, the model, the units of systemd, the clock and the disk.
    """
    found = []
    for finding in _findings(runtime.geniuz()):
        found.append(finding)
        if not as_json:
            _tell(finding)
    if as_json:
        shown = [{"ok": not one.mend, **one._asdict()} for one in found]
        output.tell_json({"ok": not any(one.mend for one in found), "findings": shown})
    if any(one.mend for one in found):
        sys.exit(EXIT_PROBLEMS)


def _findings(geniuz: Geniuz) -> Iterator[Finding]:
    from geniuzfs.fs import machine  # brings pyfuse3 and trio

    yield from machine.findings(geniuz.mounted())
    yield from geniuz.health().findings()


def _tell(finding: Finding) -> None:
    word = output.bad("wrong") if finding.mend else output.good("ok   ")
    click.echo(f"{word} {output.shown(f'{finding.part}: {finding.detail}')}")
    if finding.mend:
        click.echo(f"      mend it with: {output.shown(finding.mend)}")
