"""What of some files and directories is to be brought into a folder, and where to.

Hides: the rules of what is left out. Promises: nothing is written, no link is followed, and what is
left out is told with its reason. Refuses: a path that is not there, and two files for one place.
"""

import stat
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from geniuzfs import disk
from geniuzfs.disk import Found
from geniuzfs.errors import AlreadyExists, GeniuzError, UsageError
from geniuzfs.learn.ignore import IGNORE_NAME, Ignored
from geniuzfs.model import RESERVED
from geniuzfs.names import is_temporary

_RULES = (b".gitignore", IGNORE_NAME.encode())
"""In this order: of two lines that disagree, the later one counts."""

_LARGEST_RULES = 1024 * 1024


class Reason(StrEnum):
    """Why something was left out."""

    IGNORED = "ignored"
    TEMPORARY = "temporary"
    SPECIAL = "no file"
    RESERVED = "reserved name"
    TOO_LARGE = "too large"
    UNREADABLE = "unreadable"
    NO_TEXT = "no text"
    LINK = "link"


class LeftOut(NamedTuple):
    path: str
    reason: Reason


class Wanted(NamedTuple):
    """One thing to bring in. `place`: its path from the folder's top."""

    place: bytes
    found: Found


class Plan(NamedTuple):
    """`wanted`: directories before what is in them."""

    wanted: list[Wanted]
    left_out: list[LeftOut]


def walk(given: Sequence[Path], into: bytes, limit: int, *, everything: bool) -> Plan:
    """What is to be brought into directory `into`. What was named is, and what is beneath it but
    for files of more than `limit` bytes, what is ignored there and what is temporary;
    with `everything` the latter three too. Raises NotFound, Unreadable and AlreadyExists.
    """
    walk = _Walk(limit, everything)
    for path in given:
        walk.take(path, into)
    places: dict[bytes, Wanted] = {}
    for each in walk.plan.wanted:
        other = places.setdefault(each.place, each)
        if other is not each and not _both_directories(other, each):
            one, two = disk.shown(other.found.path), disk.shown(each.found.path)
            raise AlreadyExists(f"{one} and {two} would go to one place: bring them in one by one")
    return walk.plan


def directory(given: str) -> bytes:
    """A path from the folder's top, as it is written in a mount. Raises UsageError."""
    names = [name for name in given.encode("utf-8", "surrogateescape").split(b"/") if name]
    if any(name in RESERVED or name in (b".", b"..") for name in names):
        raise UsageError(f"{given} can't be a directory of a folder")
    return b"/".join(names)


def kind_of(mode: int) -> int:
    """S_IFREG, S_IFDIR, S_IFLNK, or something else."""
    return stat.S_IFMT(mode)


class _Walk:
    def __init__(self, limit: int, everything: bool) -> None:
        self.plan = Plan([], [])
        self._limit = limit
        self._everything = everything

    def take(self, given: Path, into: bytes) -> None:
        """Take in what was named, and what is beneath it."""
        path, name = disk.top_of(given)
        found = disk.look(path)
        if name is None:
            self._beneath(found, into)
            return
        place = _joined(into, name)
        if self._takes(found, name, place) and stat.S_ISDIR(found.mode):
            self._beneath(found, place)

    def _beneath(self, top: Found, into: bytes) -> None:
        """What is in a directory, at any depth: no recursion, for paths may be 2,000 deep."""
        ignored, skip = Ignored({}), len(top.path.rstrip(b"/")) + 1
        left = [(top, into)]
        while left:
            directory, place = left.pop()
            try:
                names = disk.names(directory.path)
            except GeniuzError:
                self._leave_out(directory.path, Reason.UNREADABLE)
                continue
            self._read_rules(ignored, directory, names, directory.path[skip:])
            below = []
            for name in names:
                path = _joined(directory.path, name)
                try:
                    found = disk.look(path)
                except GeniuzError:
                    self._leave_out(path, Reason.UNREADABLE)
                    continue
                reason = self._covered(ignored, found, name, path[skip:])
                if reason is not None:
                    self._leave_out(path, reason)
                elif self._takes(found, name, _joined(place, name)) and stat.S_ISDIR(found.mode):
                    below.append((found, _joined(place, name)))
            left += reversed(below)

    def _read_rules(
        self, ignored: Ignored, directory: Found, names: list[bytes], where: bytes
    ) -> None:
        texts = []
        for name in _RULES if not self._everything else ():
            if name in names:
                try:
                    held = disk.read(_joined(directory.path, name), _LARGEST_RULES)
                except GeniuzError:  # a link, or not ours to read: no rules, as with git
                    continue
                texts.append(b"".join(held.pieces.values()).decode("utf-8", "replace"))
        if texts:
            ignored.add(disk.shown(where), "\n".join(texts))

    def _covered(self, ignored: Ignored, found: Found, name: bytes, path: bytes) -> Reason | None:
        if self._everything:
            return None
        if is_temporary(name):
            return Reason.TEMPORARY
        covers = ignored.covers(disk.shown(path), directory=stat.S_ISDIR(found.mode))
        return Reason.IGNORED if covers else None

    def _takes(self, found: Found, name: bytes, place: bytes) -> bool:
        """Whether it can be brought in; then it is wanted."""
        if name in RESERVED:
            self._leave_out(found.path, Reason.RESERVED)
        elif kind_of(found.mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
            self._leave_out(found.path, Reason.SPECIAL)
        elif stat.S_ISREG(found.mode) and min(found.size, found.allocated) > self._limit:
            self._leave_out(found.path, Reason.TOO_LARGE)
        else:
            self.plan.wanted.append(Wanted(place, found))
            return True
        return False

    def _leave_out(self, path: bytes, reason: Reason) -> None:
        self.plan.left_out.append(LeftOut(disk.shown(path), reason))


def _both_directories(one: Wanted, other: Wanted) -> bool:
    return stat.S_ISDIR(one.found.mode) and stat.S_ISDIR(other.found.mode)


def _joined(directory: bytes, name: bytes) -> bytes:
    return name if not directory else directory.rstrip(b"/") + b"/" + name
