"""geniuzfs doctor: what is wrong here, and the one command that mends it."""

import shlex
import sys
from collections.abc import Iterator

import click

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.cli import cli, output, units
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
    yield from _units()


def _units() -> Iterator[Finding]:
    if not units.there():
        detail = "none for this user: geniuzfs mount mounts in the background"
        yield Finding("systemd", detail)
        return
    installed = units.installed()
    if not installed:
        yield Finding("systemd", "no units: geniuzfs service install mounts at every login")
        return
    for unit in installed:
        yield _unit(unit, units.state(unit))
    after = "from boot on" if units.lingers() else "while you are logged in"
    yield Finding("linger", f"units run {after}")


def _unit(unit: str, state: dict[str, str]) -> Finding:
    enabled, active = state.get("UnitFileState", ""), state.get("ActiveState", "")
    said = f"{enabled}, {active}"
    if enabled not in ("enabled", "static"):
        return Finding(unit, said, "geniuzfs service install")
    if active != "active" and not (enabled == "static" and active == "inactive"):
        return Finding(unit, said, f"systemctl --user restart {shlex.quote(unit)}")
    return Finding(unit, said)


def _tell(finding: Finding) -> None:
    word = output.bad("wrong") if finding.mend else output.good("ok   ")
    click.echo(f"{word} {output.shown(f'{finding.part}: {finding.detail}')}")
    if finding.mend:
        click.echo(f"      mend it with: {output.shown(finding.mend)}")
