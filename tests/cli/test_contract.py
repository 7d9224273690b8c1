"""What the README says of all commands holds of each: its table, --help, --json, exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from geniuzfs.cli import cli
from geniuzfs.errors import EXIT_INTERRUPTED
from geniuzfs.folders.mounts import mount_at
from tests.cli.examples import FAILS, SUCCEEDS, World, world
from tests.cli.program import Done, run, start

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def _commands(group: click.Group, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that is not hidden and does something itself, by what is typed."""
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                yield from _commands(command, f"{above}{name} ")
            elif not command.hidden:
                yield above + name, command


def _listed() -> Iterator[str]:
    """The commands in those tables of the README whose head is `geniuzfs` or `geniuzfs GROUP`."""
    head = re.compile(r"^\| `geniuzfs( [a-z-]+)?` \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)
    for table in head.finditer(README):
        above = (table[1] or "").strip()
        for row in table[2].splitlines():
            for call in re.findall(r"`([^`]+)`", row.split(" | ")[0]):
                words = re.match(r"[a-z -]+", call.partition("[")[0])
                assert words is not None, row
                yield " ".join([above, *words[0].split()]).strip()


COMMANDS = dict(_commands(cli))
GROUPS = {name.rpartition(" ")[0] for name in COMMANDS} - {""}


@pytest.fixture
def there(tmp_path: Path) -> Iterator[World]:
    made = world(tmp_path)
    yield made
    point = Path(made.names["mount"])
    if mount_at(point) is not None:
        done = run(tmp_path, "umount", str(point), **made.variables)
        assert done.code == 0, done.stderr


def _run(there: World, call: str, *more: str) -> Done:
    # What starts a daemon leaves it to the process that ends.
    how = start if call.startswith(("mount", "service install")) else run
    return how(there.directory, *there.words(call), *more, **there.variables)


def test_every_command_is_in_the_readme_and_none_that_is_not_there() -> None:
    assert set(_listed()) - GROUPS == set(COMMANDS)


def test_every_command_has_an_example() -> None:
    assert set(SUCCEEDS) == set(COMMANDS)


@pytest.mark.parametrize("name", ["", *sorted(GROUPS), *COMMANDS])
def test_every_command_has_a_help(tmp_path: Path, name: str) -> None:
    for flag in ("--help", "-h"):
        done = run(tmp_path, *name.split(), flag, GENIUZ_HOME=str(tmp_path / "home"))
        assert (done.code, done.stderr) == (0, "")
        assert done.stdout.startswith(f"Usage: {' '.join(['geniuzfs', name]).strip()} ")
    assert not (tmp_path / "home").exists()


# What `mcp serve` prints is the protocol, which ends with its input (tests/mcp).
@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"umount", "mcp serve"}))
def test_every_command_gives_one_json_object(there: World, name: str) -> None:
    done = _run(there, SUCCEEDS[name], "--json")
    # In this world there is no place for a helper, which is what doctor is for.
    assert (done.code, done.stderr) == (8 if name == "doctor" else 0, "")
    found = [json.loads(done.stdout)]
    if name == "mount":
        done = _run(there, SUCCEEDS["umount"], "--json")
        assert (done.code, done.stderr) == (0, "")
        found.append(json.loads(done.stdout))
    for each in found:
        assert isinstance(each, dict)
        assert each


def test_every_exit_code_has_an_example() -> None:
    told = re.search(r"Exit codes: (.*?)\.\n", README, re.DOTALL)
    assert told is not None
    codes = {int(code) for code in re.findall(r"\b(\d+) ", told[1])}
    assert codes - {0, 130} == set(FAILS)


@pytest.mark.parametrize("code", FAILS)
def test_what_fails_says_so_in_one_line_and_exits_as_the_readme_says(
    there: World, code: int
) -> None:
    FAILS[code].before(there)
    with FAILS[code].within(there):
        done = _run(there, FAILS[code].call, *(["--json"] if code % 2 else []))
    assert done.code == code, done.stderr
    assert done.stderr.startswith("geniuzfs: ")
    assert (done.stderr.count("\n"), done.stderr[-1]) == (1, "\n")
    assert (done.stdout == "") == (code != 8)


@pytest.mark.parametrize("call", ["nonsense", "folder nonsense", "keep tea --nonsense", "folder"])
def test_wrong_use_exits_with_2_and_says_where_the_right_one_is_told(
    there: World, call: str
) -> None:
    done = _run(there, call)
    assert (done.code, done.stdout) == (2, "")
    assert "--help" in done.stderr
    assert call == "folder" or done.stderr.count("\n") == 1


def test_what_is_interrupted_exits_as_shells_say_it(there: World) -> None:
    waited_for = there.directory / "fifo"
    os.mkfifo(waited_for)
    keeping = subprocess.Popen(
        [sys.executable, "-m", "geniuzfs", "keep", "-c", f"@{waited_for}"],
        env={**os.environ, **there.variables},
        stderr=subprocess.PIPE,
        text=True,
    )
    with waited_for.open("w"):  # opens when the other side has done so
        keeping.send_signal(signal.SIGINT)
        _, said = keeping.communicate(timeout=60)
    assert (keeping.returncode, said.strip()) == (EXIT_INTERRUPTED, "geniuzfs: stopped")
