"""How the daemon waits for the kernel's next request.

Hides: a wait that asks the FUSE descriptor directly instead of going through
trio's epoll for each request. One request costs trio's stock wait 24 us, this
one about 9 (libfuse in C: 7.4). Promises: trio's other tasks (sockets, threads,
timers, signals) are not made late by more than about a millisecond, and an idle
daemon sleeps. Refuses nothing: where a private name it hooks into is gone, it
says so and the stock wait stays.

Why it is safe. pyfuse3 looks its wait up by name at each call, and what follows
"return True" is the read, without an await between, so no other worker takes
the data. There is one fast waiter; the other workers wait in the stock way,
which keeps their number small. Polling watches trio's own epoll descriptor too,
so whatever is due there ends the wait. When nothing has come for a millisecond
the waiter goes to the stock wait, where terminate() finds it.
"""

import os
import select
import stat
import time
from collections.abc import Awaitable, Callable

import pyfuse3
import trio

SLICE_NS = 250_000
"""Other tasks get their turn at least this often (at 0.5 ms sockets were late by up to 1.2 ms)."""

BLOCK_MS = 1
"""The longest that one poll blocks the loop."""

SPIN = 40
"""Polls of about 1 us each before blocking: mean request 16 us instead of 37 on a quiet machine."""

_FUSE_DEVICE = os.makedev(10, 229)


class _Waiting(trio.abc.Instrument):
    """The tasks that are scheduled and have not run yet. trio's own statistics
    leave out those of the batch that is running: with them, events were late by 1 ms.
    """

    def __init__(self) -> None:
        self.tasks: set[trio.lowlevel.Task] = set()

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        self.tasks.add(task)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.tasks.discard(task)


def install() -> bool:
    """Make pyfuse3 wait the fast way. Call inside trio.run, after pyfuse3.init
    and before pyfuse3.main. False: the stock wait stays.
    """
    stock = getattr(pyfuse3, "_wait_fuse_readable", None)
    fuse, epoll = _fuse_descriptor(), _epoll_descriptor()
    if stock is None or fuse is None or epoll is None:
        return False
    waiting = _Waiting()
    trio.lowlevel.add_instrument(waiting)
    setattr(pyfuse3, "_wait_fuse_readable", _fast_wait(stock, fuse, epoll, waiting.tasks))  # noqa: B010
    return True


def _fuse_descriptor() -> int | None:
    """The session's descriptor: the only open /dev/fuse of this process."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:
            continue
        if stat.S_ISCHR(status.st_mode) and status.st_rdev == _FUSE_DEVICE:
            found.append(int(name))
    return found[0] if len(found) == 1 else None


def _epoll_descriptor() -> int | None:
    """trio's epoll descriptor: a private attribute, pinned in pyproject.toml."""
    try:
        runner = trio._core._run.GLOBAL_RUN_CONTEXT.runner
        return int(runner.io_manager._epoll.fileno())
    except (AttributeError, ValueError):
        return None


def _fast_wait(
    stock: Callable[[], Awaitable[bool]], fuse: int, epoll: int, waiting: set[trio.lowlevel.Task]
) -> Callable[[], Awaitable[bool]]:
    only_fuse, both = select.poll(), select.poll()
    only_fuse.register(fuse, select.POLLIN)
    both.register(fuse, select.POLLIN)
    both.register(epoll, select.POLLIN)
    fuse_ready, any_ready, now = only_fuse.poll, both.poll, time.monotonic_ns
    checkpoint, statistics = trio.lowlevel.checkpoint, trio.lowlevel.current_statistics
    soon = BLOCK_MS / 1000 + 0.0002
    yielded_ns, taken = 0, False

    async def spin() -> bool:
        """True: a request is there. False: quiet for a while, or a timer is due."""
        nonlocal yielded_ns
        while True:
            if now() - yielded_ns > SLICE_NS:
                await checkpoint()
                yielded_ns = now()
            if fuse_ready(0):
                return True
            if waiting:
                yielded_ns = 0
                continue
            for _ in range(SPIN):
                if fuse_ready(0):
                    return True
            if statistics().seconds_to_next_deadline < soon:
                return False
            ready = any_ready(BLOCK_MS)
            if not ready:
                return False
            if len(ready) == 2 or ready[0][0] == fuse:
                return True
            yielded_ns = 0

    async def wait() -> bool:
        nonlocal yielded_ns, taken
        while True:
            if not taken:
                taken = True
                try:
                    if await spin():
                        return True
                finally:
                    taken = False
            if not await stock():
                return False
            yielded_ns = now()
            if fuse_ready(0):  # the descriptor blocks: True only when there is something to read
                return True

    return wait
