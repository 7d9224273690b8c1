"""A tree of files as a plain dict: POSIX's rules written down once more, to compare with."""

import stat
from dataclasses import dataclass, field

from geniuzfs.errors import (
    AlreadyExists,
    DirectoryNotEmpty,
    IntoItself,
    IsADirectory,
    NameTooLong,
    NotADirectory,
    NotFound,
    UsageError,
)
from geniuzfs.model import ROOT, Exchange
from geniuzfs.store import tree


@dataclass
class File:
    """What the model knows of one inode. `entries`: name → number, in the order of listing;
    `bytes_` ends where the last byte that is not part of a hole at the end does.
    """

    mode: int
    uid: int
    gid: int
    rdev: int
    target: bytes | None
    times: list[int]
    size: int = 0
    bytes_: bytes = b""
    entries: dict[bytes, int] = field(default_factory=dict)
    attributes: dict[bytes, bytes] = field(default_factory=dict)

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.mode)


class Model:
    """A tree of files as a dict, with POSIX's rules written down once more."""

    def __init__(self) -> None:
        self.files: dict[int, File] = {int(ROOT): File(0o40755, 0, 0, 0, None, [1, 1, 1])}

    def links(self, number: int) -> int:
        file = self.files[number]
        if file.is_directory:
            return 2 + sum(self.files[below].is_directory for below in file.entries.values())
        return sum(list(one.entries.values()).count(number) for one in self.files.values())

    def beneath(self, top: int) -> set[int]:
        below = {top}
        for number in self.files[top].entries.values():
            below |= self.beneath(number)
        return below

    def directory(self, number: int) -> File:
        file = self.files.get(number)
        if file is None:
            raise NotFound
        if not file.is_directory:
            raise NotADirectory
        return file

    def child(self, parent: int, name: bytes) -> int | None:
        file = self.files.get(parent)
        return None if file is None else file.entries.get(name)

    def check_name(self, name: bytes) -> None:
        if name in (b"..", b"a/b"):
            raise UsageError
        if len(name) > 255:
            raise NameTooLong

    def create(self, parent: int, name: bytes, number: int, new: tree.New, now: int) -> None:
        self.check_name(name)
        self.add(parent, name, number, now)
        self.files[number] = File(*new[:4], new.target, [now, now, now], len(new.target or b""))

    def add(self, parent: int, name: bytes, number: int, now: int) -> None:
        if self.child(parent, name) is not None:
            raise AlreadyExists
        directory = self.directory(parent)
        directory.entries[name] = number
        directory.times[1:] = [now, now]

    def link(self, number: int, parent: int, name: bytes, now: int) -> None:
        self.check_name(name)
        if number not in self.files:
            raise NotFound
        if self.files[number].is_directory:
            raise IsADirectory
        self.add(parent, name, number, now)
        self.files[number].times[2] = now

    def remove(self, parent: int, name: bytes, now: int, directory: bool) -> None:
        number = self.child(parent, name)
        if number is None:
            raise NotFound
        self.check_replaceable(number, directory)
        self.take(parent, name, now)

    def check_replaceable(self, number: int, directory: bool) -> None:
        file = self.files[number]
        if directory and not file.is_directory:
            raise NotADirectory
        if not directory and file.is_directory:
            raise IsADirectory
        if file.entries:
            raise DirectoryNotEmpty

    def take(self, parent: int, name: bytes, now: int) -> None:
        number = self.files[parent].entries.pop(name)
        self.files[parent].times[1:] = [now, now]
        if self.files[number].is_directory or not self.links(number):
            del self.files[number]
        else:
            self.files[number].times[2] = now

    def rename(
        self, old: tuple[int, bytes], new: tuple[int, bytes], exchange: Exchange, now: int
    ) -> None:
        self.check_name(new[1])
        moved, other = self.child(*old), self.child(*new)
        if moved is None or (other is None and exchange is Exchange.SWAP):
            raise NotFound
        if other is not None and exchange is Exchange.NOREPLACE:
            raise AlreadyExists
        if moved == other:
            return
        if new[0] in self.beneath(moved) and self.files[moved].is_directory:
            raise IntoItself
        if other is not None and exchange is Exchange.SWAP:
            if old[0] in self.beneath(other) and self.files[other].is_directory:
                raise IntoItself
            self.files[old[0]].entries[old[1]] = other
            self.files[new[0]].entries[new[1]] = moved
            self.files[other].times[2] = now
        else:
            if other is not None:
                self.check_replaceable(other, self.files[moved].is_directory)
                self.take(*new, now)
            self.directory(new[0])
            self.put_name(old, new, moved)
        self.files[moved].times[2] = now
        for parent in (old[0], new[0]):
            self.files[parent].times[1:] = [now, now]

    def put_name(self, old: tuple[int, bytes], new: tuple[int, bytes], moved: int) -> None:
        entries = self.files[old[0]].entries
        if old[0] != new[0]:
            del entries[old[1]]
            self.files[new[0]].entries[new[1]] = moved
        else:  # it keeps its place in the listing
            renamed = {new[1] if name == old[1] else name: to for name, to in entries.items()}
            self.files[old[0]].entries = renamed
