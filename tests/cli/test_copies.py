"""`geniuzfs backup`, `restore`, `export`, `import` and `replica`: what they say and exit with."""

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from geniuzfs import runtime
from geniuzfs.cli import main
from geniuzfs.config import Config
from geniuzfs.folders import replicas


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Commands:
    """The program, in this process, with a data directory of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def run(self, *words: str | Path) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setenv("GENIUZ_HOME", str(self.home))
            patch.setattr(sys, "argv", ["geniuzfs", *map(str, words)])
            with pytest.raises(SystemExit) as ended:
                main()
        code = ended.value.code
        return Done(code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())

    def told(self, *words: str | Path) -> dict[str, Any]:
        done = self.run(*words, "--json")
        assert (done.code, done.err) == (0, "")
        told: dict[str, Any] = json.loads(done.out)
        return told

    def refused(self, *words: str | Path) -> int:
        done = self.run(*words)
        assert done.out == ""
        assert len(done.err.splitlines()) == 1
        return done.code


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    commands = Commands(tmp_path / "home")
    commands.told("keep", "Tea at four.")
    commands.told("folder", "new", "Lumen")
    return commands


def test_a_backup_is_restored_elsewhere_and_here(commands: Commands, tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    made = commands.told("backup", shelf)["backups"]
    assert [one["folder"] for one in made] == ["My memory", "Lumen"]
    assert {Path(one["path"]).name for one in made} == set(os.listdir(shelf))
    said = commands.run("backup", shelf / "x", "--in", "lumen")
    assert said == (0, f"Lumen: {shelf / 'x'} ({(shelf / 'x').stat().st_size} bytes)\n", "")
    other = Commands(tmp_path / "other")
    restored = other.run("restore", made[0]["path"])
    assert restored == (0, f"restored: My memory  {other.home / 'memory.db'}\n", "")
    assert other.told("status")["folders"][0]["memories"] == 1
    restored = commands.run("restore", made[1]["path"])
    where = commands.home / "Lumen (restored)" / "memory.db"
    assert restored.out.splitlines()[0] == f"restored: Lumen (restored)  {where}"
    assert "here still" in restored.out
    told = commands.told("restore", made[1]["path"], "--as", "Again", "--at", shelf)
    assert told["path"] == str(shelf / "Again" / "memory.db")
    assert told["was"] == {"folder": "Lumen", "uuid": made[1]["uuid"]}
    assert told["uuid"] != made[1]["uuid"]


def test_an_archive_is_imported_elsewhere_and_here(commands: Commands, tmp_path: Path) -> None:
    archive = tmp_path / "x.tar"
    told = commands.told("export", archive, "--in", "my memory")
    assert (told["memories"], told["path"], told["left_out"]) == (1, str(archive), [])
    other = Commands(tmp_path / "other")
    said = other.run("import", archive).out
    assert said == "imported: My memory (files and directories: 0, kept memories: 1)\n"
    told = commands.told("import", archive, "--as", "Again")
    assert (told["folder"], told["memories"], told["known"]) == ("Again", 1, 0)
    told = commands.told("import", archive, "--in", "Again")
    assert (told["memories"], told["known"]) == (0, 1)
    assert commands.run("export", tmp_path).out.startswith(
        "exported: My memory (files and directories: 0, kept memories: 1)  "
    )


def test_what_can_not_be_is_said_in_one_line(commands: Commands, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("mine")
    lines = {
        ("backup", there, "--in", "lumen"): 3,
        ("backup", there): 2,
        ("backup", tmp_path, "--in", "nobody"): 1,
        ("backup", tmp_path / "none" / "x", "--in", "lumen"): 1,
        ("restore",): 2,
        ("restore", there, "--from", "file:///x"): 2,
        ("restore", there, "--in", "lumen"): 2,
        ("restore", there): 6,
        ("restore", tmp_path / "none"): 1,
        ("restore", commands.home / "memory.db"): 10,
        ("restore", "--from", "nowhere"): 2,
        ("restore", "--from", "file:///x", "--at", "once"): 2,
        ("export", there): 3,
        ("export", "-", "--json"): 2,
        ("export", tmp_path / "x", "--in", "nobody"): 1,
        ("import", there): 2,
        ("import", tmp_path / "none"): 1,
        ("import", there, "--in", "lumen", "--as", "x"): 2,
        ("import", there, "--in", "nobody"): 1,
        ("import", there, "--as", "lumen"): 3,
        ("import", there, "--as", ".x"): 2,
        ("replica", "run", "nowhere"): 2,
    }
    before = sorted(commands.home.iterdir())
    assert {words: commands.refused(*words) for words in lines} == lines
    assert sorted(commands.home.iterdir()) == before
    assert there.read_text() == "mine"


def test_every_folder_has_a_place_of_its_own_in_a_replica(commands: Commands) -> None:
    folders = commands.told("folder", "list")["folders"]
    url = "s3://bucket/notes/?region=x"
    geniuz = runtime.geniuz(Config.from_environment({"GENIUZ_HOME": str(commands.home)}))
    told = json.loads(replicas.configuration(geniuz.folders(), url, commands.home))
    assert [(one["path"], one["replica"]["url"], one["meta-path"]) for one in told["dbs"]] == [
        (
            one["path"],
            f"s3://bucket/notes/{one['uuid']}?region=x",
            str(commands.home / ".replica" / one["uuid"]),
        )
        for one in folders
    ]
    told = json.loads(replicas.configuration(geniuz.folders(), "file:///a%20b", commands.home))
    assert told["dbs"][0]["replica"]["path"] == f"/a b/{folders[0]['uuid']}"
