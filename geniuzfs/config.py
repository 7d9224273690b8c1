"""Where things are: the environment and the places it names, read once, here alone."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from geniuzfs.errors import UsageError

Number = TypeVar("Number", int, float)

DEFAULT_CONTENT_LIMIT = 64 * 1024 * 1024
DEFAULT_IDLE_SECONDS = 300.0
MOST_THREADS = 4
"""Threads that embed where nothing else is said: each of them keeps one CPU busy."""


@dataclass(frozen=True, slots=True)
class Embedding:
    """Where vectors come from."""

    url: str | None
    """A local Ollama and its model, `http://127.0.0.1:11434#nomic-embed-text`; None: the helper."""
    runtime: Path
    """The directory of the helper's socket: the user's own, and no one else may enter."""
    idle_seconds: float
    """The helper ends when nobody has asked it for so long."""
    threads: int

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Embedding":
        """GENIUZ_EMBED_URL, XDG_RUNTIME_DIR (default: the usual one, which su and cron leave out,
        else a directory in /tmp), GENIUZ_EMBED_IDLE (seconds, 300), GENIUZ_THREADS (the CPUs, at
        most 4).
        """
        runtime = environment.get("XDG_RUNTIME_DIR") or _usual_runtime()
        idle = _number(environment, "GENIUZ_EMBED_IDLE", "seconds", DEFAULT_IDLE_SECONDS, float)
        cpus = min(len(os.sched_getaffinity(0)), MOST_THREADS)
        return cls(
            url=environment.get("GENIUZ_EMBED_URL") or None,
            runtime=(
                Path(runtime, "geniuzfs")
                if os.path.isabs(runtime)
                else Path(f"/tmp/geniuzfs-{os.getuid()}")
            ),
            idle_seconds=idle,
            threads=_number(environment, "GENIUZ_THREADS", "threads", cpus, int),
        )


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
    database: Path | None = None
    """The file of the folder that a command means when it names none (GENIUZ_DB)."""
    learns: bool = True
    """False: a mount does not start a learner (GENIUZ_LEARN=0)."""
    embedding: Embedding = field(default_factory=lambda: Embedding.from_environment({}))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        """GENIUZ_HOME (default ~/.geniuz), GENIUZ_MOUNT (~/Memory), GENIUZ_DB (none),
        GENIUZ_CONTENT_LIMIT (bytes a file, 64 MiB), GENIUZ_FAST_WAIT (1),
        GENIUZ_LEARN (1), and what Embedding reads.
        """
        user = Path(environment.get("HOME") or os.path.expanduser("~"))
        given = environment.get("GENIUZ_DB")
        return cls(
            home=_absolute(environment.get("GENIUZ_HOME"), user / ".geniuz"),
            mountpoint=_absolute(environment.get("GENIUZ_MOUNT"), user / "Memory"),
            content_limit=_number(
                environment, "GENIUZ_CONTENT_LIMIT", "bytes", DEFAULT_CONTENT_LIMIT, int
            ),
            fast_wait=environment.get("GENIUZ_FAST_WAIT", "1") != "0",
            owner=(os.getuid(), os.getgid()),
            database=_absolute(given, user) if given else None,
            learns=environment.get("GENIUZ_LEARN", "1") != "0",
            embedding=Embedding.from_environment(environment),
        )

    def environment(self) -> dict[str, str]:
        """The environment of a process that is to use the same data directory."""
        return {**os.environ, "GENIUZ_HOME": str(self.home)}


def here() -> Path | None:
    """The current directory; None where it has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _usual_runtime() -> str:
    """Where systemd listens for this user; "" where there is no session."""
    usual = f"/run/user/{os.getuid()}"
    return usual if os.access(usual, os.W_OK | os.X_OK) else ""


def _absolute(value: str | None, default: Path) -> Path:
    # Not resolve(): that would follow links, and could touch a mount that hangs.
    return Path(os.path.abspath(os.path.expanduser(value))) if value else default


def _number(
    environment: Mapping[str, str],
    name: str,
    unit: str,
    default: Number,
    kind: Callable[[str], Number],
) -> Number:
    value = environment.get(name)
    if not value:
        return default
    try:
        number = kind(value)
    except ValueError:
        number = default * 0
    if not 0 < number < math.inf:
        raise UsageError(f"{name} must be a number of {unit}, not {value!r}")
    return number
