"""The program as a test calls it: mostly in this process, since another takes 0.2 s to start."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from geniuzfs.cli import main


class Done(NamedTuple):
    code: int
    stdout: str
    stderr: str


def run(here: Path, *words: str, **variables: str) -> Done:
    """`geniuzfs` with these words in the directory `here`, as from a pipe."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in variables.items():
            patch.setenv(name, value)
        patch.chdir(here)
        patch.setattr(sys, "argv", ["geniuzfs", *words])
        patch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115 - closed with the test
        with pytest.raises(SystemExit) as ended:
            main()
        sys.stdin.close()
    code = ended.value.code
    return Done(code if isinstance(code, int) else 0, *(_read(each) for each in (out, err)))


def start(here: Path, *words: str, **variables: str) -> Done:
    """The same in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "geniuzfs", *words],
        env={**os.environ, **variables},
        cwd=here,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def _read(stream: io.TextIOWrapper) -> str:
    held = stream.buffer
    assert isinstance(held, io.BytesIO)
    return held.getvalue().decode()
