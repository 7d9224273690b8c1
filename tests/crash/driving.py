"""The other side of `savers`: starts them, hears what they are told, judges what survived."""

import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from geniuzfs.model import ROOT
from geniuzfs.store import check, content, tree
from geniuzfs.store.connection import Database
from tests.crash import savers


class Saver:
    """A process that saves one file by one method, and what it has been told."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.saved = 0
        """The last version whose close or rename returned."""
        self.stopped = True
        self._rest = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.savers", method],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            bufsize=0,
        )

    def go(self, root: Path, version: int) -> None:
        assert self.process.stdin is not None
        self.saved, self.stopped = version, False
        self.process.stdin.write(f"go\t{root}\t{version}\n".encode())

    def fileno(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def listen(self) -> int:
        """Take in what it says; how many saves that reports."""
        got = os.read(self.fileno(), 65_536)
        assert got, f"the saver by {self.method} ended"
        *lines, self._rest = (self._rest + got).split(b"\n")
        count = 0
        for word, version in (line.split() for line in lines):
            if word == b"saved":
                self.saved = int(version)
                count += 1
            else:
                self.stopped = True
        return count

    def end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


@contextmanager
def all_savers() -> Iterator[list[Saver]]:
    running: list[Saver] = []
    try:
        for method in savers.METHODS:
            running.append(Saver(method))
        yield running
    finally:
        for saver in running:
            saver.process.kill()
            saver.end()


def serve_until(running: list[Saver], saves: int) -> None:
    """Return when the savers have reported so many saves."""
    with selectors.DefaultSelector() as selector:
        for saver in running:
            selector.register(saver.fileno(), selectors.EVENT_READ, saver)
        while saves > 0:
            for key, _ in selector.select():
                saves -= key.data.listen()
                assert not key.data.stopped, f"a save by {key.data.method} failed by itself"


def stored(path: Path) -> dict[str, bytes]:
    """What the database holds, which must be sound, without a daemon."""
    database = Database.open(path)
    try:
        with database.snapshot() as view:
            assert list(check.problems(view)) == []
            return {
                os.fsdecode(entry.name): content.read(view, entry.inode)
                for entry in tree.listing(view, ROOT, 0, 1000)
            }
    finally:
        database.close()


def version_found(saver: Saver, files: dict[str, bytes], oldest: int) -> int:
    """The version that survived: whole, not older than `oldest`, not newer than the one that
    was being saved.
    """
    if saver.method not in files or not files[saver.method]:
        assert oldest == 0, f"{saver.method}: version {saver.saved} is gone"
        return 0
    found = savers.version_of(saver.method, files[saver.method])
    assert found is not None, f"{saver.method}: no whole version"
    assert oldest <= found <= saver.saved + 1, (
        f"{saver.method}: {oldest} to {saver.saved} were saved, {found} is there"
    )
    return found
