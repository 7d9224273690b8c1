"""geniuzfs service: have systemd mount at login, and see what it says."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import click

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.cli import cli, output, units
from geniuzfs.cli.mount import start_daemon
from geniuzfs.errors import MountError

NO_MANAGER = "no systemd runs for this user here"
_LOG_LINES = 50


@cli.group()
def service() -> None:
    """Mount at login, by systemd."""


@service.command()
@click.argument("mountpoint", required=False, type=Path)
@click.option("--in", "alone", metavar="NAME", help="Mount this folder alone, as the root.")
@click.option("--replica", metavar="URL", help="Also copy every folder there as it changes.")
@output.as_json
def install(mountpoint: Path | None, alone: str | None, replica: str | None, as_json: bool) -> None:
    """Mount now and at every login (default: all folders at ~/Memory).

    With MOUNTPOINT, one mount more. The settings that are in the environment now (GENIUZ_...) hold
    for the service too. Where no systemd runs, as in a container, this mounts in the background.
    """
    geniuz = runtime.geniuz()
    target = Path(os.path.abspath(mountpoint or geniuz.config.mountpoint))
    geniuz.begin()
    if alone is not None:
        alone = geniuz.folder(alone).name
    if replica is not None:  # else the unit would fail again and again, where nobody looks
        geniuz.copies.replicating().command(replica)
    if not units.there():
        if replica is not None:
            run = f"geniuzfs replica run {shlex.quote(replica)}"
            raise MountError(f"{NO_MANAGER}: leave --replica out; {run} replicates until it ends")
        _mount_without(geniuz, target, alone, as_json)
        return
    usual = mountpoint is None
    unit = units.MOUNT if usual else units.instance(target)
    if not units.is_active(unit):
        _take_over(geniuz, target)
    changed = units.write(_texts(unit, target, alone, replica))
    wanted = [units.SOCKET, unit, *([units.REPLICA] if replica else [])]
    running = units.is_active(unit)
    units.ask("daemon-reload")
    units.ask("enable", "--quiet", *wanted)
    _start(wanted)
    if as_json:
        output.tell_json({"systemd": True, "mount": str(target), "units": wanted})
        return
    output.tell(f"mounted at {target}, now and at every login ({unit})")
    if changed and running:
        output.tell(f"it goes on as before until: systemctl --user restart {unit}")
    if not units.lingers():
        linger = f"sudo loginctl enable-linger {units.user()}"
        output.tell(f"to have it from boot on, and after you log out: {linger}")


@service.command()
@click.argument("mountpoint", required=False, type=Path)
@output.as_json
def uninstall(mountpoint: Path | None, as_json: bool) -> None:
    """End the mounts and remove their units; with MOUNTPOINT, those of that one alone.

    No note is touched. Drop-ins of your own stay.
    """
    paths, names = units.written(), units.installed()
    if mountpoint is not None:
        names = [units.instance(Path(os.path.abspath(mountpoint)))]
        paths = [path for path in paths if path.parent.name == f"{names[0]}.d"]
    if units.there() and names:
        units.ask("disable", "--quiet", "--now", *names)
    units.remove(paths)
    if units.there():
        units.ask("daemon-reload")
    if as_json:
        output.tell_json({"removed": [str(path) for path in paths], "units": names})
    else:
        output.tell("\n".join(f"removed: {path}" for path in paths) or "nothing was installed")


@service.command()
@output.as_json
def status(as_json: bool) -> None:
    """Show what systemd says of the units."""
    manager = units.there()
    states = {unit: units.state(unit) for unit in units.installed()} if manager else {}
    if as_json:
        known = {"systemd": manager, "lingers": units.lingers(), "units": states}
        output.tell_json({**known, "mounts": list(map(str, runtime.geniuz().mounted()))})
        return
    if not manager:
        output.tell(f"{NO_MANAGER}; geniuzfs mount mounts in the background")
    elif not states:
        output.tell("not installed; geniuzfs service install has systemd mount at every login")
    shown = [
        (unit, one["UnitFileState"], f"{one['ActiveState']} ({one['SubState']})", _detail(one))
        for unit, one in states.items()
    ]
    output.table(shown)


@service.command()
@click.option("--lines", "-n", default=_LOG_LINES, help="How many of the last.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes.")
@output.as_json
def logs(lines: int, follow: bool, as_json: bool) -> None:
    """Show what the mount and the helper have logged."""
    if not units.there():
        _tell_lines(_last_lines(runtime.geniuz().config.home / "mount.log", lines), as_json)
        return
    command = ["journalctl", "--user", "--no-pager", f"--lines={lines}", "--unit=geniuzfs*"]
    if follow and not as_json:
        sys.exit(subprocess.run([*command, "--follow"], env=units.environment()).returncode)
    shown = ["--output=cat"] if as_json else []
    done = subprocess.run(
        [*command, *shown], env=units.environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise MountError(f"journalctl: {done.stderr.strip()}")
    _tell_lines(done.stdout.splitlines(), as_json)


def _texts(unit: str, target: Path, alone: str | None, replica: str | None) -> dict[str, str]:
    """The files that are to be there."""
    names = [units.SOCKET, units.HELPER, units.MOUNT if unit == units.MOUNT else units.ANOTHER]
    texts = {name: units.filled(name) for name in names}
    if replica is not None:
        texts[units.REPLICA] = units.filled(units.REPLICA, url=replica)
    if alone is not None:
        name, text = units.drop_in(unit, ["mount", "--foreground", "--in", alone, str(target)])
        texts[name] = text
    return texts


def _take_over(geniuz: Geniuz, target: Path) -> None:
    """End a mount that was made by hand: what is open there is saved first."""
    if target not in geniuz.mounted():
        return
    from geniuzfs.fs import mount as fs  # brings pyfuse3 and trio

    fs.clear_dead(target)
    if target not in geniuz.mounted():
        return
    try:
        fs.unmount(target, lazy=False)
    except MountError as error:
        raise MountError(
            f"{error}; it was mounted by hand and has files open: close them, or"
            f" geniuzfs umount --lazy {target}, and install again"
        ) from error


def _start(wanted: list[str]) -> None:
    try:
        units.ask("start", *wanted)
    except MountError as error:
        said = subprocess.run(
            ["journalctl", "--user", "--no-pager", "-n2", "-ocat", f"--unit={wanted[1]}"],
            env=units.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        last = " ".join(said.stdout.split())
        raise MountError(f"{wanted[1]} did not start: {last or error}") from error


def _mount_without(geniuz: Geniuz, target: Path, alone: str | None, as_json: bool) -> None:
    from geniuzfs.fs import mount as fs  # brings pyfuse3 and trio

    there = target in geniuz.mounted() and fs.answers(target)
    if not there:
        arguments = ["mount", *(["--in", alone] if alone else []), str(target)]
        start_daemon(geniuz, target, arguments)
    if as_json:
        output.tell_json({"systemd": False, "mount": str(target), "units": []})
    else:
        how = "was mounted already" if there else "mounted in the background"
        output.tell(f"{NO_MANAGER}: {how} at {target}; geniuzfs umount ends it")


def _detail(state: dict[str, str]) -> str:
    restarts = state.get("NRestarts", "0")
    parts = [state.get("StatusText", ""), f"restarted {restarts} times" if restarts != "0" else ""]
    if state.get("Result", "success") != "success":
        parts.append(f"last result: {state['Result']}")
    return "; ".join(part for part in parts if part)


def _last_lines(path: Path, count: int) -> list[str]:
    return path.read_text("utf-8", "replace").splitlines()[-count:] if path.exists() else []


def _tell_lines(lines: list[str], as_json: bool) -> None:
    if as_json:
        output.tell_json({"lines": lines})
    else:
        output.tell("\n".join(lines))
