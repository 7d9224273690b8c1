"""What a mount has done since it began, and what went wrong last.

Promises: whoever asks for COUNTERS of the mount's own directory gets all of it as JSON, whichever
process that is; `.status` ends with the same in words. Counting costs an addition.
"""

import json
import logging
from collections.abc import Iterable
from datetime import datetime

from geniuzfs import logs

COUNTERS = "user.geniuz.counters"
"""An extended attribute that no list names: `cp -a` would try to set it on the copy."""


class Counted:
    """The counters of one mount. `since_ns`: when it began."""

    def __init__(self, since_ns: int) -> None:
        self.since_ns = since_ns
        self.questions = 0
        self.refused = 0
        self._recent = logs.Recent()

    def listen(self) -> None:
        """Count what is logged from now on. The process ends with the mount, so for good."""
        logging.getLogger().addHandler(self._recent)

    def as_json(self, saves: Iterable[int]) -> bytes:
        """`saves`: of each folder that was mounted."""
        at, line = self._recent.last or (None, None)
        counted = {
            "since": self.since_ns / 1e9,
            "saves": sum(saves),
            "questions": self.questions,
            "refused": self.refused,
            "warnings": self._recent.counts["warnings"],
            "errors": self._recent.counts["errors"],
            "last_problem": line,
            "last_problem_at": at,
        }
        return json.dumps(counted).encode()


def told(counters: bytes) -> list[str]:
    """What `as_json` gave, in words."""
    counted = json.loads(counters)
    refused = f" ({counted['refused']} refused)" if counted["refused"] else ""
    lines = [
        f"since {_minute(counted['since'])}: {counted['saves']} saves,"
        f" {counted['questions']} questions{refused},"
        f" {counted['warnings']} warnings, {counted['errors']} errors"
    ]
    if counted["last_problem"] is not None:
        lines.append(f"last problem, {_minute(counted['last_problem_at'])}: {_plain(counted)}")
    return lines


def _minute(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"


def _plain(counted: dict[str, str]) -> str:
    return " ".join(counted["last_problem"].split())
