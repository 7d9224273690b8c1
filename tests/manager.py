"""A service manager for tests: a socket that a real daemon tells of itself, as systemd's."""

import os
import socket
from pathlib import Path
from typing import Self

SECONDS = 20.0


class Manager:
    """`with Manager(address) as manager:`; `environment`: what the daemon is started with.
    `address`: a path, or "@name" for an abstract one.
    """

    def __init__(self, address: str | Path, watchdog_seconds: float | None = None) -> None:
        self.environment = {"NOTIFY_SOCKET": str(address)}
        if watchdog_seconds is not None:
            self.environment["WATCHDOG_USEC"] = str(int(watchdog_seconds * 1e6))
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(os.fsencode(str(address).replace("@", "\0", 1)))

    def hear(self, seconds: float = SECONDS) -> dict[str, str]:
        """The next message. Raises TimeoutError."""
        self._socket.settimeout(seconds)
        text = self._socket.recv(65536).decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def wait_for(self, key: str, seconds: float = SECONDS) -> str:
        """The value of `key` in the next message that has it. Raises TimeoutError."""
        while True:
            heard = self.hear(seconds)
            if key in heard:
                return heard[key]

    def forget(self) -> None:
        """What was said and not heard yet."""
        try:
            while True:
                self.hear(0.001)
        except TimeoutError:
            return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
