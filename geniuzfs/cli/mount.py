"""geniuzfs mount: serve in the foreground, or start a daemon and wait until it answers."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import click

from geniuzfs import durable, logs, runtime
from geniuzfs.api import Geniuz
from geniuzfs.cli import cli, naming, output
from geniuzfs.errors import GeniuzError, MountError


@cli.command()
# Not click.Path: that asks for its status, which a dead mount may never give.
@click.argument("mountpoint", required=False, type=Path, shell_complete=naming.directories)
@naming.in_folder("Mount this folder alone, as the root.", "alone")
@click.option(
    "--foreground", "-f", is_flag=True, help="Stay in the foreground and log to standard error."
)
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@click.option("--allow-other", is_flag=True, help="Let other users in, as far as file modes do.")
@click.option("--debug", is_flag=True, help="Log everything.")
@click.option(
    "-o",
    "extra",
    metavar="OPTION",
    multiple=True,
    help="A mount option of the kernel's, such as dev or suid.",
)
@click.option("--ready-fd", type=int, hidden=True)
@output.as_json
def mount(
    mountpoint: Path | None,
    alone: str | None,
    foreground: bool,
    read_only: bool,
    allow_other: bool,
    debug: bool,
    extra: tuple[str, ...],
    ready_fd: int | None,
    as_json: bool,
) -> None:
    """Mount your folders at MOUNTPOINT (default: ~/Memory).

    Makes the data directory and the folder "My memory" on first use, and goes to
    the background once the mount answers.
    """
    from geniuzfs.fs import mount as fs  # brings pyfuse3 and trio, which no other command needs

    geniuz = runtime.geniuz()
    target = Path(os.path.abspath(mountpoint or geniuz.config.mountpoint))
    logs.set_up(debug=debug)
    if not foreground:
        log = start_daemon(geniuz, target, sys.argv[1:])
        if as_json:
            output.tell_json({"mountpoint": str(target), "log": str(log)})
        else:
            ends = f"geniuzfs umount ends it, {log} tells what happens"
            output.tell(f"mounted at {target}; {ends}")
        return
    with _reporting(ready_fd) as ready:
        os.chdir("/")  # a daemon holds no directory busy, least of all one beneath its mount
        geniuz.begin()
        fs.prepare(geniuz, target)
        options = fs.Options(
            target, alone, read_only, allow_other, tuple(o for e in extra for o in e.split(","))
        )

        def answers() -> None:
            ready()
            if as_json and ready_fd is None:
                output.tell_json({"mountpoint": str(target), "log": None})

        try:
            fs.serve(geniuz, options, answers, geniuz)
        finally:
            geniuz.close()  # the last one to close a database empties its log


class _reporting:
    """Tell whoever waits at `descriptor` of success ("ready") or of what went wrong."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> Callable[[], None]:
        return lambda: self._say("ready")

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, GeniuzError):
            self._say(f"{error.exit_code} {error}")

    def _say(self, text: str) -> None:
        if self._descriptor is not None:
            os.write(self._descriptor, text.encode() + b"\n")
            os.close(self._descriptor)
            self._descriptor = None


def _appended(log: Path) -> BinaryIO:
    with durable.translating(log):
        return open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600))


def start_daemon(geniuz: Geniuz, target: Path, arguments: Sequence[str]) -> Path:
    """Run this program with `arguments`, a mount's, in the foreground of a session of its own, and
    wait for its word. Its log. Raises MountError.
    """
    geniuz.begin()
    log = geniuz.config.home / "mount.log"
    read, write = os.pipe()
    with _appended(log) as out:
        command = [
            sys.executable,
            "-m",
            "geniuzfs",
            *arguments,
            "--foreground",
            f"--ready-fd={write}",
        ]
        daemon = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            pass_fds=(write,),
            start_new_session=True,
        )
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as said:
        word = said.readline().strip()
    if word != "ready":
        daemon.wait()
        code, _, reason = word.partition(" ")
        failed = MountError(reason or f"the daemon ended without a word: see {log}")
        failed.exit_code = int(code) if code.isdigit() else failed.exit_code
        raise failed
    os.stat(target)  # answered: the mount works
    return log
