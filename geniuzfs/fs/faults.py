"""What becomes of an exception in a request handler.

Any exception but FUSEError ends pyfuse3's loop and with it the mount, so every
handler is wrapped: errors of ours become their errno; Busy is waited for and
the handler run again, which blocks nobody else; anything unforeseen is logged
and becomes EIO. On a full disk, room is made once if that is possible.
"""

import errno
import functools
import logging
import os
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

import pyfuse3
import trio

from geniuzfs.errors import Busy, GeniuzError, StoreFull

BUSY_SECONDS = 30.0
"""How long a request waits for another process's write lock before EBUSY."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Handler = Callable[_P, Coroutine[Any, Any, _R]]
_log = logging.getLogger(__name__)


@runtime_checkable
class MakesRoom(Protocol):
    """The object of a handler that is a method may know how to make room on a full disk."""

    async def make_room(self) -> bool:
        """Whether some could be made: then the handler is run again."""


def is_news(record: logging.LogRecord) -> bool:
    """A filter for pyfuse3's log: False for an answer to a request that the kernel has given up
    because the mount ended meanwhile, as after a lazy unmount when the last file is closed.
    """
    gone = os.strerror(errno.ENOENT)
    return not ("fuse_reply_* failed" in str(record.msg) and record.args == (gone,))


def handler(function: _Handler[_P, _R]) -> _Handler[_P, _R]:
    """Wrap a request handler. It must raise Busy and StoreFull before it has changed
    anything that would be changed twice when it runs again.
    """

    @functools.wraps(function)
    async def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return await function(*args, **kwargs)
        except pyfuse3.FUSEError:
            raise
        except Exception as error:  # noqa: BLE001 - a door: the mount outlives any mistake of ours
            failure = error
        host = args[0] if args else None
        return await _again(functools.partial(function, *args, **kwargs), failure, host)

    return guarded


async def _again(
    run: functools.partial[Coroutine[Any, Any, _R]], failure: Exception, host: object
) -> _R:
    """Answer `failure`, or run the handler again where that may help."""
    deadline, pause, may_make_room = trio.current_time() + BUSY_SECONDS, 0.001, True
    while True:
        if isinstance(failure, Busy) and trio.current_time() <= deadline:
            await trio.sleep(pause)
            pause = min(pause * 2, 0.02)
        elif isinstance(failure, StoreFull) and may_make_room and await _room_made(host):
            may_make_room = False
        else:
            raise _answer(failure, run.func.__name__) from failure
        try:
            return await run()
        except pyfuse3.FUSEError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            failure = error


def _answer(failure: Exception, handler_name: str) -> pyfuse3.FUSEError:
    if not isinstance(failure, GeniuzError):
        _log.error("%s failed", handler_name, exc_info=failure)
        return pyfuse3.FUSEError(errno.EIO)
    if isinstance(failure, Busy):
        _log.error("%s: another process has held the write lock for too long", handler_name)
    return pyfuse3.FUSEError(failure.errno)


async def _room_made(host: object) -> bool:
    try:
        return isinstance(host, MakesRoom) and await host.make_room()
    except Exception:  # noqa: BLE001 - as above
        _log.exception("making room failed")
        return False
