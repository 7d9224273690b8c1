"""The command line: each command parses, makes one call, prints.

Hides: that a command's module is imported when it is called. All of them took 0.35 s, and `keep`,
which hooks and agents call all the time, is done in 0.08.
"""

import atexit
import gc
import importlib
import sys
from pathlib import Path

import click

from geniuzfs import __version__
from geniuzfs.errors import GeniuzError

_MODULES = {
    "capture": "capture",
    "check": "check",
    "folder": "folder",
    "keep": "keep",
    "learn": "learn",
    "model": "model",
    "mount": "mount",
    "recall": "recall",
    "serve-model": "serve",
    "status": "status",
    "umount": "umount",
}
"""Command → the module that makes it."""

_BRIEF = frozenset({"keep", "recall"})
"""Commands that hooks and agents call all the time, and that end in a moment."""

_OBJECTS = 100_000
"""After so many more a brief command looks for cycles among what it holds."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _BRIEF:
            _collect_late()
        if cmd_name in _MODULES:
            importlib.import_module(f"geniuzfs.cli.{_MODULES[cmd_name]}")
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="geniuzfs")
def cli() -> None:
    """Memories as files: mount your folders, write with any program, find by meaning."""


def _collect_late() -> None:
    """What is imported stays: to look through it for garbage again and again took 30 ms of the
    250 of `recall`, and to do so once more before the process ends another 30.
    """
    gc.set_threshold(_OBJECTS)
    atexit.register(gc.freeze)


def here() -> Path | None:
    """The directory that a command is run in; None where it has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def main() -> None:
    """The program. Exit codes: see geniuzfs.errors; what fails says so in one line."""
    try:
        cli(prog_name="geniuzfs")
    except GeniuzError as error:
        click.echo(f"geniuzfs: {error}", err=True)
        sys.exit(error.exit_code)
