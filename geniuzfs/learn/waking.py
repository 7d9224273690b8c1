"""How a learner that has nothing to do notices that there is.

Hides: inotify and the pipe to whoever started it. Promises: a commit of any process wakes it within
a second; an idle learner does nothing but one look in some seconds.
"""

import select
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from inotify_simple import INotify, flags

SETTLE_SECONDS = 0.5
"""From a commit to the look at it: an editor's save is several, and recall looks by itself."""

SAFETY_SECONDS = 10.0


class Stream(Protocol):
    def fileno(self) -> int: ...


class Waking:
    """Waits for commits to the databases at `paths`. `parent`: ends when that is closed."""

    def __init__(self, parent: Stream | None) -> None:
        self._inotify = INotify(nonblocking=True)
        self._parent = parent

    def watch(self, logs: Iterable[Path]) -> None:
        """Also wake for what is written to these write-ahead logs."""
        for path in logs:
            with suppress(FileNotFoundError):  # its folder goes at this moment
                self._inotify.add_watch(path, flags.MODIFY)  # known already: nothing happens

    def wait(self, seconds: float = SAFETY_SECONDS) -> bool:
        """Until something was committed, or for `seconds`. False: it is time to end."""
        committed = self._inotify in self._ready([self._inotify], seconds)
        if committed:
            self._ready([], SETTLE_SECONDS)
            self._inotify.read(timeout=0)
        return not self.over()

    def over(self, seconds: float = 0.0) -> bool:
        """Whether it is time to end: wait for that so long."""
        return bool(self._ready([], seconds))

    def _ready(self, sources: list[Stream], seconds: float) -> list[Stream]:
        """Those of `sources`, and the parent, for whom there is something to read."""
        parent = [self._parent] if self._parent is not None else []
        ready, _, _ = select.select([*sources, *parent], [], [], seconds)
        return ready

    def close(self) -> None:
        self._inotify.close()
