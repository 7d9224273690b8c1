"""`import geniuzfs`: light, typed, and as the README says."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import geniuzfs
from geniuzfs import errors

ROOT = Path(__file__).parents[2]

LOADED = """
import json, sys
before = set(sys.modules)
import geniuzfs
print(json.dumps(sorted(set(sys.modules) - before)))
"""

FIRST_USE = """
import sys
import geniuzfs
with geniuzfs.open() as mem:
    mem.files.put("/a.md", "The ferry leaves at nine.")
    assert "numpy" not in sys.modules
    print(mem.folder.name, mem.recall("ferry", mode="words")[0].path)
"""


def run(code: str, home: Path) -> str:
    """What a program prints that has a data directory of its own."""
    environment = {**os.environ, "HOME": str(home), "GENIUZ_HOME": str(home / "data")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_importing_loads_nothing_but_the_name(tmp_path: Path) -> None:
    loaded = json.loads(run(LOADED, tmp_path))
    assert loaded == ["geniuzfs"]


def test_the_first_use_makes_the_folder_and_putting_needs_no_numpy(tmp_path: Path) -> None:
    assert run(FIRST_USE, tmp_path) == "My memory /a.md\n"
    assert (tmp_path / "data" / "memory.db").exists()


def test_every_name_is_there_and_no_other() -> None:
    for name in geniuzfs.__all__:
        assert getattr(geniuzfs, name).__module__.startswith("geniuzfs")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = geniuzfs.nothing
    assert (ROOT / "geniuzfs" / "py.typed").exists()


def test_errors_are_of_one_tree() -> None:
    assert geniuzfs.InvalidRequest is errors.UsageError
    assert issubclass(geniuzfs.BadPath, geniuzfs.InvalidRequest)
    assert issubclass(geniuzfs.NotText, geniuzfs.InvalidRequest)
    assert geniuzfs.NotFoundError is errors.NotFound
    assert issubclass(errors.AlreadyExists, geniuzfs.ConflictError)
    assert issubclass(errors.Changed, geniuzfs.ConflictError)
