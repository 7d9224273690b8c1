"""Where things are: the environment and the places it names, read once, here alone."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from geniuzfs.errors import UsageError

DEFAULT_CONTENT_LIMIT = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of one run. Sizes in bytes."""

    home: Path
    """The data directory: one `memory.db` in it and one in each folder's directory."""
    mountpoint: Path
    content_limit: int
    """Bytes a file may hold; a hole counts nothing."""
    fast_wait: bool
    """False: serve with trio's stock wait (GENIUZ_FAST_WAIT=0)."""
    owner: tuple[int, int]
    """User and group of a new folder's top directory."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        """GENIUZ_HOME (default ~/.geniuz), GENIUZ_MOUNT (~/Memory),
        GENIUZ_CONTENT_LIMIT (bytes a file, 64 MiB), GENIUZ_FAST_WAIT (1).
        """
        user = Path(environment.get("HOME") or os.path.expanduser("~"))
        return cls(
            home=_absolute(environment.get("GENIUZ_HOME"), user / ".geniuz"),
            mountpoint=_absolute(environment.get("GENIUZ_MOUNT"), user / "Memory"),
            content_limit=_size(environment.get("GENIUZ_CONTENT_LIMIT"), DEFAULT_CONTENT_LIMIT),
            fast_wait=environment.get("GENIUZ_FAST_WAIT", "1") != "0",
            owner=(os.getuid(), os.getgid()),
        )


def _absolute(value: str | None, default: Path) -> Path:
    # Not resolve(): that would follow links, and could touch a mount that hangs.
    return Path(os.path.abspath(os.path.expanduser(value))) if value else default


def _size(value: str | None, default: int) -> int:
    if not value:
        return default
    try:
        size = int(value)
    except ValueError:
        size = 0
    if size <= 0:
        raise UsageError(f"GENIUZ_CONTENT_LIMIT must be a number of bytes, not {value!r}")
    return size
