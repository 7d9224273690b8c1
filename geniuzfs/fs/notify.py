"""What the mount tells the service manager that started it, by the protocol of sd_notify(3).

Hides: the socket, whose name may be abstract, and who is meant by the watchdog. Promises: where
nobody listens nothing happens, and nothing here raises: a mount goes on without its manager.
"""

import logging
import os
import socket
from collections.abc import Mapping

_log = logging.getLogger(__name__)


class Manager:
    """Whoever waits at NOTIFY_SOCKET; nobody where that is not set."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self.watchdog_seconds = _watchdog_seconds(environment)
        """Silence for so long is taken for a hang; None: nobody watches."""

    def __bool__(self) -> bool:
        return bool(self._address)

    def tell(self, **states: str | int) -> None:
        """Send `states`, such as READY=1 and STATUS="two folders"."""
        if not self._address:
            return
        text = "\n".join(f"{key}={' '.join(str(one).split())}" for key, one in states.items())
        # "@" stands for the zero byte that abstract names begin with.
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
                sending.setblocking(False)  # a manager that does not read holds up no request
                sending.sendto(text.encode("utf-8", "surrogateescape"), address)
        except OSError as error:
            _log.info("the service manager could not be told: %s", error)


def _watchdog_seconds(environment: Mapping[str, str]) -> float | None:
    """WATCHDOG_USEC, unless WATCHDOG_PID says that another process is meant."""
    usec = environment.get("WATCHDOG_USEC", "")
    ours = environment.get("WATCHDOG_PID") in (None, str(os.getpid()))
    return int(usec) / 1e6 if ours and usec.isdecimal() and int(usec) else None
