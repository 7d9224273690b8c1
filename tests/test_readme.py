"""The README's commands do what it says they do, to the letter."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import geniuzfs
from geniuzfs import errors
from geniuzfs.api.directories import Directories
from geniuzfs.api.exporting import Exported
from geniuzfs.api.files import Files
from geniuzfs.api.opened import Opened
from geniuzfs.api.requests import Filters
from geniuzfs.api.sourced import SourcesOf
from geniuzfs.claude import COMMANDS
from geniuzfs.folders.mounts import mount_at
from geniuzfs.mcp import tools
from geniuzfs.mcp.clients import CLIENTS
from tests.surface.messages import Messages

DAY = "2026-11-29"
"""In place of the day on which the notes of the tour were written."""

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def _transcript() -> list[tuple[str, str]]:
    """The commands of the README's console block, each with the output it shows."""
    block = re.search(r"```console\n(.*?)```", README, re.DOTALL)
    assert block is not None
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block[1], re.MULTILINE)
    assert len(steps) > 10
    return steps


def test_the_tour_prints_what_the_readme_shows(tmp_path: Path) -> None:
    marker = "@@ end of step @@"
    script = "".join(f"{command} 2>&1\necho '{marker}'\n" for command, _ in _transcript())
    environment = {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "GENIUZ_EMBED_IDLE": "5",
    }
    (tmp_path / "run").mkdir(mode=0o700)
    try:
        done = subprocess.run(
            ["bash", "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            cwd="/",
        )
    finally:
        while mount_at(tmp_path / "Memory") is not None:
            subprocess.run(["umount", "--lazy", str(tmp_path / "Memory")], check=True)
    shown = done.stdout.replace(str(tmp_path), "/home/you").split(f"{marker}\n")
    today = re.compile(r"\d{4}-\d\d-\d\d(?=[],])")
    for (command, expected), output in zip(_transcript(), shown, strict=False):
        assert today.sub(DAY, output) == today.sub(DAY, expected), command


def test_the_program_prints_what_the_readme_shows(tmp_path: Path) -> None:
    block = re.search(r"```pycon\n(.*?)```", README, re.DOTALL)
    assert block is not None
    shown = re.sub(r"\d{4}-\d\d-\d\d(?=])", "...", block[1])
    (tmp_path / "shown.txt").write_text(shown, "utf-8")
    (tmp_path / "run").mkdir(mode=0o700)
    done = subprocess.run(
        [sys.executable, "-m", "doctest", "-o", "ELLIPSIS", str(tmp_path / "shown.txt")],
        env={
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
            "PYTHONUTF8": "1",
            "XDG_RUNTIME_DIR": str(tmp_path / "run"),
            "GENIUZ_EMBED_IDLE": "5",
        },
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_the_example_of_the_memory_tool_runs(tmp_path: Path) -> None:
    block = re.search(r"```python\n(import anthropic\n.*?)```", README, re.DOTALL)
    assert block is not None
    asked = {"command": "view", "path": "/memories/.recall/who signs"}
    with Messages([[{"command": "view", "path": "/memories"}, asked]]) as api:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", block[1]],
            env={
                "HOME": str(tmp_path),
                "PATH": os.environ["PATH"],
                "XDG_RUNTIME_DIR": str(tmp_path),
                "ANTHROPIC_API_KEY": "none",
                "ANTHROPIC_BASE_URL": api.url,
            },
            cwd=Path(__file__).parent.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.returncode) == ("Done.\n", 0), done.stderr
        assert [is_error for _, is_error in api.results()] == [False, False]
    section = README.partition("\n## Claude's memory tool\n")[2].partition("\n## ")[0]
    assert tuple(re.findall(r"^\| `([a-z_]+) PATH`", section, re.MULTILINE)) == COMMANDS


def test_every_call_of_a_program_is_in_the_readme() -> None:
    table = re.search(r"\| call \| answer \| errors \|.*?\n\n", README, re.DOTALL)
    assert table is not None
    listed = set(re.findall(r"`mem\.([a-z_.]+)\(", table[0]))
    calls = {name for name in vars(Opened) if not name.startswith("_")}
    calls -= {"folder"}  # a name, and no call
    calls |= {f"files.{name}" for name in vars(Files) if not name.startswith("_")}
    calls |= {f"directories.{name}" for name in vars(Directories) if not name.startswith("_")}
    calls |= {f"sources.{name}" for name in vars(SourcesOf) if not name.startswith("_")}
    assert listed == calls
    assert set(re.findall(r"`([A-Z][A-Za-z]+)`", table[0])) - set(geniuzfs.__all__) == {
        "None",
        "True",
        "False",
    }


def test_every_call_of_a_program_is_shown_with_its_parameters_and_answer() -> None:
    table = re.search(r"\| call \| answer \| errors \|.*?\n\n", README, re.DOTALL)
    assert table is not None
    rows = re.findall(r"^\| (`mem\..*?) \| (.*?) \|", table[0], re.MULTILINE)
    for calls, answer in rows:
        named = re.findall(r"`mem\.([a-z_.]+)\((.*?)\)`", calls)
        for name, shown in named:
            owner, _, method = name.rpartition(".")
            called = getattr({"": Opened, **PARTS}[owner], method)
            assert parameters(called, shown) == shown, name
            attributes = re.search(r"`(\.[^`]*)`", answer)
            for attribute in attributes[1].split() if attributes and len(named) == 1 else ():
                assert attribute[1:] in answered(called), (name, attribute)


PARTS = {"files": Files, "directories": Directories, "sources": SourcesOf}


def parameters(called: Any, shown: str) -> str:
    """Those of a call as the README shows them: filters have no default, `...` stands for some."""
    if "..." in shown:
        return shown
    told = []
    for one in list(inspect.signature(called).parameters.values())[1:]:
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            told += list(get_type_hints(Filters))
        elif one.default is inspect.Parameter.empty:
            told.append(one.name)
        else:
            told.append(f"{one.name}={json.dumps(one.default)}".replace("null", "None"))
    return ", ".join(told).replace("false", "False").replace("true", "True")


def answered(called: Any) -> set[str]:
    """The attributes of what a call gives; of a list or the like, of what is in it."""
    given = get_type_hints(called, localns={"Exported": Exported})["return"]
    kinds = [kind for kind in (given, *get_args(given)) if isinstance(kind, type)]
    return {name for kind in kinds for name in (*dir(kind), *vars(kind).get("__annotations__", ()))}


def test_the_test_command_is_the_one_that_ci_runs() -> None:
    ci = (Path(__file__).parent.parent / ".ci" / "run").read_text()
    assert "bash .ci/test" in README
    assert "bash .ci/test" in ci


def test_every_setting_is_in_the_readme() -> None:
    config = (Path(__file__).parent.parent / "geniuzfs" / "config.py").read_text()
    settings = set(re.findall(r'"(GENIUZ_[A-Z_]+)"', config))
    assert settings == set(re.findall(r"^\| `(GENIUZ_[A-Z_]+)` \|", README, re.MULTILINE))


def test_every_exit_code_is_in_the_readme() -> None:
    classes = [errors.GeniuzError]
    for known in classes:
        classes += known.__subclasses__()
    codes = {known.exit_code for known in classes} | {
        0,
        errors.EXIT_PROBLEMS,
        errors.EXIT_INTERRUPTED,
    }
    listed = re.search(r"Exit codes: (.*?)\.\n", README, re.DOTALL)
    assert listed is not None
    assert codes == {int(code) for code in re.findall(r"\b(\d+) ", listed[1])}


def test_every_tool_and_client_is_in_the_readme() -> None:
    section = README.partition("\n## MCP\n")[2].partition("\n## ")[0]
    table = section.partition("| tool |")[2].partition("\n\n")[0]
    listed = " ".join(re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", listed)) == {tool.name for tool in tools.ALL}
    rows = re.findall(r"^\| `([\w-]+)` \| `~/(.*?)` \| `(\w+)` \|", section, re.MULTILINE)
    assert rows == [(one.name, one.path, one.key) for one in CLIENTS.values()]
