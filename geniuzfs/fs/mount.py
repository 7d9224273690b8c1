"""A mount from its beginning to its end.

Hides: pyfuse3's session, signals, and the order in which things start and stop.
Promises: `serve` returns when the mount was ended, by SIGTERM, SIGINT or umount,
with everything saved and nothing left mounted. Refuses: a mount point that is
taken, or one above the data it would show.
"""

import contextlib
import errno
import functools
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyfuse3
import trio

from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.errors import MountError, UnsafePlace
from geniuzfs.folders import mounts
from geniuzfs.fs import loop
from geniuzfs.fs.answers import Answers
from geniuzfs.fs.attending import attend
from geniuzfs.fs.background import save_all, save_growing
from geniuzfs.fs.counted import Counted
from geniuzfs.fs.dispatch import Dispatch
from geniuzfs.fs.faults import is_news
from geniuzfs.fs.files import Files
from geniuzfs.fs.following import Following
from geniuzfs.fs.generated import Generated
from geniuzfs.fs.histories import Histories
from geniuzfs.fs.inodes import Nodes
from geniuzfs.fs.learner import keep_learning
from geniuzfs.fs.memories import Memories
from geniuzfs.fs.notify import Manager
from geniuzfs.fs.operations import Operations
from geniuzfs.fs.places import Places
from geniuzfs.fs.questions import QUESTION_SECONDS
from geniuzfs.fs.retention import expire_versions
from geniuzfs.fs.top import Top, root
from geniuzfs.fs.virtual import Virtuals
from geniuzfs.fs.volumes import Volumes

MAX_TASKS = 500
"""Requests that may wait at once, for a foreign lock say, before others must."""

ANSWER_SECONDS = 5.0
"""A mount that has not answered for so long when a new one is to take its place is dead."""

SWITCH_SECONDS = 0.0005
"""A thread that answers a question gives way to the loop after so long, which Python lets it keep
for 5 ms: saves beside questions to 100,000 passages took 7.2 ms at p95, now 3.9.
"""

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Options:
    """How to mount. `alone`: the one folder that becomes the root; None: all of them."""

    mountpoint: Path
    alone: str | None = None
    read_only: bool = False
    allow_other: bool = False
    extra: tuple[str, ...] = field(default=())

    def fuse(self, source: str) -> set[str]:
        # noatime: reading moves no times, and the mount table says so.
        options = {"default_permissions", "noatime", f"fsname={source}", "subtype=geniuzfs"}
        options.update(self.extra)
        if self.read_only:
            options.add("ro")
        if self.allow_other:
            options.add("allow_other")
        return options


def prepare(geniuz: Geniuz, mountpoint: Path) -> None:
    """Make the mount point ready: clear what a killed daemon left, make the directory.
    Raises UnsafePlace and MountError.
    """
    clear_stale(mountpoint)
    home = geniuz.config.home.resolve()
    if home.is_relative_to(mountpoint.resolve()):
        raise UnsafePlace(f"{mountpoint} would cover the data directory {home}: mount elsewhere")
    try:
        mountpoint.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MountError(f"{mountpoint}: {error.strerror}") from error
    if not mountpoint.is_dir():
        raise MountError(f"{mountpoint} is not a directory")


def clear_stale(mountpoint: Path) -> None:
    """Unmount what a killed daemon left at `mountpoint`. Raises MountError for a live mount."""
    mounted = mounts.mount_at(mountpoint)
    if mounted is None or mounted.type != mounts.FUSE_TYPE:
        return
    if answers(mountpoint):
        raise MountError(f"{mountpoint} is mounted already: geniuzfs umount {mountpoint}")
    unmount(mountpoint, lazy=True, force=True)
    clear_stale(mountpoint)


def clear_dead(mountpoint: Path) -> None:
    """The same, and nothing where the mount lives or there is none. Raises MountError."""
    mounted = mounts.mount_at(mountpoint)
    if mounted is not None and mounted.type == mounts.FUSE_TYPE and not answers(mountpoint):
        unmount(mountpoint, lazy=True, force=os.geteuid() == 0)


def answers(mountpoint: Path) -> bool:
    """Whether the mount has a daemon. statfs, since the kernel never answers it by itself.

    A daemon that was killed while it told the kernel of a new name may leave a mount that
    gives no answer at all: the kernel waits for a directory that is locked by a request, and
    ends requests only after what it waits for itself.
    """
    answered = threading.Event()

    def ask() -> None:
        with contextlib.suppress(OSError):  # ENOTCONN: its daemon is dead
            os.statvfs(mountpoint)
            given.append(True)
        answered.set()

    given: list[bool] = []
    threading.Thread(target=ask, daemon=True).start()
    answered.wait(ANSWER_SECONDS)
    return bool(given)


