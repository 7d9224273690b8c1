"""A mount in a process of its own that says how it waits and what gets through (for test_loop).

    python -m tests.fs.served DIRECTORY CONDITION

CONDITION is what stands in the way of the fast wait. First it says `fast` or
`stock`; then it carries out each command on its standard input and says what
came of it, until the input ends or the mount does.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pyfuse3
import trio

from geniuzfs import logs
from geniuzfs.config import Config
from tests.beside import serve_beside

ROUNDS = 20
LIMIT_SECONDS = 20

STOCK_WAIT = vars(pyfuse3)["_wait_fuse_readable"]


def hide(module: ModuleType, name: str) -> None:
    """Take `name` off the module for all but the module's own code, as if it were called
    otherwise there."""

    def missing(_: ModuleType) -> None:
        raise AttributeError(name)

    module.__class__ = type("Renamed", (ModuleType,), {name: property(missing)})


def open_fuse_device() -> None:
    os.open("/dev/fuse", os.O_RDWR)  # for good: it must be there while the mount is


CONDITIONS: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "pyfuse3-renamed-it": lambda: hide(pyfuse3, "_wait_fuse_readable"),
    "trio-renamed-it": lambda: hide(trio._core._run, "GLOBAL_RUN_CONTEXT"),
    "second-fuse-descriptor": open_fuse_device,
}


class Workers(trio.abc.Instrument):
    """How many of pyfuse3's workers there are at most."""

    def __init__(self) -> None:
        self._now: set[trio.lowlevel.Task] = set()
        self.most = 0

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        if task.name.startswith("pyfuse-"):
            self._now.add(task)
            self.most = max(self.most, len(self._now))

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self._now.discard(task)


async def deliver() -> None:
    """Wait again and again for each of the things that a loop must bring while it serves."""
    token = trio.lowlevel.current_trio_token()
    with (
        trio.fail_after(LIMIT_SECONDS),
        trio.open_signal_receiver(signal.SIGUSR1) as signals,
    ):
        for _ in range(ROUNDS):
            await trio.sleep(0.002)
            assert await trio.to_thread.run_sync(threading.get_ident) != threading.get_ident()
            called = trio.Event()
            threading.Thread(target=token.run_sync_soon, args=(called.set,)).start()
            await called.wait()
            threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGUSR1)).start()
            await anext(aiter(signals))


async def answer(workers: Workers) -> None:
    say("stock" if vars(pyfuse3)["_wait_fuse_readable"] is STOCK_WAIT else "fast")
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as commands:
        async for command in commands:
            match command.decode().strip():
                case "deliver":
                    await deliver()
                    say("delivered")
                case "workers":
                    say(str(workers.most))


def say(word: str) -> None:
    print(word, flush=True)  # noqa: T201 - this is a program


def main() -> None:
    directory, condition = sys.argv[1:]
    logs.set_up(debug=False)
    CONDITIONS[condition]()
    workers = Workers()

    async def beside() -> None:
        trio.lowlevel.add_instrument(workers)
        await answer(workers)

    fast_wait = Config.from_environment().fast_wait
    serve_beside(Path(directory), beside, fast_wait=fast_wait)


if __name__ == "__main__":
    main()
