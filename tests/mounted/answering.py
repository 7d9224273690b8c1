"""A daemon whose answers a test knows beforehand, and the test's side of it.

    python -m tests.mounted.answering mount --foreground --ready-fd=N [--in NAME]
        [--seconds N] [--allow-other] MOUNTPOINT

It takes the arguments that tests.daemon gives to geniuzfs. Every question is written
down in `asked` in the data directory, before it is answered.
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import click

from geniuzfs import logs, runtime
from geniuzfs.errors import UsageError
from geniuzfs.fs import mount as fs
from geniuzfs.model import FolderId, InodeNumber, Scope
from tests.daemon import Daemon

LONG = (
    b"".join(
        b"- line %d of the answer: \xc3\xa9clair [/memories/notes.md:%d]\n" % (n, n)
        for n in range(1, 2001)
    )[:100_000].rpartition(b"\n")[0]
    + b"\n"
)
"""What is answered to "long"."""


class Known:
    """Answers. "long": LONG. "wait ...": as others, but not while the file `gate` is locked.
    "since:never": malformed. Found is what stands in the file `found`, a path a line.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._writing = threading.Lock()

    def answer(self, scope: Scope, query: str) -> bytes:
        self._note("answer", scope, query)
        self._obey(query)
        return LONG if query == "long" else answer_to(scope.directory, query)

    def found(self, scope: Scope, query: str) -> list[bytes]:
        self._note("found", scope, query)
        self._obey(query)
        return (self._home / "found").read_bytes().splitlines()

    def status_text(self, scope: Scope) -> bytes:
        self._note("status", scope, "")
        return b"412 passages\n"

    def state(self, folder: FolderId, inode: InodeNumber) -> bytes:
        self._note("state", Scope(folder), str(inode))
        return b"learned"

    def _obey(self, query: str) -> None:
        if query.startswith("wait"):
            with open(self._home / "gate", "a") as gate:
                fcntl.flock(gate, fcntl.LOCK_SH)
        if query == "since:never":
            raise UsageError("since:never is no time: write since:7d or a date\x1b")

    def _note(self, kind: str, scope: Scope, query: str) -> None:
        where = "all" if scope.folder is None else str(scope.directory)
        with self._writing, open(self._home / "asked", "a") as notes:
            notes.write(f"{kind} {where} {quote(query)}\n")


class Answering(Daemon):
    """A mount with Known answers."""

    def __init__(self, directory: Path, *options: str, alone: str | None = "My memory") -> None:
        super().__init__(directory, *options, alone=alone, program="tests.mounted.answering")

    def asked(self) -> list[str]:
        """Every question so far: its kind, its directory's number (or "all"), its text, quoted."""
        notes = self.home / "asked"
        return notes.read_text().splitlines() if notes.exists() else []

    def queries(self) -> int:
        """How many questions there were, not counting looks at the status."""
        return sum(not line.startswith("status ") for line in self.asked())

    def will_find(self, *paths: str) -> None:
        (self.home / "found").write_text("".join(f"{path}\n" for path in paths))

    @contextlib.contextmanager
    def gate_closed(self) -> Iterator[Callable[[], None]]:
        """Within it "wait ..." waits, until what it yields is called."""
        with open(self.home / "gate", "a") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield lambda: fcntl.flock(gate, fcntl.LOCK_UN)


def answer_to(directory: int, query: str) -> bytes:
    return f"- asked {query!r} in {directory}\n".encode()


@click.command()
@click.argument("command")
@click.argument("mountpoint", type=Path)
@click.option("--in", "alone")
@click.option("--foreground", is_flag=True)
@click.option("--allow-other", is_flag=True)
@click.option("--seconds", type=float, default=30.0)
@click.option("--ready-fd", type=int)
def main(
    command: str,
    mountpoint: Path,
    alone: str | None,
    foreground: bool,
    allow_other: bool,
    seconds: float,
    ready_fd: int,
) -> None:
    assert command == "mount"
    assert foreground
    logs.set_up(debug=False)
    os.chdir("/")
    geniuz = runtime.geniuz()
    geniuz.begin()
    fs.prepare(geniuz, mountpoint)

    def ready() -> None:
        os.write(ready_fd, b"ready\n")
        os.close(ready_fd)

    options = fs.Options(mountpoint, alone, allow_other=allow_other)
    fs.serve(geniuz, options, ready, Known(geniuz.config.home), seconds)


if __name__ == "__main__":
    main()
