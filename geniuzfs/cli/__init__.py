"""The command line: each command parses, makes one call, prints."""

import sys

import click

from geniuzfs import __version__
from geniuzfs.errors import GeniuzError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="geniuzfs")
def cli() -> None:
    """Memories as files: mount your folders, write with any program, find by meaning."""


def main() -> None:
    """The program. Exit codes: see geniuzfs.errors; what fails says so in one line."""
    # Imported here, since the commands import `cli` from this module.
    from geniuzfs.cli import (  # noqa: F401
        check,
        keep,
        learn,
        model,
        mount,
        recall,
        serve,
        status,
        umount,
    )

    try:
        cli(prog_name="geniuzfs")
    except GeniuzError as error:
        click.echo(f"geniuzfs: {error}", err=True)
        sys.exit(error.exit_code)
