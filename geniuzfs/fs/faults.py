"""What becomes of an exception in a request handler.

Any exception but FUSEError ends pyfuse3's loop and with it the mount, so every
handler is wrapped: errors of ours become their errno; Busy is waited for and
the handler run again, which blocks nobody else; anything unforeseen is logged
and becomes EIO.
"""

import errno
import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

import pyfuse3
import trio

from geniuzfs.errors import Busy, GeniuzError

BUSY_SECONDS = 30.0
"""How long a request waits for another process's write lock before EBUSY."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Handler = Callable[_P, Coroutine[Any, Any, _R]]
_log = logging.getLogger(__name__)


def handler(function: _Handler[_P, _R]) -> _Handler[_P, _R]:
    """Wrap a request handler. It must raise Busy before it has changed anything
    that would be changed twice when it runs again.
    """

    @functools.wraps(function)
    async def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return await function(*args, **kwargs)
        except pyfuse3.FUSEError:
            raise
        except Busy:
            pass
        except GeniuzError as error:
            raise pyfuse3.FUSEError(error.errno) from error
        except Exception as error:
            _log.exception("%s failed", function.__name__)
            raise pyfuse3.FUSEError(errno.EIO) from error
        return await _retried(function, *args, **kwargs)

    return guarded


async def _retried(function: _Handler[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    deadline, pause = trio.current_time() + BUSY_SECONDS, 0.001
    while True:
        await trio.sleep(pause)
        pause = min(pause * 2, 0.02)
        try:
            return await function(*args, **kwargs)
        except pyfuse3.FUSEError:
            raise
        except Busy as error:
            if trio.current_time() > deadline:
                _log.error(
                    "%s: another process has held the write lock for too long", function.__name__
                )
                raise pyfuse3.FUSEError(error.errno) from error
        except GeniuzError as error:
            raise pyfuse3.FUSEError(error.errno) from error
        except Exception as error:
            _log.exception("%s failed", function.__name__)
            raise pyfuse3.FUSEError(errno.EIO) from error
