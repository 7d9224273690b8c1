"""The process that learns what is written into the mount.

Hides: that it is a process of its own: learning is work for a whole CPU, and in a thread of the
daemon it would hold up every request. It has the lowest priority. Promises: it ends with the
mount, whichever way that ends, and is started again when it dies.
"""

import logging
import subprocess
import sys

import trio

from geniuzfs.config import Config

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds before one that died is started again: doubled each time it dies, unless it lived
for longer than the longest pause.
"""

_log = logging.getLogger(__name__)


async def keep_learning(config: Config, alone: str | None) -> None:
    """Until cancelled, have the folder `alone`, or all of them, learned."""
    command = [sys.executable, "-m", "geniuzfs", "learn", "--follow"]
    if alone is not None:
        command += ["--in", alone]
    pause = FIRST_PAUSE
    while True:
        begun = trio.current_time()
        process = await trio.lowlevel.open_process(
            command, stdin=subprocess.PIPE, env=config.environment()
        )
        try:
            status = await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()  # what it had begun is undone or still due
                with trio.CancelScope(shield=True):
                    await process.wait()
            if process.stdin is not None:
                with trio.CancelScope(shield=True):
                    await process.stdin.aclose()
        if trio.current_time() - begun > LONGEST_PAUSE:
            pause = FIRST_PAUSE
        _log.info("the learner ended with %d; it is started again in %d s", status, pause)
        await trio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
