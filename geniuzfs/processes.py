"""Which process it is that writes or asks.

Hides: /proc, and that the kernel names a thread. Promises: the threads of a process are one
process, and what has its number later is another. 60 us where it is new, 0.2 where it asked within
a second. Where it can't be told, as in another PID namespace, it is NOBODY.
"""

import os
import sys
import time
from typing import NamedTuple

from geniuzfs.model import NOBODY, Writer

KNOWN_SECONDS = 1.0
"""For how long a thread's number is trusted to mean the same one: none comes round so soon."""

_DEPTH = 32
_PARENT, _STARTED = 1, 19
"""Fields of /proc/PID/stat after the name."""


class Process(NamedTuple):
    """A process, and those that it descends from, the nearest first (their name is left out)."""

    writer: Writer
    ancestors: tuple[Writer, ...]

    def is_kin(self, other: "Process") -> bool:
        """Whether they are the same, or one has, over some steps, started the other."""
        mine, others = self.writer[1:], other.writer[1:]
        return (
            mine == others
            or any(one[1:] == others for one in self.ancestors)
            or any(one[1:] == mine for one in other.ancestors)
        )


UNKNOWN = Process(NOBODY, ())


def this() -> Process:
    """This process, called by the program that it runs: `sync.py`."""
    found = Processes().of(os.getpid())
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    name = os.fsencode(name).decode("utf-8", "replace")  # SQLite takes no other text
    return found._replace(writer=found.writer._replace(name=name or "python"))


class Processes:
    """The processes that use a mount, or a folder beside this one."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[float, Process]] = {}
        self._ticks = os.sysconf("SC_CLK_TCK")

    def of(self, thread: int) -> Process:
        """The process of this thread."""
        now = time.monotonic()
        known = self._known.get(thread)
        if known is not None and now - known[0] < KNOWN_SECONDS:
            return known[1]
        if len(self._known) > 1_000:
            self._known.clear()
        found = self._look(thread, _DEPTH)
        same = known is not None and known[1].writer == found.writer
        found = known[1] if known is not None and same else found
        self._known[thread] = (now, found)
        return found

    def lives(self, process: Process) -> bool:
        """Whether it has not ended."""
        return _stat(process.writer.pid)[0] == process.writer

    def began_after(self, process: Process, seconds: float) -> bool:
        """Whether it began after this moment, in seconds since the machine's start."""
        return (process.writer.started + 1) / self._ticks >= seconds

    def _look(self, thread: int, depth: int) -> Process:
        writer, parent = _stat(_leader(thread))
        if not writer.pid or depth == 0:
            return UNKNOWN
        if parent <= 1:
            return Process(writer, ())
        above = self._known.get(parent)
        if above is None or time.monotonic() - above[0] >= KNOWN_SECONDS:
            above = self._known[parent] = (time.monotonic(), self._look(parent, depth - 1))
        return Process(writer, (above[1].writer, *above[1].ancestors))


def now() -> float:
    """Seconds since the machine's start, as processes count them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _leader(thread: int) -> int:
    for line in _read(f"/proc/{thread}/status").split(b"\n"):
        if line.startswith(b"Tgid:"):
            return int(line[5:])
    return 0


def _stat(pid: int) -> tuple[Writer, int]:
    """The process and its parent's number; NOBODY where there is none."""
    head, _, tail = _read(f"/proc/{pid}/stat").rpartition(b") ")
    fields = tail.split()
    if len(fields) <= _STARTED:
        return NOBODY, 0
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    return Writer(name, pid, int(fields[_STARTED])), int(fields[_PARENT])


def _read(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(descriptor, 4096)
    except OSError:  # it ended meanwhile
        return b""
    finally:
        os.close(descriptor)
