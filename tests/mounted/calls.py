"""System calls that Python lacks, and calls made as somebody else."""

import ctypes
import os
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
RENAME_WHITEOUT = 4

NOBODY = 65534
"""A user and a group that own nothing."""

Place = str | bytes | Path

_AT_FDCWD = -100
_libc = ctypes.CDLL(None, use_errno=True)
for _call in (_libc.telldir, _libc.fdopendir, _libc.readdir):
    _call.restype = ctypes.c_void_p
_libc.telldir.restype = ctypes.c_long


def renameat2(old: Place, new: Place, flags: int) -> None:
    done = _libc.renameat2(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), flags)
    if done != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


class Directory:
    """An open directory with a position that can be told and sought."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._stream = ctypes.c_void_p(_libc.fdopendir(descriptor))

    def read(self) -> bytes | None:
        """The next name; None at the end."""
        entry = _libc.readdir(self._stream)
        # struct dirent on 64-bit Linux: the name stands after 8 + 8 + 2 + 1 bytes.
        return None if entry is None else ctypes.string_at(entry + 19)

    def tell(self) -> int:
        position: int = _libc.telldir(self._stream)
        return position

    def seek(self, position: int) -> None:
        _libc.seekdir(self._stream, ctypes.c_long(position))

    def close(self) -> None:
        _libc.closedir(self._stream)


def errno_of(call: Callable[[], object]) -> int:
    """The errno that `call` fails with; 0 when it succeeds."""
    try:
        call()
    except OSError as error:
        return error.errno or 0
    return 0


def as_user(
    directory: Path, call: Callable[[], Any], uid: int = NOBODY, gid: int | None = None
) -> Any:
    """What `call` returns when somebody else makes it, in a process of its own whose
    working directory is `directory`. Relative paths: the way there may be closed to others.
    """
    gid = uid if gid is None else gid
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(directory)
            os.setgroups([])
            os.setresgid(gid, gid, gid)
            os.setresuid(uid, uid, uid)
            os.umask(0o022)
            said: tuple[bool, Any] = (True, call())
        except BaseException:  # noqa: BLE001 - whatever it is, the parent tells of it
            said = (False, traceback.format_exc())
        os.write(write, pickle.dumps(said))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    went_well, result = pickle.loads(answer)
    assert went_well, result
    return result


def errno_as_user(directory: Path, call: Callable[[], object], uid: int = NOBODY) -> int:
    """errno_of(call), made by somebody else."""
    errno: int = as_user(directory, lambda: errno_of(call), uid)
    return errno


def in_flight(process: int) -> bool:
    """Whether a process waits for an answer of the mount."""
    waits = Path(f"/proc/{process}/wchan").read_text()
    return "request_wait_answer" in waits or "fuse" in waits
