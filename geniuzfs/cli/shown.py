"""The state of everything at one moment, for people, programs and Prometheus.

Promises: a mount that is dead or hangs costs ANSWER_SECONDS at most, and shows as such.
"""

import os
import threading
from pathlib import Path
from typing import NamedTuple

from geniuzfs.api import FolderStatus, Geniuz
from geniuzfs.api.learns import Learns
from geniuzfs.fs.counted import COUNTERS

ANSWER_SECONDS = 2.0
"""For a mount that is asked for its counters: a dead one may never answer."""


class Shown(NamedTuple):
    """All that is shown. `mounts`: each with its counters, None for one that does not answer."""

    folders: list[FolderStatus]
    mounts: dict[Path, bytes | None]
    learns: Learns
    not_used: list[str]
    now_ns: int


def look(geniuz: Geniuz) -> Shown:
    """As it is now."""
    folders = geniuz.status()
    mounts = {path: _counters(path) for path in geniuz.mounted()}
    not_used = geniuz.arranging.seen().warnings()
    return Shown(folders, mounts, geniuz.learns(), not_used, geniuz.clock.now_ns())


def _counters(mountpoint: Path) -> bytes | None:
    found: list[bytes] = []

    def ask() -> None:
        try:
            found.append(os.getxattr(mountpoint, COUNTERS))
        except OSError:  # its daemon is dead
            return

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(ANSWER_SECONDS)
    return found[0] if found else None
