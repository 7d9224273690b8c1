"""What a mount needs of the machine: the device, fusermount3, and no dead mount in its way.

Promises: nothing is changed, and no look waits for a mount that hangs for longer than
fs.mount.ANSWER_SECONDS.
"""

import ctypes
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyfuse3

from geniuzfs.fs.mount import answers
from geniuzfs.model import Finding

DEVICE = Path("/dev/fuse")
ALLOWED = Path("/etc/fuse.conf")


def findings(mounted: Iterable[Path]) -> Iterator[Finding]:
    """About the machine, and about the mounts at `mounted`."""
    yield kernel()
    yield device(DEVICE)
    yield fusermount(shutil.which("fusermount3"))
    yield other_users(ALLOWED)
    for mountpoint in mounted:
        yield live(mountpoint)


def kernel() -> Finding:
    return Finding("kernel", f"{os.uname().sysname} {os.uname().release}, libfuse {_libfuse()}")


def device(path: Path) -> Finding:
    """Whether the mount may open it."""
    if not path.exists():
        return Finding("FUSE", f"{path} is missing: the module is not loaded", "sudo modprobe fuse")
    if not stat.S_ISCHR(path.stat().st_mode):
        return Finding("FUSE", f"{path} is no device", f"sudo rm {path}; sudo modprobe fuse")
    if not os.access(path, os.R_OK | os.W_OK):
        return Finding("FUSE", f"{path} can't be opened", f"sudo chmod 666 {path}")
    return Finding("FUSE", str(path))


def fusermount(path: str | None) -> Finding:
    """Root mounts without it; who is not root needs it to be root's, with the setuid bit."""
    if path is None:
        return Finding("fusermount3", "not there", "sudo apt-get install -y fuse3")
    status = os.stat(path)
    setuid = status.st_uid == 0 and bool(status.st_mode & stat.S_ISUID)
    if not setuid and os.geteuid() != 0:
        return Finding("fusermount3", f"{path} is not setuid root", f"sudo chmod u+s {path}")
    return Finding("fusermount3", f"{path}{', setuid root' if setuid else ''}")


def other_users(path: Path) -> Finding:
    """No fault either way."""
    lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
    allowed = "user_allow_other" in (line.strip() for line in lines)
    who = "everybody" if allowed else "root alone"
    word = "set" if allowed else "not set"
    return Finding("user_allow_other", f"{word} in {path}: {who} may use --allow-other")


def live(mountpoint: Path) -> Finding:
    if answers(mountpoint):
        return Finding("mount", f"{mountpoint} answers")
    mend = f"geniuzfs umount --dead {mountpoint}"
    return Finding("mount", f"{mountpoint} is what a killed daemon left", mend)


def _libfuse() -> str:
    """The version of the library that pyfuse3 has loaded, whatever its file is called."""
    assert pyfuse3.__name__  # importing it is what loads the library
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if "/libfuse3" in path:
            version = ctypes.CDLL(path).fuse_pkgversion
            version.restype = ctypes.c_char_p
            return str(version().decode())
    return "unknown"
