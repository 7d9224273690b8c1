"""The fast wait is in place, gives way where it does not fit, and starves nobody."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.daemon import Daemon

WARNING = "serving with the stock one"
CLIENTS = 32
ENDED = {errno.ECONNABORTED, errno.ENOTCONN, errno.ENOENT}
"""What a client is told once the mount has ended."""


class Served(Daemon):
    """A Daemon whose process is tests.fs.served: it says how it waits, and answers `ask`."""

    def __init__(
        self,
        directory: Path,
        condition: str = "nothing",
        *,
        environment: Mapping[str, str] | None = None,
        expected_log: str | None = None,
    ) -> None:
        super().__init__(directory, environment=environment, expected_log=expected_log)
        self.wait = ""
        self._command = [sys.executable, "-m", "tests.fs.served", str(directory), condition]

    def start(self) -> None:
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                cwd=Path(__file__).parents[2],
            )
        self.wait = self._said()

    def ask(self, command: str) -> str:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(command.encode() + b"\n")
        return self._said()

    def _said(self) -> str:
        assert self.process is not None
        assert self.process.stdout is not None
        word = self.process.stdout.readline().decode().strip()
        assert word, f"it ended; log: {self.log()}"
        return word

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            super().__exit__(kind, *rest)
        finally:
            if self.process is not None:
                assert self.process.stdin is not None
                assert self.process.stdout is not None
                self.process.stdin.close()
                self.process.stdout.close()


@contextmanager
def constant_load(path: Path) -> Iterator[list[int]]:
    """Many clients, each with a request on its way all the time, until the mount ends or this.
    Yields how often each has opened and closed the file by now.
    """
    opened = [0] * CLIENTS
    path.write_bytes(b"Tea at four.\n")
    all_begun, enough = threading.Barrier(CLIENTS + 1), threading.Event()

    def client(number: int) -> None:
        os.close(os.open(path, os.O_RDONLY))
        all_begun.wait()
        while not enough.is_set():
            try:
                os.close(os.open(path, os.O_RDONLY))
            except OSError as error:
                if error.errno not in ENDED:
                    raise
                return
            opened[number] += 1

    with ThreadPoolExecutor(CLIENTS) as threads:
        running = [threads.submit(client, number) for number in range(CLIENTS)]
        try:
            all_begun.wait()
            yield opened
        finally:
            enough.set()
    for one in running:
        one.result()


def serves(root: Path) -> bool:
    (root / "plan.md").write_bytes(b"Tea at four.\n")
    return (root / "plan.md").read_bytes() == b"Tea at four.\n"


def test_the_fast_wait_fits_the_pinned_pyfuse3_and_trio(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        assert served.wait == "fast"
        assert serves(served.root)


@pytest.mark.parametrize(
    "condition", ["pyfuse3-renamed-it", "trio-renamed-it", "second-fuse-descriptor"]
)
def test_where_the_fast_wait_does_not_fit_the_stock_one_serves(
    tmp_path: Path, condition: str
) -> None:
    with Served(tmp_path, condition, expected_log=WARNING) as served:
        assert served.wait == "stock"
        assert serves(served.root)
        assert served.log().count(WARNING) == 1


def test_the_stock_wait_serves_without_a_word_where_it_is_wanted(tmp_path: Path) -> None:
    with Served(tmp_path, environment={"GENIUZ_FAST_WAIT": "0"}) as served:
        assert served.wait == "stock"
        assert serves(served.root)
        assert WARNING not in served.log()


def test_many_clients_are_served_by_few_workers(tmp_path: Path) -> None:
    with Served(tmp_path) as served:
        with constant_load(served.root / "plan.md"):
            served.ask("deliver")
        assert 1 < int(served.ask("workers")) < 20


@pytest.mark.parametrize("fast_wait", ["1", "0"], ids=["fast", "stock"])
def test_timers_threads_calls_and_signals_get_through_under_constant_load(
    tmp_path: Path, fast_wait: str
) -> None:
    with (
        Served(tmp_path, environment={"GENIUZ_FAST_WAIT": fast_wait}) as served,
        constant_load(served.root / "plan.md") as opened,
    ):
        before = sum(opened)
        assert served.ask("deliver") == "delivered"
        assert sum(opened) > before + CLIENTS


def test_sigterm_ends_a_mount_under_constant_load(mount: Daemon) -> None:
    with constant_load(mount.root / "plan.md"):
        assert mount.stop() == 0
