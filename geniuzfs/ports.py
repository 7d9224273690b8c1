"""What has, or is about to have, a second implementation: the clock."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time; tests bring one that stands still."""

    def now_ns(self) -> int:
        """Nanoseconds since 1970, UTC."""


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        return time.time_ns()
