"""A clock that tests set."""


class Clock:
    """Implements ports.Clock: `now` in nanoseconds since 1970, until it is set anew."""

    def __init__(self, now: int) -> None:
        self.now = now

    def now_ns(self) -> int:
        return self.now
