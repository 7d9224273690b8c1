"""The command line: each command parses, makes one call, prints.

Hides: that a command's module is imported when it is called. All of them took 0.35 s, and `keep`,
which hooks and agents call all the time, is done in 0.08.
"""

import atexit
import gc
import importlib
import os
import sys

import click

from geniuzfs import __version__
from geniuzfs.config import here as here
from geniuzfs.errors import EXIT_INTERRUPTED, GeniuzError

PROGRAM = "geniuzfs"
COMPLETING = "_GENIUZFS_COMPLETE"
"""The variable by which a shell's script asks what could come next."""

_MODULES = {
    "backup": "backup",
    "capture": "capture",
    "check": "check",
    "completion": "completion",
    "diff": "diff",
    "doctor": "doctor",
    "export": "export",
    "folder": "folder",
    "forget": "forget",
    "history": "history",
    "import": "imports",
    "keep": "keep",
    "learn": "learn",
    "mcp": "mcp",
    "model": "model",
    "mount": "mount",
    "recall": "recall",
    "replica": "replica",
    "restore": "restore",
    "serve-model": "serve",
    "service": "service",
    "status": "status",
    "umount": "umount",
    "undo": "undo",
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
            _hurry()
        if cmd_name in _MODULES:
            importlib.import_module(f"geniuzfs.cli.{_MODULES[cmd_name]}")
        return super().get_command(ctx, cmd_name)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=PROGRAM)
def cli() -> None:
    """Memories as files: mount your folders, write with any program, find by meaning."""


def _hurry() -> None:
    """What is imported stays: to look through it for garbage again and again took 30 ms of the
    250 of `recall`, and to do so once more before the process ends another 30. The thread that
    numpy starts for products of large matrices, which no question has, took 50 ms of the other CPU.
    """
    gc.set_threshold(_OBJECTS)
    atexit.register(gc.freeze)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def main() -> None:
    """The program. Exit codes: see geniuzfs.errors; what fails says so in one line."""
    from geniuzfs.cli import output

    if COMPLETING in os.environ:
        importlib.import_module("geniuzfs.cli.completion")  # says how it is done
    try:
        code = cli(prog_name=PROGRAM, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except GeniuzError as error:
        output.complain(str(error))
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as help_:
        help_.show()
        sys.exit(help_.exit_code)
    except click.ClickException as error:
        output.complain(_corrected(error))
        sys.exit(error.exit_code)
    except click.Abort as stopped:
        output.complain("stopped")
        sys.exit(EXIT_INTERRUPTED if isinstance(stopped.__cause__, KeyboardInterrupt) else 1)


def _corrected(error: click.ClickException) -> str:
    """What click says, and where the right way is told."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    place = PROGRAM if context is None else context.command_path
    return f"{error.format_message().rstrip('.')} (see {place} --help)"
