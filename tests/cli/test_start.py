"""What a command brings with it when it starts: most of its time (tests/bench/start.py)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"markdown_it", "pathspec", "trio", "pyfuse3", "onnxruntime", "numpy.ma", "http.client"}
"""Nothing that keeps or asks has need of these, unless it learns what is due."""


@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        (["keep", "text"], HEAVY | {"numpy", "subprocess"}),
        (["recall", "--keyword", "tea"], HEAVY | {"subprocess"}),
        (["folder", "list"], HEAVY | {"numpy", "subprocess"}),
        (["--help"], HEAVY | {"numpy"}),
    ],
)
def test_a_command_imports_nothing_heavy(
    tmp_path: Path, command: list[str], heavy: set[str]
) -> None:
    environment = {**os.environ, "GENIUZ_HOME": str(tmp_path / "home")}
    run = [sys.executable, "-c"]
    learned = "import geniuzfs.cli as c; c.cli({}, standalone_mode=False)"
    for first in (["keep", "tea"], ["recall", "--keyword", "tea"]):  # so that nothing is due
        subprocess.run([*run, learned.format(first)], env=environment, check=True)
    program = (
        f"import sys; from geniuzfs.cli import cli; cli({command}, standalone_mode=False);"
        f" print({heavy} & set(sys.modules))"
    )
    done = subprocess.run(
        [*run, program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"
