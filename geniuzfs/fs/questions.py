"""Questions on their way: threads, the time limit, and one flight for several askers.

Hides: where the work is done. Promises: nobody waits longer than the limit, since a
process that waits in open(2) cannot be killed; saves keep their threads; whoever asks
what is being asked already shares its answer. Refuses: more askers at once than
WAITING_MAX, for each of them holds one of the mount's tasks.
"""

import errno
import logging
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import trio
from pyfuse3 import FUSEError

from geniuzfs.errors import Busy

QUESTION_SECONDS = 10.0

THREADS = 4
"""Questions that are worked on at once. What has overrun its time keeps its thread to its end."""

WAITING_MAX = 200
"""Of the 500 requests that may wait at once (fs.mount)."""

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class _Flight:
    """A question that is being answered. `value` is None when it was too late."""

    __slots__ = ("done", "error", "limit", "value")

    def __init__(self, seconds: float) -> None:
        self.limit = trio.move_on_after(seconds)
        self.done = trio.Event()
        self.value: Any = None
        self.error: Exception | None = None


class Questions:
    """The questions of one mount. `seconds`: how long one may take, waiting included."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._limiter = trio.CapacityLimiter(THREADS)
        self._flights: dict[Hashable, _Flight] = {}
        self._waiting = 0
        self._ended = False

    async def ask(self, key: Hashable, call: Callable[[], _T]) -> _T | None:
        """What `call` returns in a thread; None when time ran out, and then its result is
        dropped. Whoever asks with the same `key` meanwhile gets the same, or the same error.
        Raises FUSEError when the mount ends.
        """
        if self._ended:
            raise FUSEError(errno.ESHUTDOWN)
        if self._waiting >= WAITING_MAX:
            raise FUSEError(errno.EAGAIN)
        self._waiting += 1
        try:
            flight = self._flights.get(key)
            if flight is None:
                flight = self._flights[key] = _Flight(self.seconds)
                await self._fly(key, flight, call)
            await flight.done.wait()
        finally:
            self._waiting -= 1
        if isinstance(flight.error, Busy):  # fs.faults would ask again, beyond the limit
            raise FUSEError(errno.EBUSY) from flight.error
        if flight.error is not None:
            raise flight.error
        value: _T | None = flight.value
        return value

    def end(self) -> None:
        """Leave the threads to themselves, for the mount ends: it waits for its requests."""
        self._ended = True
        for flight in self._flights.values():
            flight.limit.cancel()

    async def _fly(self, key: Hashable, flight: _Flight, call: Callable[[], _T]) -> None:
        try:
            with flight.limit:
                flight.value = await trio.to_thread.run_sync(
                    call, abandon_on_cancel=True, limiter=self._limiter
                )
            if flight.limit.cancelled_caught and self._ended:
                flight.error = FUSEError(errno.ESHUTDOWN)
            elif flight.limit.cancelled_caught:
                _log.info("a question was given up after %g seconds", self.seconds)
        except Exception as error:  # noqa: BLE001 - each of those who wait for it raises it
            flight.error = error
        finally:
            del self._flights[key]
            flight.done.set()
