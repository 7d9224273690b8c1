"""`geniuzfs folder`: what each command does, says and exits with."""

import io
import json
import os
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from geniuzfs.cli import main
from geniuzfs.store import check
from geniuzfs.store.connection import Database
from tests.folders.made import made


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Commands:
    """The program, with a data directory of its own, run in `here`. In this process: another one
    takes 0.4 s to start.
    """

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.here = directory / "here"
        self.here.mkdir()

    def run(self, *words: str | Path, **variables: str) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            for name, value in {"GENIUZ_HOME": str(self.home), **variables}.items():
                patch.setenv(name, value)
            patch.chdir(self.here)
            patch.setattr(sys, "argv", ["geniuzfs", "folder", *map(str, words)])
            with pytest.raises(SystemExit) as ended:
                main()
        code = ended.value.code
        return Done(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())

    def said(self, *words: str | Path, **variables: str) -> str:
        done = self.run(*words, **variables)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def told(self, *words: str | Path, **variables: str) -> list[dict[str, Any]]:
        """The folders of a command's JSON."""
        folders: list[dict[str, Any]] = json.loads(self.said(*words, "--json", **variables))[
            "folders"
        ]
        return folders

    def names(self) -> list[str]:
        return [one["name"] for one in self.told("list")]

    def refused(self, code: int, *words: str | Path, **variables: str) -> str:
        done = self.run(*words, **variables)
        assert (done.returncode, done.stdout) == (code, ""), done.stderr
        return done.stderr.splitlines()[-1]


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    commands = Commands(tmp_path)
    commands.told("new", "Lumen")
    return commands


def _sound(path: Path) -> None:
    database = Database.open(path)
    try:
        with database.snapshot() as view:
            assert list(check.problems(view)) == []
    finally:
        database.close()


def test_a_new_folder_is_listed_and_its_name_can_not_be_given_again(commands: Commands) -> None:
    (made_one,) = commands.told("new", "Work")
    assert made_one["path"] == str(commands.home / "Work" / "memory.db")
    assert commands.names() == ["My memory", "Lumen", "Work"]
    line = commands.refused(3, "new", "WORK")
    assert str(commands.home / "Work") in line
    for name in ("", " ", "a/b", ".x", "a\nb", "é" * 128):
        assert "can't be the name" in commands.refused(2, "new", name)
    assert commands.names() == ["My memory", "Lumen", "Work"]


def test_a_folder_called_archive_is_found_like_any_other(commands: Commands) -> None:
    commands.said("new", "archive")
    assert commands.names() == ["My memory", "archive", "Lumen"]
    commands.said("archive", "lumen")
    commands.said("restore", "lumen")
    assert commands.names() == ["My memory", "archive", "Lumen"]


