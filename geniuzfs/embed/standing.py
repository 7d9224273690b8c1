"""How the helper stands beside the machine's other processes: CPU and memory.

Promises: passages leave the CPU to whoever wants it, a question does not wait behind
strangers, and memory that a long text needed goes back to the system.
"""

import contextlib
import ctypes
import os
import threading
import time
from pathlib import Path

LOWEST = 19
_NORMAL = 0
FORWARD_SECONDS = 0.25
"""The session keeps its normal weight for so long after a question: changing it is a heavy
operation in the kernel, which lets users do so ten times a second.
"""

_AUTOGROUP = Path("/proc/self/autogroup")

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_BYTES_KEPT = 32 << 20
_BYTES_MAPPED = 8 << 20


def lowest_priority() -> None:
    """For this thread, beside the others of its session."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST)


class Standing:
    """The weight of this session beside all others, where the kernel groups by session.

    There, niceness counts only within a session: saves kept 59 % of their rate beside nice 19,
    and 84 % with the group set too. But a question in such a group took 260 ms (p95) beside two
    busy threads of strangers, instead of 5: so it takes the group forward, for a moment.
    """

    def __init__(self) -> None:
        # Where this process leads no session it is somebody's shell that would change.
        self._ours = os.getsid(0) == os.getpid()
        self._changing = threading.Lock()
        self._weight = _NORMAL
        self._asked = -FORWARD_SECONDS

    def step_forward(self) -> None:
        """A question has come."""
        self._asked = time.monotonic()
        self._set(_NORMAL)

    def step_back(self) -> None:
        """Passages are next."""
        if time.monotonic() > self._asked + FORWARD_SECONDS:
            self._set(LOWEST)

    def _set(self, weight: int) -> None:
        with self._changing:
            if not self._ours or weight == self._weight:
                return
            # No such file: this kernel does not group. Refused: too soon, the next call may.
            with contextlib.suppress(OSError):
                _AUTOGROUP.write_text(str(weight))
                self._weight = weight


def keep_small() -> None:
    """Let malloc give large blocks back at once: 200 MB resident after texts of 512 pieces where
    it were 239. By itself it learns from the first of them that such blocks are worth keeping.
    A text of 80 pieces takes as long as before, one of 512 a tenth more; from 1 MiB on, the
    short one would take 8 % more too. Another C library than glibc has no such knob.
    """
    library = ctypes.CDLL(None)
    with contextlib.suppress(AttributeError):
        library.mallopt(_M_MMAP_THRESHOLD, _BYTES_MAPPED)
        library.mallopt(_M_TRIM_THRESHOLD, _BYTES_KEPT)


def give_back() -> None:
    """Return what malloc holds and nobody uses."""
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
