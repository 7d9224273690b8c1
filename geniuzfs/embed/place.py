"""Where the helper is met: its socket, and who may have one there.

Promises: only processes of this user (or root) get in, and one process at a time listens.
Whoever wants a helper binds the socket and hands it to the process that it starts: a
connection made right then waits in the socket's queue until the helper is up, and is
reset if it never comes up. So nobody polls, and two who start at once do no harm.
Where systemd listens (systemd/geniuzfs-model.socket), to connect is to start a helper: whoever
only wants to know asks `is_running`.
"""

import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from geniuzfs.errors import UnsafePlace

SOCKET = "embed.sock"
_LOCK = "embed.lock"
_RUNNING = "embed.running"
_BACKLOG = 128
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


def prepare(runtime: Path) -> None:
    """Make the directory, mode 0700. Raises UnsafePlace when it is another user's, or open to
    others: whoever can write there could pose as the helper and read every note.
    """
    try:
        runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(runtime)
    except OSError as error:
        raise UnsafePlace(f"{runtime} can't hold the helper's socket: {error}") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise UnsafePlace(f"{runtime} must be a directory of yours that no one else may enter")


def connect(runtime: Path, seconds: float) -> socket.socket | None:
    """A connection to the helper, None when nobody listens. Raises OSError, TimeoutError."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(seconds)
        with _short(runtime) as name:
            made.connect(name)
        if not is_ours(made):
            raise PermissionError(f"another user's process listens in {runtime}")
    except (FileNotFoundError, ConnectionRefusedError):
        made.close()
        return None
    except BaseException:
        made.close()
        raise
    return made


def listen(runtime: Path) -> socket.socket | None:
    """The listening socket, mode 0600; None when somebody listens already. Raises UnsafePlace
    and OSError.
    """
    prepare(runtime)
    with _locked(runtime), _short(runtime) as name:
        there = connect(runtime, 1.0)
        if there is not None:
            there.close()
            return None
        (runtime / SOCKET).unlink(missing_ok=True)
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.bind(name)
            os.chmod(name, 0o600)
            made.listen(_BACKLOG)
        except BaseException:
            made.close()
            raise
        return made


def running(runtime: Path) -> int:
    """A descriptor, for good: while a process has it, or inherited it, `is_running` holds.
    Raises UnsafePlace and OSError.
    """
    prepare(runtime)
    descriptor = os.open(runtime / _RUNNING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)  # waits for a look of is_running at most
    return descriptor


def is_running(runtime: Path) -> bool:
    """Whether a helper runs, one that is still loading too. Starts none."""
    try:
        descriptor = os.open(runtime / _RUNNING, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def is_ours(connection: socket.socket) -> bool:
    """Whether this user or root is at the other end."""
    size = _CREDENTIALS.size
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _pid, uid, _gid = _CREDENTIALS.unpack(packed)
    return uid in (os.getuid(), 0)


@contextmanager
def _locked(runtime: Path) -> Iterator[None]:
    descriptor = os.open(runtime / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _short(runtime: Path) -> Iterator[str]:
    """The socket's name by way of an open directory: an address holds 107 bytes and no more."""
    descriptor = os.open(runtime, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)
