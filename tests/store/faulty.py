"""A disk that fails on demand: a VFS of SQLite's that counts writes and syncs.

What is counted is what can lose or tear a commit: writes to and syncs of the
database, its WAL and its journal. The shared memory (-shm) is rebuilt by whoever
opens the database next.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw


class Disk:
    """`fail_at(n)`: the n-th write or sync from now on fails. `torn`: a write that fails
    has put half of its bytes down. `dies`: all that come after it fail too, as after a
    loss of power; otherwise the disk is well again at once.
    """

    def __init__(self) -> None:
        self.count = 0
        self.failed = False
        self._fail_at: int | None = None
        self._torn = self._dies = False

    def fail_at(self, number: int | None, *, torn: bool = False, dies: bool = False) -> None:
        self.count, self.failed = 0, False
        self._fail_at, self._torn, self._dies = number, torn, dies

    def fails(self) -> bool:
        """Count one operation: is it to fail?"""
        self.count += 1
        now = self.count == self._fail_at
        self.failed = self.failed or now
        return now or self.is_dead

    @property
    def is_dead(self) -> bool:
        return self.failed and self._dies

    def tears(self) -> bool:
        return self._torn and self.count == self._fail_at


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._disk.fails():
            if self._disk.tears():
                super().xWrite(data[: len(data) // 2], offset)
            raise apsw.IOError("this write was made to fail")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        if self._disk.fails():
            raise apsw.IOError("this sync was made to fail")
        super().xSync(flags)


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        super().__init__("faulty", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> _File:
        return _File(self._disk, name, flags)

    def xDelete(self, name: str, sync_directory: bool) -> None:
        if not self._disk.is_dead:
            super().xDelete(name, sync_directory)


@contextmanager
def faulty_disk() -> Iterator[Disk]:
    """Every database that is opened within the block lies on the disk that it gets."""
    disk = Disk()
    vfs = _Vfs(disk)
    try:
        yield disk
    finally:
        vfs.unregister()
