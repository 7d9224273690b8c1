"""A daemon whose clock stands where the file `clock` in its data directory says: as geniuzfs mount.

python -m tests.mounted.clocked mount --foreground ...
"""

import os
from pathlib import Path

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.cli import main
from geniuzfs.config import Config

FILE = "clock"


class Told:
    """Implements ports.Clock."""

    def __init__(self, home: Path) -> None:
        self._file = home / FILE

    def now_ns(self) -> int:
        return int(self._file.read_text())


def set_clock(home: Path, now_ns: int) -> None:
    """In one step: the daemon reads it at any time."""
    new = home / f"{FILE}.new"
    new.write_text(str(now_ns))
    os.replace(new, home / FILE)


if __name__ == "__main__":
    config = Config.from_environment()
    geniuz = Geniuz(config, Told(config.home), runtime._InTime(config))
    runtime.geniuz = lambda config=None: geniuz
    main()
