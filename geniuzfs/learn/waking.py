"""How a learner that has nothing to do notices that there is.

Hides: inotify and the pipe to whoever started it. Promises: a commit of any process wakes it within
a second; an idle learner does nothing but one look in some seconds.
"""

import select
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from inotify_simple import INotify, flags

SETTLE_MS = 500
"""From a commit to the look at it: an editor's save is several, and recall looks by itself."""

SAFETY_SECONDS = 10.0


class Stream(Protocol):
    def fileno(self) -> int: ...


class Waking:
    """Waits for commits to the databases at `paths`. `parent`: ends when that is closed."""

    def __init__(self, parent: Stream | None) -> None:
        self._inotify = INotify(nonblocking=True)
        self._watched: set[Path] = set()
        self._parent = parent

    def watch(self, logs: Iterable[Path]) -> None:
        """Also wake for what is written to these write-ahead logs."""
        for path in set(logs) - self._watched:
            self._inotify.add_watch(path, flags.MODIFY)
            self._watched.add(path)

    def wait(self, seconds: float = SAFETY_SECONDS) -> bool:
        """Until something was committed, or for `seconds`. False: it is time to end."""
        sources: list[Stream] = [self._inotify]
        if self._parent is not None:
            sources.append(self._parent)
        ready, _, _ = select.select(sources, [], [], seconds)
        if self._parent is not None and self._parent in ready:
            return False
        if ready:
            self._inotify.read(timeout=0, read_delay=SETTLE_MS)
        return True

    def close(self) -> None:
        self._inotify.close()
