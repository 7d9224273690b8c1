"""What is measured: how each target comes up, where its files live, and how it is taken down.

Everything lives below one temporary directory, so native files, the passthrough's source and the
databases are on the same disk. A target that was started is always unmounted (lazily if it must
be) and its process, known by its own pid, always ends, whatever happened in between.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
START_S = 30.0
STOP_S = 10.0


class TargetError(Exception):
    """A target did not come up; the message ends with the last lines it logged."""


@dataclass(frozen=True)
class Target:
    """A running target: the clients work in, and only in, the directory `base`."""

    name: str
    base: Path


@dataclass(frozen=True)
class Server:
    """How to start a server that stays in the foreground; files live in `inside` of its mount."""

    command: list[str]
    mountpoint: Path
    inside: str = ""
    env: dict[str, str] | None = None


def is_mounted(mountpoint: Path) -> bool:
    """Whether the kernel lists a mount there; unlike ismount, true for a dead server's as well."""
    wanted = str(mountpoint)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        return any(line.split(" ", 5)[4] == wanted for line in lines)


def wait_until(done: Callable[[], bool], limit_s: float) -> bool:
    end = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def wait_ready(process: subprocess.Popen[bytes], server: Server, log: Path) -> None:
    """Return once the mount answers; TargetError when it ended first or took over START_S."""

    def up_or_dead() -> bool:
        return process.poll() is not None or os.path.ismount(server.mountpoint)

    if not wait_until(up_or_dead, START_S) or process.poll() is not None:
        tail = log.read_text(errors="replace")[-2000:]
        raise TargetError(f"{' '.join(server.command)}: not mounted\n{tail}")


def unmount_lazily(mountpoint: Path) -> None:
    for command in (["fusermount3", "-u", "-z"], ["umount", "-l"]):
        if not is_mounted(mountpoint):
            return
        subprocess.run([*command, str(mountpoint)], check=False, stderr=subprocess.DEVNULL)


def stop(process: subprocess.Popen[bytes], mountpoint: Path) -> None:
    """SIGTERM first; what is still mounted is unmounted lazily, what still runs is killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: process.poll() is not None, STOP_S)
    unmount_lazily(mountpoint)
    if process.poll() is None:
        print(f"bench: pid {process.pid} ignored SIGTERM, killed", file=sys.stderr)
        process.kill()
    process.wait()


@contextmanager
def served(name: str, server: Server, top: Path) -> Iterator[Target]:
    server.mountpoint.mkdir()
    log = top / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            server.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=server.env,
            start_new_session=True,  # Ctrl-C is for the bench, which then stops its servers
        )
    try:
        wait_ready(process, server, log)
        yield Target(name, server.mountpoint / server.inside)
    finally:
        stop(process, server.mountpoint)


@contextmanager
def native(top: Path) -> Iterator[Target]:
    base = top / "files"
    base.mkdir()
    yield Target("native", base)


def floor(top: Path, *options: str) -> Server:
    mountpoint = top / "mount"
    return Server([sys.executable, str(HERE / "floor.py"), str(mountpoint), *options], mountpoint)


def passthrough(top: Path, binary: str) -> Server:
    """libfuse's example in C over a native directory: multithreaded, kernel timeouts of 60 s.

    It keeps no page cache over an open (cache=auto) and has no xattrs, as it does by default.
    """
    source, mountpoint = top / "source", top / "mount"
    source.mkdir()
    options = f"source={source},timeout=60"
    return Server([binary, "-f", "-o", options, str(mountpoint)], mountpoint)


def geniuz(top: Path) -> Server:
    """geniuzfs with a fresh data directory, imported from this checkout."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    env = {**os.environ, "GENIUZ_HOME": str(top / "home"), "PYTHONPATH": path}
    mountpoint = top / "mount"
    command = [sys.executable, "-m", "geniuzfs", "mount", "--foreground", str(mountpoint)]
    return Server(command, mountpoint, "My memory", env)


NAMES = ("native", "floor", "floor60", "floor-commit", "passthrough", "geniuz")


def started(name: str, top: Path, binary: str | None) -> AbstractContextManager[Target]:
    """The named target, running inside the context; its files are all below `top`/`name`."""
    top = top / name
    top.mkdir()
    match name:
        case "native":
            return native(top)
        case "floor":
            server = floor(top)
        case "floor60":
            server = floor(top, "--timeout", "60")
        case "floor-commit":
            server = floor(top, "--commit", str(top / "contents.db"))
        case "passthrough" if binary:
            server = passthrough(top, binary)
        case "geniuz":
            server = geniuz(top)
        case _:
            raise TargetError(f"no target {name!r}, or --passthrough is missing")
    return served(name, server, top)