def unmount(mountpoint: Path, *, lazy: bool, force: bool = False) -> None:
    """Unmount, as root or as the user who mounted. Raises MountError. `force`: requests that
    wait fail with it; only root may.
    """
    options = [*(["--lazy"] if lazy else []), *(["--force"] if force else [])]
    command = ["umount", "--no-canonicalize", *options]
    if os.geteuid() != 0:
        command = ["fusermount3", "-u", *(["-z"] if lazy else [])]
    try:
        done = subprocess.run(
            [*command, "--", str(mountpoint)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise MountError(f"{command[0]} is missing: install fuse3") from error
    if done.returncode != 0:
        raise MountError(
            done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "umount failed"
        )


def serve(
    geniuz: Geniuz,
    options: Options,
    ready: Callable[[], None],
    answers: Answers | None = None,
    seconds: float = QUESTION_SECONDS,
) -> None:
    """Mount, call `ready` once requests are answered, and serve until the mount ends.

    `answers`: who answers questions, each within `seconds`; None: nothing is generated.
    """
    alone = None if options.alone is None else geniuz.folder(options.alone)
    sys.setswitchinterval(SWITCH_SECONDS)
    with contextlib.ExitStack() as ending:
        early = ending.enter_context(_signals_noted())
        volumes, nodes, since_ns = Volumes(), Nodes(), geniuz.clock.now_ns()
        ending.callback(volumes.close)
        files = Files(nodes, geniuz.clock.now_ns, geniuz.config.content_limit)
        top = Top(nodes, volumes, since_ns) if alone is None else None
        folders = Following(
            geniuz, volumes, nodes, files, top, None if alone is None else alone.identity.id
        )
        for folder in geniuz.folders() if alone is None else [alone]:
            folders.take_in(folder, geniuz.open(folder, wait=0))
        if alone is not None:
            nodes.remember(volumes[alone.identity.id], root(volumes[alone.identity.id]))
        end = pyfuse3.terminate
        operations: pyfuse3.Operations
        if answers is None:
            operations = Operations(nodes, files, volumes, top, folders, geniuz.clock)
        else:
            known, places = Virtuals(), Places(nodes, volumes, top)
            memories = Memories(known, places, geniuz.clock)
            counted = Counted(since_ns)
            counted.listen()
            past = Histories(known, places, since_ns)
            made = Generated(nodes, places, memories, past, known, answers, seconds, counted)
            more = made.list_reserved
            real = Operations(nodes, files, volumes, top, folders, geniuz.clock, more)
            operations = Dispatch(real, made, memories, past)

            def end() -> None:
                made.end()
                pyfuse3.terminate()

        logging.getLogger("pyfuse3").addFilter(is_news)
        try:
            pyfuse3.init(
                operations, str(options.mountpoint), options.fuse(mounts.source(geniuz.config.home))
            )
        except RuntimeError as error:
            raise MountError(f"can't mount at {options.mountpoint}: {error}") from error
        ending.callback(pyfuse3.close, unmount=True)
        attending = functools.partial(
            attend, Manager(os.environ), options.mountpoint, volumes, alone=alone is not None
        )
        expiring = functools.partial(expire_versions, volumes, geniuz.clock.now_ns)
        trio.run(
            _run,
            folders,
            files,
            expiring,
            ready,
            attending,
            geniuz.config,
            options.alone,
            early,
            end,
        )


@contextlib.contextmanager
def _signals_noted() -> Iterator[list[int]]:
    """Signals to end are noted and do nothing else. So they are before the mount listens to
    them, and again while it saves and unmounts: a second one would kill it amid its saves.
    """
    noted: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: noted.append(number))
        for number in _ENDING
    }
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _run(
    folders: Following,
    files: Files,
    expiring: Callable[[], Awaitable[None]],
    ready: Callable[[], None],
    attending: Callable[[], Awaitable[None]],
    config: Config,
    alone: str | None,
    early: list[int],
    end: Callable[[], None],
) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(_end_on_signal, end)
        if early:
            end()
        await nursery.start(folders.run)
        nursery.start_soon(save_growing, files)
        nursery.start_soon(expiring)
        if config.learns:
            nursery.start_soon(keep_learning, config, alone)
        if config.fast_wait and not loop.install():
            _log.warning(
                "the fast wait does not fit this pyfuse3 or trio: serving with the stock one"
            )
        ready()
        nursery.start_soon(attending)
        try:
            await _answer_requests()
        finally:
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                await save_all(files)


async def _answer_requests() -> None:
    """Until the mount ends. An unmount under load may show as ECONNABORTED where it is ENODEV
    mostly (once in 300), which libfuse and pyfuse3 take for a failure; it is an end like the other.
    """
    try:
        await pyfuse3.main(max_tasks=MAX_TASKS)
    except BaseExceptionGroup as failed:
        if failed.split(_is_aborted)[1] is not None:
            raise
        _log.info("the kernel has aborted the connection")


def _is_aborted(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno == errno.ECONNABORTED


async def _end_on_signal(end: Callable[[], None], task_status: trio.TaskStatus[None]) -> None:
    with trio.open_signal_receiver(*_ENDING) as signals:
        task_status.started()
        async for number in signals:
            _log.info("ending on %s", signal.Signals(number).name)
            end()
