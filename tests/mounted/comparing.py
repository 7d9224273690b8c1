"""Two trees, compared by everything that a copy must keep."""

import os
import stat
from pathlib import Path
from typing import Any


def described(root: Path) -> dict[str, dict[str, Any]]:
    """Path below `root` → type, mode, owner, times, size, bytes, extended attributes, and the
    first of the names that it shares.
    """
    found: dict[str, dict[str, Any]] = {}
    first_name: dict[int, str] = {}
    for path in sorted([root, *root.rglob("*")]):
        status = path.lstat()
        kind = stat.S_IFMT(status.st_mode)
        name = str(path.relative_to(root))
        one = found[name] = {
            "type": kind,
            "mode": stat.S_IMODE(status.st_mode),
            "owner": (status.st_uid, status.st_gid),
            "xattrs": {
                key: os.getxattr(path, key, follow_symlinks=False)
                for key in os.listxattr(path, follow_symlinks=False)
            },
            "mtime_ns": status.st_mtime_ns,
        }
        if kind != stat.S_IFDIR:
            one["size"] = status.st_size
            one["links"] = status.st_nlink
            one["same as"] = first_name.setdefault(status.st_ino, name)
        if kind == stat.S_IFREG:
            one["bytes"] = path.read_bytes()
        if kind == stat.S_IFLNK:
            one["target"] = os.readlink(path)
    return found


def differences(one: Path, two: Path) -> list[str]:
    """What is not the same in the trees, one line each."""
    left, right = described(one), described(two)
    lines = [f"{name!r} is in one alone" for name in left.keys() ^ right.keys()]
    for name in left.keys() & right.keys():
        for key in left[name].keys() | right[name].keys():
            here, there = left[name].get(key), right[name].get(key)
            if here != there:
                lines.append(f"{name!r}: {key} {str(here)[:80]} / {str(there)[:80]}")
    return lines
