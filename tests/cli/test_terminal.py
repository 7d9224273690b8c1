"""What a command prints on a terminal, and what of it not in a pipe."""

import os
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from geniuzfs.cli import output
from tests import terminals
from tests.cli.examples import World, world
from tests.cli.program import start
from tests.folders.killing import other_disk

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture
def there(tmp_path: Path) -> World:
    return world(tmp_path)


def on_terminal(there: World, *words: str, **variables: str) -> str:
    """What the program writes to a terminal, standard error too."""
    main, terminal = terminals.opened()
    done = subprocess.Popen(
        [sys.executable, "-m", "geniuzfs", *words],
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **there.variables, **variables},
        cwd=there.directory,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    said = b""
    while select.select([main], [], [], 60)[0]:
        try:
            said += os.read(main, 65536)
        except OSError:  # the last one who had the terminal has ended
            break
    os.close(main)
    done.wait(60)
    return said.decode().replace("\r\n", "\n")


def in_pipe(there: World, *words: str) -> str:
    done = start(there.directory, *words, **there.variables)
    assert (done.code, done.stderr) == (0, "")
    return done.stdout


def test_an_answer_has_what_is_beside_the_text_dim(there: World) -> None:
    plain = in_pipe(there, "recall", "--keyword", "tea")
    found = on_terminal(there, "recall", "--keyword", "tea")
    *hits, searched = plain.splitlines()
    assert hits
    for hit, shown in zip(hits, found.splitlines(), strict=False):
        text, cited = hit.split(" [")
        assert shown == f"{text} \x1b[2m[{cited}\x1b[0m"
    assert found.splitlines()[len(hits) :] == [f"\x1b[2m{searched}\x1b[0m"]


def test_what_a_note_says_does_not_reach_a_terminal_as_a_command(there: World) -> None:
    there.geniuz.keep(None, "tea \x1b]0;mine\x07 \x1b[31mred \u202eturned")
    for said in (
        on_terminal(there, "recall", "--keyword", "mine"),
        on_terminal(there, "recall", "--keyword", "mine", "--full"),
        in_pipe(there, "recall", "--keyword", "mine"),
    ):
        assert r"tea \x1b]0;mine\x07 \x1b[31mred \u202eturned" in ESCAPES.sub("", said)
        assert not {"\x07", "\u202e", "\x1b"} & set(ESCAPES.sub("", said))


def test_lists_stand_in_columns_and_in_a_pipe_as_ever(there: World) -> None:
    folder = there.geniuz.arranging.new("日本")
    there.geniuz.arranging.describe(folder, "over\x1b[2Jthere")
    said = on_terminal(there, "folder", "list")
    assert "\x1b[2J" not in said
    before = [line.partition("/")[0] for line in ESCAPES.sub("", said).splitlines()]
    assert len({len(part) + 2 * part.count("日本") for part in before}) == 1
    assert "\x1b[32m*\x1b[0m  \x1b[1mMy memory\x1b[0m" in said
    piped = in_pipe(there, "folder", "list")
    assert piped.splitlines()[0] == f"* My memory  {there.home / 'memory.db'}"
    assert "\x1b" not in piped
    assert "to be learned" in on_terminal(there, "status")


def test_a_check_shows_how_far_it_is_and_says_ok_in_green(there: World) -> None:
    said = on_terminal(there, "check")
    assert "checking" in said
    assert "100%" in said
    assert "Work       \x1b[32mok\x1b[0m\n" in said
    assert in_pipe(there, "check") == "My memory: 0 problems\nWork: 0 problems\n"


def test_a_move_shows_how_much_is_copied_where_it_copies(there: World, tmp_path: Path) -> None:
    assert "copying" not in on_terminal(there, "folder", "move", "Work", there.names["empty"])
    with other_disk(tmp_path) as other:
        said = on_terminal(there, "folder", "move", "Work", str(other))
        assert "copying" in said
        assert "100%" in said
        assert f"moved: Work  {other / 'Work' / 'memory.db'}" in said


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_none_are_wanted(there: World, variables: dict[str, str]) -> None:
    said = on_terminal(there, "folder", "list", **variables)
    assert "\x1b" not in said
    assert "*  My memory    " in said


def test_errors_are_one_line_whatever_is_in_them(there: World) -> None:
    name = "a\n\x1b[31mb"
    done = start(there.directory, "recall", "--in", name, "tea", **there.variables)
    assert done.code == 1
    assert done.stderr.startswith("geniuzfs: ")
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_a_text_that_was_marked_as_fit_is_not_escaped_again() -> None:
    assert output.shown(output.Shown("\x1b[1mx")) == "\x1b[1mx"
    assert output.shown("\x1b[1mx") == r"\x1b[1mx"
