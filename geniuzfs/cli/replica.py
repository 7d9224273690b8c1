"""geniuzfs replica"""

import os

import click

from geniuzfs import runtime
from geniuzfs.cli import cli


@cli.group(hidden=True)
def replica() -> None:
    """Have your folders replicated as they change."""


@replica.command(hidden=True)  # it is for a service: it never ends
@click.argument("url")
def run(url: str) -> None:
    """Replicate every folder to URL until this is ended.

    URL is a place that Litestream knows: file:///directory, s3://bucket/path, sftp://user@host/path
    and more. Each folder goes into a directory called by its UUID. Folders that come later are
    taken in at the next start. "geniuzfs restore --from URL" brings one back.
    """
    geniuz = runtime.geniuz()
    geniuz.begin()
    command = geniuz.copies.replicating().command(url)
    os.execv(command[0], command)
