"""Whether the mount answers, asked the way its users ask: through the kernel.

Hides: which request tells. It is one for an extended attribute that nobody has, of each folder's
top: the kernel keeps no answer to it, and the daemon has to look into the database. It comes from
a thread, so a loop that hangs answers as little as it would anybody else. Promises: READY=1 and
each WATCHDOG=1 follow such an answer. Of several folders one is enough: to be started anew mends no
broken database, and would cost the others what is open and not yet saved.
"""

import errno
import logging
import os
from pathlib import Path

import trio

from geniuzfs.fs.notify import Manager
from geniuzfs.fs.volumes import Volumes

ASKED = "user.geniuz.alive"
"""The attribute. Nobody sets it: what sets it anyway is answered just as well."""

PAUSE_SECONDS, LONGEST_SECONDS = 0.05, 1.0
"""Before a mount that has not answered yet is asked again: doubled each time."""

_ANSWERED = (errno.ENODATA, errno.ENOENT)  # ENOENT: renamed at this moment
_TIMES = 3
"""Questions within the time after which silence is a hang."""

_log = logging.getLogger(__name__)


async def attend(manager: Manager, mountpoint: Path, volumes: Volumes, *, alone: bool) -> None:
    """Until cancelled, tell `manager` that the mount answers; then, that it ends."""
    if not manager:
        return
    try:
        await _ask_until_ready(manager, mountpoint, volumes, alone)
        if manager.watchdog_seconds is None:
            await trio.sleep_forever()
        while True:
            await trio.sleep(manager.watchdog_seconds / _TIMES)
            if await _ask(manager, mountpoint, volumes, alone):
                manager.tell(WATCHDOG=1)
    finally:
        manager.tell(STOPPING=1, STATUS="saving what is open")


async def _ask_until_ready(
    manager: Manager, mountpoint: Path, volumes: Volumes, alone: bool
) -> None:
    pause = PAUSE_SECONDS
    while not await _ask(manager, mountpoint, volumes, alone):
        await trio.sleep(pause)
        pause = min(pause * 2, LONGEST_SECONDS)
    manager.tell(READY=1)


async def _ask(manager: Manager, mountpoint: Path, volumes: Volumes, alone: bool) -> bool:
    """Whether any folder answers; what is not as it should be is told."""
    names = [] if alone else [os.fsdecode(volume.name) for volume in volumes.values()]
    tops = [mountpoint / name for name in names] or [mountpoint]
    silent = await trio.to_thread.run_sync(_silent, tops, abandon_on_cancel=True)
    if silent:
        _log.error("%s", "; ".join(silent))
    count = f"{len(volumes)} folder{'' if len(volumes) == 1 else 's'}"
    manager.tell(STATUS="; ".join(silent) or f"{count} at {mountpoint}")
    return len(silent) < len(tops)


def _silent(tops: list[Path]) -> list[str]:
    """Those that do not answer as they should, and why."""
    silent = []
    for top in tops:
        try:
            os.getxattr(top, ASKED)
        except OSError as error:
            if error.errno not in _ANSWERED:
                silent.append(f"{top} does not answer: {error.strerror}")
    return silent
