"""geniuzfs completion: the script that has a shell complete commands, options and names."""

import os

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
)

from geniuzfs.cli import COMPLETING, PROGRAM, cli, naming, output

SHELLS = ("bash", "zsh", "fish")

_SPECIAL = frozenset(" \t\"'\\$`!&;|<>()[]{}*?#~")
"""What bash would take for something else than itself, somewhere in a word."""


class Bash(BashComplete):
    """Names with blanks: click's script gives bash the bare name, which is two words then."""

    source_template = BashComplete.source_template.replace(
        "read type value", "read -r type value"
    ).replace("COMPREPLY+=($value)", 'COMPREPLY+=("$value")')

    def format_completion(self, item: CompletionItem) -> str:
        """The name as it would be typed: within quotes as it is, else with backslashes."""
        begun = os.environ["COMP_WORDS"].split("\n")[int(os.environ["COMP_CWORD"]) :][:1]
        if item.type != "plain" or (begun and begun[0][:1] in ("'", '"')):
            return super().format_completion(item)
        typed = "".join(f"\\{c}" if c in _SPECIAL else c for c in item.value)
        return f"{item.type},{typed}"


add_completion_class(Bash, "bash")


@cli.command()
@click.argument("shell", metavar="SHELL", shell_complete=naming.words(*SHELLS))
@output.as_json
def completion(shell: str, as_json: bool) -> None:
    """Print the script that completes commands, options and folders' names in SHELL.

    SHELL is bash (4.4 or newer), zsh or fish.
    """
    if shell not in SHELLS:
        raise click.UsageError(f"there is a script for {', '.join(SHELLS)}, not for {shell!r}")
    found = get_completion_class(shell)
    assert found is not None
    script = found(cli, {}, PROGRAM, COMPLETING).source()
    if as_json:
        output.tell_json({"shell": shell, "script": script})
    else:
        click.echo(script)
