"""A real mount for tests: a daemon of its own, in directories of its own, always ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from geniuzfs.folders.mounts import mount_at
from geniuzfs.fs.places import RESERVED
from geniuzfs.store import check
from geniuzfs.store.connection import Database

READY_SECONDS = 30

ABORTED = "fuse: reading device: Software caused connection abort"
"""What libfuse itself prints at an unmount that the daemon takes for one (fs.mount)."""


class Daemon:
    """`with Daemon(tmp_path) as mount:` `mount.root` is "My memory" as the root of the mount
    (with `alone=None`: the directory that lists the folders). Leaving the block ends the mount,
    and fails when the database is not sound or the daemon has logged a warning or worse.

    `expected_log`: a text that log lines may contain without failing the test.
    `program`: the module that is run instead of geniuzfs, with the same arguments.
    """

    def __init__(
        self,
        directory: Path,
        *options: str,
        alone: str | None = "My memory",
        environment: Mapping[str, str] | None = None,
        expected_log: str | None = None,
        program: str = "geniuzfs",
    ) -> None:
        self.home = directory / "home"
        self.root = directory / "mount"
        self.log_path = directory / "daemon.log"
        self.database_path = self.home / "memory.db"
        self.process: subprocess.Popen[bytes] | None = None
        self._options = [*options, *(["--in", alone] if alone else [])]
        self._environment = {
            **os.environ,
            "GENIUZ_HOME": str(self.home),
            **(environment or {}),
        }
        self._expected_log = expected_log
        self._program = program

    def start(self) -> None:
        """Start the daemon and wait until it says it answers."""
        read, write = os.pipe()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    self._program,
                    "mount",
                    "--foreground",
                    f"--ready-fd={write}",
                    *self._options,
                    str(self.root),
                ],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(write,),
            )
        os.close(write)
        with os.fdopen(read) as said:
            word = said.readline().strip()
        assert word == "ready", f"the daemon said {word!r}; log: {self.log()}"

    def stop(self) -> int:
        """End it with SIGTERM; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def kill(self) -> None:
        """kill -9, and clear the dead mount away."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.unmount()

    def ended(self) -> int:
        """Wait for its end; its exit code."""
        assert self.process is not None
        return self.process.wait(READY_SECONDS)

    def unmount(self) -> None:
        """Whatever is still mounted goes, lazily."""
        while mount_at(self.root) is not None:
            subprocess.run(["umount", "--lazy", "--no-canonicalize", str(self.root)], check=True)

    def log(self) -> str:
        return self.log_path.read_text() if self.log_path.exists() else ""

    def check(self) -> None:
        """Fail when the database breaks an invariant."""
        database = Database.open(self.database_path)
        try:
            with database.snapshot() as view:
                assert list(check.problems(view)) == []
        finally:
            database.close()

    def __enter__(self) -> Self:
        self.root.mkdir(parents=True, exist_ok=True)
        self.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if self.process is not None and self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                self.process.wait(READY_SECONDS)
        except subprocess.TimeoutExpired:
            if self.process is not None:
                self.process.kill()
                self.process.wait()
            raise
        finally:
            self.unmount()
        if kind is None:
            self.check()
            assert self._unexpected() == []

    def _unexpected(self) -> list[str]:
        lines = [
            line for line in self.log().splitlines() if " INFO " not in line and line != ABORTED
        ]
        return [line for line in lines if not (self._expected_log and self._expected_log in line)]


def listed(directory: Path) -> list[str]:
    """The names in a directory of a mount, sorted, without those that are generated in a top."""
    return sorted(set(os.listdir(directory)) - {os.fsdecode(name) for name in RESERVED})


def wait_until(true: Callable[[], object], seconds: float = 10.0) -> None:
    """Poll `true()` until it holds; fail after `seconds`. For what has no event to wait for."""

    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.005)
