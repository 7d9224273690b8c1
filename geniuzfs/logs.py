"""Where log lines go: one format, to standard error or to a file; the journal has its own.

Hides: how the journal is told how bad a line is (sd-daemon(3)). Promises: what was said last is at
hand (`Recent`), since who asks for the state of a mount wants to know.
"""

import logging
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_FOR_THE_JOURNAL = "%(name)s: %(message)s"
"""It knows the time itself."""

_SYSLOG = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6))
_DEBUG = 7


def set_up(*, debug: bool, file: Path | None = None) -> None:
    """Log to `file` (appended; made with mode 0600 by the caller's umask) or to
    standard error. Warnings and worse, with `debug` everything.
    """
    handler: logging.Handler = (
        logging.FileHandler(file) if file else logging.StreamHandler(sys.stderr)
    )
    if file is None and is_journal(sys.stderr, os.environ):
        handler.setFormatter(_Journal(_FOR_THE_JOURNAL))
    else:
        handler.setFormatter(logging.Formatter(_FORMAT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if debug else logging.WARNING)
    logging.getLogger("geniuzfs").setLevel(logging.DEBUG if debug else logging.INFO)


def is_journal(stream: TextIO | None, environment: Mapping[str, str]) -> bool:
    """Whether `stream` is what JOURNAL_STREAM says the journal reads: children inherit the
    variable, and may write elsewhere. None is a standard error that was closed at the start.
    """
    if stream is None:
        return False
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):  # closed, or none
        return False
    return environment.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class _Journal(logging.Formatter):
    """Each line of a record with its level before it: a traceback is as bad as what it tells of."""

    def format(self, record: logging.LogRecord) -> str:
        level = next((code for least, code in _SYSLOG if record.levelno >= least), _DEBUG)
        return "\n".join(f"<{level}>{line}" for line in super().format(record).splitlines())


class Recent(logging.Handler):
    """How many warnings and errors there were, and the last of them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.counts: Counter[str] = Counter()
        self.last: tuple[float, str] | None = None
        """Seconds since 1970, and the line."""

    def emit(self, record: logging.LogRecord) -> None:
        kind = "errors" if record.levelno >= logging.ERROR else "warnings"
        self.counts[kind] += 1
        self.last = (record.created, f"{record.levelname}: {record.getMessage()}")
