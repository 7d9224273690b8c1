"""A mount in this process, with a task of the caller's own beside it on the same loop."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pyfuse3
import trio

from geniuzfs import runtime
from geniuzfs.config import DEFAULT_CONTENT_LIMIT, Config
from geniuzfs.fs import mount


def serve_beside(
    directory: Path,
    beside: Callable[[], Awaitable[None]],
    *,
    fast_wait: bool = True,
    alone: str | None = "My memory",
) -> None:
    """Mount at `directory`/mount and serve until `beside` returns or the mount ends.

    `beside` starts once requests are answered, and is cancelled when the mount
    ends first. It must not touch the mount. What it raises ends the mount as well.
    """
    home, mountpoint = directory / "home", directory / "mount"
    owner = (os.getuid(), os.getgid())
    geniuz = runtime.geniuz(
        Config(home, mountpoint, DEFAULT_CONTENT_LIMIT, fast_wait, owner, learns=False)
    )

    async def run() -> None:
        await beside()
        pyfuse3.terminate()

    def ready() -> None:
        trio.lowlevel.spawn_system_task(run)

    geniuz.begin()
    mount.prepare(geniuz, mountpoint)
    mount.serve(geniuz, mount.Options(mountpoint, alone), ready)
