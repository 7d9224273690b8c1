"""Where log lines go: one format, to standard error or to a file."""

import logging
import sys
from pathlib import Path

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def set_up(*, debug: bool, file: Path | None = None) -> None:
    """Log to `file` (appended; made with mode 0600 by the caller's umask) or to
    standard error. Warnings and worse, with `debug` everything.
    """
    handler: logging.Handler = (
        logging.FileHandler(file) if file else logging.StreamHandler(sys.stderr)
    )
    handler.setFormatter(logging.Formatter(_FORMAT))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.DEBUG if debug else logging.WARNING)
    logging.getLogger("geniuzfs").setLevel(logging.DEBUG if debug else logging.INFO)
