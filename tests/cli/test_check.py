"""`geniuzfs check`: what it prints, what it mends, how it exits."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from geniuzfs import runtime
from geniuzfs.config import Config
from geniuzfs.errors import EXIT_PROBLEMS
from geniuzfs.model import ROOT
from geniuzfs.store import tree
from geniuzfs.store.connection import Database


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def broken(home: Path) -> Path:
    """A data directory whose folder has a wrong link count."""
    home.mkdir()
    made = Database.open(home / "memory.db", create=True)
    with made.txn() as txn:
        tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
        tree.create(txn, ROOT, b"note", tree.New(0o100644, 0, 0), 1)
        txn.run("UPDATE inodes SET nlink = 5 WHERE number = 2")
    made.close()
    return home


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "geniuzfs", *arguments],
        env={**os.environ, "GENIUZ_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )


def checked(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    (folder,) = json.loads(done.stdout)["folders"]
    assert isinstance(folder, dict)
    return folder


def test_the_command_exits_with_0_when_all_is_sound(broken: Path) -> None:
    run(broken, "check", "--repair")
    done = run(broken, "check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "My memory: 0 problems\n", "")


def test_a_folder_that_was_never_opened_is_sound(home: Path) -> None:
    (home / "Work").mkdir(parents=True)
    Database.open(home / "Work" / "memory.db", create=True).close()
    done = run(home, "check")
    assert (done.returncode, done.stdout) == (0, "Work: 0 problems\n")


def test_the_command_exits_with_its_own_code_and_says_what_is_wrong(broken: Path) -> None:
    done = run(broken, "check")
    assert done.returncode == EXIT_PROBLEMS == 8
    assert done.stdout == (
        "My memory: links_are_counted: inode 2 says 5 links and has 1\nMy memory: 1 problem\n"
    )


def test_the_command_repairs_and_exits_with_0(broken: Path) -> None:
    done = run(broken, "check", "--repair")
    assert done.returncode == 0
    assert done.stdout == (
        "My memory: mended: links_are_counted: inode 2 says 5 links and has 1\n"
        "My memory: 0 problems\n"
    )


def test_the_command_prints_one_json_object(broken: Path) -> None:
    problem = {
        "rule": "links_are_counted",
        "detail": "inode 2 says 5 links and has 1",
        "mendable": True,
    }
    done = run(broken, "check", "--json")
    assert done.returncode == EXIT_PROBLEMS
    found = {"folder": "My memory", "problems": [problem], "lost": [], "kept": None}
    assert checked(done) == {**found, "left": [problem]}
    done = run(broken, "check", "--json", "--repair", "--in", "my MEMORY")
    assert done.returncode == 0
    assert checked(done) == {**found, "left": []}


def test_the_command_repairs_in_as_many_rounds_as_it_takes(broken: Path) -> None:
    with closing(sqlite3.connect(broken / "memory.db", isolation_level=None)) as plain:
        plain.executescript("DROP TABLE due; DELETE FROM inodes WHERE number = 1")
    done = run(broken, "check", "--repair")
    assert (done.returncode, run(broken, "check").returncode) == (0, 0)
    assert "mended: schema_is_whole: due is missing" in done.stdout


def test_a_folder_that_can_not_be_read_is_a_problem_and_not_left_out(broken: Path) -> None:
    (broken / "work").mkdir()
    (broken / "work" / "memory.db").write_bytes(b"no database " * 1000)
    done = run(broken, "check", "--repair")
    assert done.returncode == EXIT_PROBLEMS
    assert "My memory: 0 problems\n" in done.stdout
    assert "work: can_be_read: file is not a database\nwork: repair: it is no" in done.stdout
    assert (broken / "work" / "memory.db").read_bytes() == b"no database " * 1000


def test_a_check_of_several_folders_tells_how_many_are_done(broken: Path) -> None:
    geniuz = runtime.geniuz(Config.from_environment({"GENIUZ_HOME": str(broken)}))
    geniuz.arranging.new("Work")
    told: list[tuple[int, int]] = []
    geniuz.check(None, repair=False, told=lambda done, of: told.append((done, of)))
    assert told == [(0, 2), (1, 2), (2, 2)]
