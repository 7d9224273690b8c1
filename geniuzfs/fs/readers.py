"""Who has read what others wrote just now: which save replaces a text that its writer never saw.

Hides: what counts as having read. Promises: a save is blind when another process wrote, within
WINDOW_SECONDS, what it replaces, and its writer has not opened that for reading since. Who started
the writer, or was started by it, has read for it; and so has a process of the same parent that had
ended before the writer began, as the commands of a script or an agent follow one another. Refuses:
to guess about a process that can't be told (never blind), and to judge what only adds to a file.

Opens always reach the mount, reads may be answered by the kernel: so an open for reading counts as
having read what was there then.
"""

from collections.abc import Iterable
from typing import NamedTuple

from geniuzfs.model import NOBODY, Writer
from geniuzfs.names import is_temporary
from geniuzfs.processes import Process, Processes, now
from geniuzfs.store.lineages import Replacing

WINDOW_SECONDS = 3600.0
"""How long after a save another may be blind to it: an editor has a text open for so long."""

_MOST = 10_000
_READERS = 64

Place = tuple[int, bytes]
"""A directory, by its number in the mount, and a name in it."""


class _Reader(NamedTuple):
    process: Process
    at: float


class _Fresh:
    """A text that was written lately: by whom, when (since the machine's start), who knows it."""

    __slots__ = ("at", "knowing", "writer")

    def __init__(self, writer: Writer, knowing: list[_Reader], at: float) -> None:
        self.writer = writer
        self.knowing = knowing
        self.at = at


class Readers:
    """What was written lately in one mount. Files are known by their numbers in it."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        self.fresh: dict[int, _Fresh] = {}
        """Those that somebody might be blind to; a request for any other costs one look here."""
        self.instead: set[int] = set()
        """Those that are new where another was, and that nobody has saved yet."""
        self._left: dict[Place, _Fresh] = {}

    def wrote(self, file: int, process: Process | None, also: Iterable[Process] = ()) -> None:
        """What is in `file` now was written by `process` (None: by some other program than those
        that use the mount); `also` know it.
        """
        self.instead.discard(file)
        if process is not None and not process.writer.pid:
            self.fresh.pop(file, None)
            return
        at, fresh = now(), self.fresh.get(file)
        if fresh is not None and process is not None and fresh.writer is process.writer:
            fresh.at, fresh.knowing = at, [_Reader(process, at)]
            return
        if len(self.fresh) >= _MOST:
            self._forget(at)
        knowing = [_Reader(each, at) for each in also]
        if process is not None:
            knowing.append(_Reader(process, at))
        writer = NOBODY if process is None else process.writer
        self.fresh[file] = _Fresh(writer, knowing, at)

    def read(self, file: int, process: Process) -> None:
        """`process` has seen what is in `file` now."""
        fresh = self.fresh.get(file)
        if fresh is not None and fresh.knowing[-1:] and fresh.knowing[-1].process is process:
            return
        if fresh is not None:
            fresh.knowing = [*fresh.knowing[-_READERS:], _Reader(process, now())]

    def over(self, file: int) -> Writer:
        """Who wrote what is in `file`, if that was lately."""
        fresh = self.fresh.get(file)
        return NOBODY if fresh is None else fresh.writer

    def is_blind(self, file: int, process: Process) -> bool:
        """Whether a save of `process` to `file` would replace what it has not read."""
        fresh = self.fresh.get(file)
        if fresh is None or fresh.writer is process.writer or not process.writer.pid:
            return False
        if now() - fresh.at > WINDOW_SECONDS:
            return False
        return not any(self._has_read_for(process, each) for each in fresh.knowing)

    def left(self, place: Place, file: int) -> None:
        """`file` was removed from `place`, or renamed to a backup's name: who makes another there
        replaces it.
        """
        fresh = self.fresh.get(file)
        if fresh is not None:
            if len(self._left) >= _MOST:
                self._left.clear()
            self._left[place] = fresh

    def moved(self, file: int, old: Place, new: Place) -> None:
        """`file` was renamed from `old` to `new`, where nothing was."""
        if self.fresh or self._left:
            if is_temporary(new[1]) and not is_temporary(old[1]):
                self.left(old, file)
            else:
                self.came(new, file)

    def replacing(self, file: int, process: Process) -> Replacing:
        """What is to be known of `process`, which puts another file in the place of this one."""
        return Replacing(process.writer, self.over(file), self.is_blind(file, process))

    def replaced(self, file: int, process: Process) -> None:
        """`process` has put `file` in the place of another."""
        fresh = self.fresh.get(file)
        self.wrote(file, process, [] if fresh is None else [one.process for one in fresh.knowing])

    def came(self, place: Place, file: int) -> None:
        """`file` is at `place` now, where nothing was."""
        fresh = self._left.pop(place, None) if self._left else None
        if fresh is not None and file not in self.fresh:
            self.fresh[file] = fresh
            self.instead.add(file)

    def _has_read_for(self, process: Process, reader: _Reader) -> bool:
        other = reader.process
        if process.is_kin(other):
            return True
        parents = process.ancestors[:1], other.ancestors[:1]
        return (
            bool(parents[0])
            and parents[0] == parents[1]
            and self.processes.began_after(process, reader.at)
            and not self.processes.lives(other)
        )

    def _forget(self, at: float) -> None:
        self.fresh = {
            file: fresh for file, fresh in self.fresh.items() if at - fresh.at <= WINDOW_SECONDS
        }
        if len(self.fresh) >= _MOST:
            self.fresh.clear()
        self.instead.intersection_update(self.fresh)
