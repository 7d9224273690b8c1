"""What a daemon asks of the kernel, in order: strace, parsed.

A line that says a call has ended stands before the line with which another call begins only
if the one was over before the other began: strace holds each thread at both moments.
"""

import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple, Self

import pytest

FSYNC, FSYNCDIR = 20, 30
"""Opcodes of requests."""

_CALLS = "fdatasync,fsync,pwrite64,ftruncate,read,writev"
_PATH = re.compile(r"^\d+<([^>]*)>")
_BYTES = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_RESULT = re.compile(r"= (-?\d+)[^=]*$")


class Call(NamedTuple):
    """A system call. `began` and `ended` are places in the order of all lines."""

    name: str
    thread: int
    path: str
    head: bytes
    """The first bytes that were read or written."""
    result: int
    began: int
    ended: int


class Request(NamedTuple):
    """A request of the kernel that the daemon has answered."""

    opcode: int
    error: int
    came: Call
    reply: Call


class Trace:
    """`with Trace(directory, pid) as trace:` follows the process; `calls()` when it is over.

    `inject`: faults, as strace's -e inject= takes them. `only`: follow calls on this path alone.
    """

    def __init__(
        self, directory: Path, pid: int, inject: str | None = None, only: str | None = None
    ) -> None:
        if shutil.which("strace") is None:
            pytest.skip("needs strace: apt-get install strace")
        self._output = directory / "strace.out"
        faults = ["-e", f"inject={inject}"] if inject else []
        self._command = ["strace", "-f", "-y", "-xx", "-s", "32", "-e", f"trace={_CALLS}", *faults]
        self._command += ["-P", only] if only else []
        self._command += ["-o", str(self._output), "-p", str(pid)]

    def __enter__(self) -> Self:
        self._strace = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        assert self._strace.stderr is not None
        said = self._strace.stderr.readline()
        if "attached" not in said:
            self._strace.wait()
            self._strace.stderr.close()
            pytest.skip(f"strace can't follow the daemon here: {said.strip()}")
        return self

    def __exit__(self, *_: object) -> None:
        self._strace.send_signal(signal.SIGINT)
        self._strace.communicate()

    def calls(self) -> list[Call]:
        """Those that were over before the trace was, by the time of their end."""
        begun: dict[tuple[int, str], tuple[int, str]] = {}
        found = []
        for place, line in enumerate(self._output.read_text().splitlines()):
            thread_text, _, text = line.partition(" ")
            thread, text = int(thread_text), text.strip()
            resumed = re.match(r"<\.\.\. (\w+) resumed>", text)
            if resumed:
                began, head = begun.pop((thread, resumed[1]), (None, ""))
                if began is None:
                    continue
                text = head + text[resumed.end() :]
            else:
                began = place
            called = re.match(r"(\w+)\(", text)
            if called is None:
                continue  # a signal, or the end of a thread
            if text.endswith("<unfinished ...>"):
                begun[thread, called[1]] = (place, text.removesuffix("<unfinished ...>"))
                continue
            result = _RESULT.search(text)
            if result is not None:  # none: a signal interrupted it, or the trace was over
                found.append(
                    _call(called[1], thread, text[called.end() :], int(result[1]), began, place)
                )
        return found


def _call(name: str, thread: int, rest: str, result: int, began: int, ended: int) -> Call:
    path, bytes_ = _PATH.match(rest), _BYTES.search(rest)
    return Call(
        name,
        thread,
        _plain(path[1]).decode() if path else "",
        _plain(bytes_[1]) if bytes_ else b"",
        result,
        began,
        ended,
    )


def _plain(escaped: str) -> bytes:
    return bytes.fromhex(escaped.replace("\\x", ""))


def requests(calls: list[Call], *opcodes: int) -> list[Request]:
    """The requests of these kinds that came and were answered."""
    came = {}
    found = []
    for call in calls:
        if call.path != "/dev/fuse" or call.result < 0:
            continue
        unique = call.head[8:16]
        if call.name == "read":
            came[unique] = call
        elif call.name == "writev" and unique in came:
            opcode = int.from_bytes(came[unique].head[4:8], "little")
            error = -int.from_bytes(call.head[4:8], "little", signed=True)
            if opcode in opcodes:
                found.append(Request(opcode, error, came[unique], call))
    return found
