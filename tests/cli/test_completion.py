"""Completion, as the shell itself asks for it."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.examples import World, world
from tests.cli.program import run


@pytest.fixture
def there(tmp_path: Path) -> World:
    made = world(tmp_path)
    for name in ("My plans (2026)", 'He said "tea"', "a*b"):
        made.geniuz.arranging.new(name)
    program = tmp_path / "bin" / "geniuzfs"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m geniuzfs "$@"\n')
    program.chmod(0o755)
    return made


def completed(there: World, *words: str) -> list[str]:
    """What bash offers after `geniuzfs` and these words as they are typed, the last begun."""
    typed = " ".join(shlex.quote(word) for word in ("geniuzfs", *words))
    script = (
        'eval "$(geniuzfs completion bash)"; complete -p geniuzfs >/dev/null || exit 9;'
        f"COMP_WORDS=({typed}); COMP_CWORD={len(words)}; _geniuzfs_completion geniuzfs;"
        'for each in "${COMPREPLY[@]}"; do printf "%s\\n" "$each"; done'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={
            **os.environ,
            **there.variables,
            "PATH": f"{there.directory / 'bin'}{os.pathsep}{os.environ['PATH']}",
        },
        cwd=there.directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_commands_and_options_complete(there: World) -> None:
    assert completed(there, "rec") == ["recall"]
    assert completed(there, "folder", "re") == ["rename", "restore"]
    assert completed(there, "recall", "--key") == ["--keyword"]
    assert completed(there, "recall", "--mode", "me") == ["meaning"]
    assert "serve-model" not in completed(there, "")


@pytest.mark.parametrize("before", [["keep", "--in"], ["recall", "--in"], ["folder", "pin"]])
def test_folders_complete_and_are_one_word_for_bash(there: World, before: list[str]) -> None:
    assert completed(there, *before, "wo") == ["Work"]
    assert completed(there, *before, r"my\ m") == [r"My\ memory"]
    for begun, name in ((r"my\ p", "My plans (2026)"), ("he", 'He said "tea"'), ("a", "a*b")):
        (typed,) = completed(there, *before, begun)
        assert shlex.split(typed) == [name]
        shown = f"set -- {typed}; printf '%s\\n' $# \"$1\""
        words = subprocess.run(["bash", "-c", shown], capture_output=True, text=True, check=True)
        assert words.stdout.splitlines() == ["1", name]


def test_within_a_quote_a_name_stays_as_it_is(there: World) -> None:
    for quote in ("'", '"'):
        assert completed(there, "keep", "--in", f"{quote}My m") == ["My memory"]


def test_archived_folders_are_offered_to_be_restored_and_no_others(there: World) -> None:
    assert completed(there, "folder", "restore", "") == ["Old"]
    assert "Old" not in completed(there, "folder", "archive", "")


def test_damaged_folders_cost_names_and_no_error(there: World) -> None:
    (there.home / "folders.json").write_text("?")
    assert completed(there, "keep", "--in", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(there: World, shell: str) -> None:
    done = run(there.directory, "completion", shell, **there.variables)
    assert (done.code, done.stderr) == (0, "")
    assert f"_GENIUZFS_COMPLETE={shell}_complete" in done.stdout
    if shell == "bash":  # click's script, mended in two places
        assert "read -r type" in done.stdout
        assert '("$value")' in done.stdout


def test_there_is_none_for_another_shell(there: World) -> None:
    done = run(there.directory, "completion", "ksh", **there.variables)
    assert (done.code, done.stdout) == (2, "")
    assert "bash, zsh, fish" in done.stderr