def test_a_folder_can_be_made_elsewhere_and_is_found_there(
    commands: Commands, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    (one,) = commands.told("new", "Far", "--at", disk)
    assert one["path"] == str(disk / "Far" / "memory.db")
    made(disk / "beside")
    assert commands.names() == ["My memory", "Far", "Lumen"]
    assert "no directory" in commands.refused(1, "new", "Further", "--at", tmp_path / "absent")


def test_directories_are_added_on_purpose_and_once(commands: Commands, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    made(disk / "a")
    made(disk / "b")
    assert [one["name"] for one in commands.told("add", disk)] == ["a", "b"]
    assert commands.names() == ["My memory", "a", "b", "Lumen"]
    assert "already" in commands.refused(3, "add", disk)
    assert "already" in commands.refused(3, "add", "../disk")
    assert "already" in commands.refused(3, "add", commands.home)
    (tmp_path / "empty").mkdir()
    assert "folder new" in commands.refused(1, "add", tmp_path / "empty")
    assert "no directory" in commands.refused(1, "add", tmp_path / "absent")


def test_a_directory_that_holds_a_folder_already_here_is_refused(
    commands: Commands, tmp_path: Path
) -> None:
    shutil.copytree(commands.home / "Lumen", tmp_path / "disk" / "copy")
    line = commands.refused(3, "add", tmp_path / "disk")
    assert str(commands.home / "Lumen") in line
    made(tmp_path / "other" / "x", "LUMEN")
    assert "choose another" in commands.refused(3, "add", tmp_path / "other")
    assert commands.names() == ["My memory", "Lumen"]


def test_commands_mean_the_folder_in_use_until_something_nearer_says_otherwise(
    commands: Commands,
) -> None:
    commands.said("new", "Work")
    assert commands.said("use") == "commands here mean: My memory\n"
    assert commands.said("use", "LUMEN") == "commands here mean: Lumen\n"
    assert [one["name"] for one in commands.told("list") if one["meant"]] == ["Lumen"]
    (commands.here / ".geniuz-folder").write_text("work\n")
    assert commands.said("use") == "commands here mean: Work\n"
    file = str(commands.home / "memory.db")
    assert commands.said("use", GENIUZ_DB=file) == "commands here mean: My memory\n"
    (commands.here / ".geniuz-folder").unlink()
    assert commands.said("use", "--none") == "commands here mean: My memory\n"


def test_a_name_that_matches_nothing_is_an_error_everywhere(commands: Commands) -> None:
    for words in (
        ("use", "Lume"),
        ("pin", "Lume"),
        ("describe", "--in", "Lume"),
        ("archive", "Lume"),
        ("rename", "Lume", "x"),
        ("restore", "Lume"),
        ("archive", "./Lume"),
    ):
        assert "Lume" in commands.refused(1, *words)
    absent = str(commands.here / "memory.db")
    assert absent in commands.refused(1, "describe", GENIUZ_DB=absent)
    (commands.here / ".geniuz-folder").write_text("Lume")
    assert ".geniuz-folder" in commands.refused(1, "describe", "about something")


def test_a_description_is_kept_in_the_folder(commands: Commands) -> None:
    commands.said("describe", "--in", "lumen", "All about the \x1b[31mlamp")
    assert commands.told("describe", "--in", "lumen")[0]["description"].endswith("lamp")
    assert "All about the \\x1b[31mlamp" in commands.said("list")
    (commands.home / "Lumen").rename(commands.home / "else")
    assert commands.told("describe", "--in", "lumen")[0]["description"].endswith("lamp")


def test_pinned_folders_come_first(commands: Commands) -> None:
    commands.said("new", "Zoo")
    commands.said("pin", "zoo")
    commands.said("pin", "lumen")
    commands.said("pin", "zoo")
    assert commands.names() == ["Zoo", "Lumen", "My memory"]
    commands.said("pin", "--off", "zoo")
    assert commands.names() == ["Lumen", "My memory", "Zoo"]


def test_a_folder_is_renamed_and_stays_where_it_is(commands: Commands) -> None:
    (before,) = [one for one in commands.told("list") if one["name"] == "Lumen"]
    (after,) = commands.told("rename", "lumen", "LUMEN")
    assert after == {**before, "name": "LUMEN"}
    assert "choose another" in commands.refused(3, "rename", "lumen", "my memory")
    assert "can't be the name" in commands.refused(2, "rename", "lumen", "a/b")


def test_what_is_archived_is_not_read_and_comes_back_as_it_was(commands: Commands) -> None:
    (before,) = [one for one in commands.told("list") if one["name"] == "Lumen"]
    put = commands.home / "archive" / "Lumen"
    assert commands.said("archive", "lumen") == f"archived: {put}\n"
    assert commands.names() == ["My memory"]
    assert [one["name"] for one in commands.told("list", "--archived")] == ["Lumen"]
    commands.said("new", "Lumen")
    assert "choose another" in commands.refused(3, "restore", "lumen")
    commands.said("rename", "lumen", "Second")
    commands.said("archive", "second")
    (after,) = commands.told("restore", "lumen")
    assert after == before
    assert os.listdir(commands.home / "archive") == ["Lumen~2"]  # the second one's directory
    _sound(commands.home / "Lumen" / "memory.db")


def test_of_several_archived_folders_with_one_name_one_is_chosen_by_path(
    commands: Commands,
) -> None:
    commands.said("archive", "lumen")
    commands.said("new", "Lumen")
    commands.said("archive", "lumen")
    assert sorted(os.listdir(commands.home / "archive")) == ["Lumen", "Lumen~2"]
    assert "Lumen~2" in commands.refused(2, "restore", "lumen")
    commands.said("restore", commands.home / "archive" / "Lumen~2")
    assert commands.names() == ["My memory", "Lumen"]


def test_my_memory_stays_where_it_is(commands: Commands) -> None:
    assert "stays in" in commands.refused(10, "archive", "my memory")


def test_an_added_directory_that_is_a_folder_itself_is_archived_beside_itself(
    commands: Commands, tmp_path: Path
) -> None:
    made(tmp_path / "single", "Single")
    commands.said("add", tmp_path / "single")
    commands.said("archive", "single")
    assert (tmp_path / "archive" / "single" / "memory.db").exists()
    assert commands.names() == ["My memory", "Lumen"]
    commands.said("restore", "single")
    assert commands.names() == ["My memory", "Lumen", "Single"]


def test_two_copies_are_blocked_and_one_can_be_archived_by_its_path(commands: Commands) -> None:
    shutil.copytree(commands.home / "Lumen", commands.home / "copy")
    both = [str(commands.home / where / "memory.db") for where in ("Lumen", "copy")]
    for words in (("use", "lumen"), ("describe", "--in", "lumen", "x"), ("archive", "lumen")):
        line = commands.refused(10, *words)
        assert all(path in line for path in both)
    done = commands.run("list")
    assert [line[0] for line in done.stdout.splitlines()] == ["*", "!"]
    assert all(path in done.stdout.splitlines()[1] for path in both)
    done = commands.run("archive", commands.home / "copy")
    assert done.returncode == 0
    assert commands.names() == ["My memory", "Lumen"]
    assert "here as" in commands.refused(3, "restore", "lumen")
