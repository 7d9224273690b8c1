"""Processes that are killed amid what they do, and another disk for a move to go to."""

import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from geniuzfs import durable
from geniuzfs.api import capturing
from geniuzfs.folders import lifecycle, moving, places
from geniuzfs.store import copying
from tests.crash.disks import Ext4

STEPS = {module.__file__ for module in (moving, lifecycle, durable, places, copying, capturing)}
"""The modules in which every line is a step, the first times that it is come to."""

TIMES = 2

OTHER_DISK = Path("/dev/shm")


@contextmanager
def other_disk(beside: Path) -> Iterator[Path]:
    """A directory on another file system than `beside`."""
    if not OTHER_DISK.is_dir() or OTHER_DISK.stat().st_dev == beside.stat().st_dev:
        pytest.skip(f"{OTHER_DISK} is not a file system of its own")
    path = Path(tempfile.mkdtemp(dir=OTHER_DISK, prefix="geniuz-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def loop_disk(beside: Path) -> Iterator[Path]:
    """The same on ext4 on a loop device, of which every sync is a real one."""
    place = beside / "loop"
    with Ext4(beside, place):
        yield place


def killed_at(
    step: int, run: Callable[[], object], steps: Collection[str | None] = frozenset(STEPS)
) -> bool:
    """Run it in a process of its own that is killed before its line number `step`, of the files
    `steps` alone; False when it came to its end first.
    """
    with warnings.catch_warnings():
        # Newer Pythons warn of the threads of others: none of them holds a lock that is used here.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        # A file of a mount would be closed, and so saved, while this still holds the write lock.
        os.closerange(3, 1024)
        code = 1
        with suppress(BaseException):
            met: Counter[tuple[str, int]] = Counter()

            def trace(frame: FrameType, event: str, _argument: Any) -> Any:
                if frame.f_code.co_filename not in steps:
                    return None
                line = (frame.f_code.co_filename, frame.f_lineno)
                if event == "line" and met[line] < TIMES:
                    met[line] += 1
                    if met.total() == step:
                        os.kill(os.getpid(), signal.SIGKILL)
                return trace

            sys.settrace(trace)
            run()
            code = 0
        os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, "it failed by itself"
    return False
