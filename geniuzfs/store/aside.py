"""A damaged database is put aside, and a new one takes its place.

Hides: names and order of the files. Promises: the damaged file and its log stay as they are,
under the name `memory.db.damaged-TIME`, which nobody looks at; a crash leaves the old one or the
new one in place, and what it has left half done is undone by the next. Refuses: to touch what
another process has open (Busy).
"""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

import apsw

from geniuzfs import durable
from geniuzfs.errors import Busy, StoreDamaged
from geniuzfs.store import salvage

_WORK = ".repair"
"""A directory beside the database for what is not finished."""

_LOCKS, _LOCK_BYTES = 0x40000000, 512
"""Where SQLite locks its files: who has one open with a write-ahead log holds some of these."""

_MAGIC = b"SQLite format 3\0"
_PAGE = 4096
_PAGES = slice(28, 32)
"""Of the header: how many pages there are."""


class Aside(NamedTuple):
    """A damaged file that nobody else can open meanwhile."""

    path: Path
    copy: Path
    """Of it and its log, with a header that makes sense; may be written to."""
    new: Path
    """Where what takes its place is made."""


@contextmanager
def alone(path: Path) -> Iterator[Aside]:
    """Within it nobody else has the database at `path` open. Raises Busy. No connection of this
    process may be open: closing one would let the others in.
    """
    work = path.parent / _WORK
    with durable.translating(path), FileIO(path, "r+b") as held:
        try:
            fcntl.lockf(held, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCK_BYTES, _LOCKS)
        except OSError as error:
            raise Busy(
                f"{path} is open in another process: end its mount and who else uses it, then"
                " repair it"
            ) from error
        if not path.samefile(f"/proc/self/fd/{held.fileno()}"):
            raise Busy(f"{path} was repaired by another process at this moment: look at it again")
        _undo(path)
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700)
        try:
            yield Aside(path, _copied(held, path, work), work / "new.db")
        finally:
            shutil.rmtree(work, ignore_errors=True)


def swap(aside: Aside, when: str) -> Path:
    """Put what was made in the place of the damaged file; where that is then."""
    path, new = aside.path, aside.new
    status = path.stat()
    new.chmod(status.st_mode & 0o777)
    with suppress(PermissionError):
        shutil.chown(new, status.st_uid, status.st_gid)
    durable.sync(new)
    kept = path.with_name(f"{path.name}.damaged-{when}")
    with durable.translating(kept):
        kept.hardlink_to(path)
        log = _log(path)
        if log.exists():
            log.rename(_log(kept))
        path.with_name(path.name + "-shm").unlink(missing_ok=True)
        durable.sync(path.parent)  # or after a loss of power the log might be the new file's
        new.rename(path)
    durable.sync(path.parent)
    return kept


def _undo(path: Path) -> None:
    """A swap that was killed has left two names of one file, and maybe its log with the other. That
    comes back, unless somebody has written to the file without it since: it is of an older state
    then, and stays apart.
    """
    for kept in path.parent.glob(f"{path.name}.damaged-*"):
        if kept.samefile(path):
            log, back = _log(kept), _log(path)
            written_ns = path.stat().st_mtime_ns
            if log.exists() and not back.exists() and written_ns <= log.stat().st_ctime_ns:
                log.rename(back)
            kept.unlink()


def _copied(held: FileIO, path: Path, work: Path) -> Path:
    """Through the open file: to close another one of it would give the lock back."""
    copy = work / "copy.db"
    with copy.open("wb") as out:
        held.seek(0)
        shutil.copyfileobj(held, out)
    if _log(path).exists():
        shutil.copyfile(_log(path), _log(copy))
    if not _is_read(copy) and _log(copy).exists():
        _log(copy).unlink()  # not its own; the damaged file keeps it
    if not _is_read(copy):
        _give_header(copy)
    return copy


def _is_read(copy: Path) -> bool:
    """Whether SQLite finds a schema in it."""
    try:
        connection = salvage.past_schema(copy)
        try:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            return connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() != (0,)
        finally:
            connection.close()
    except apsw.Error:
        return False


def _give_header(copy: Path) -> None:
    """A header as all our files have it, in place of one that makes no sense. Raises StoreDamaged
    for what was no database of ours.
    """
    connection = apsw.Connection(":memory:")
    connection.execute("PRAGMA page_size = 4096; CREATE TABLE t (x); DROP TABLE t")
    header = bytearray(connection.serialize("main")[:100])
    connection.close()
    header[18:20] = b"\2\2"  # a write-ahead log
    header[_PAGES] = (copy.stat().st_size // _PAGE).to_bytes(4, "big")
    header[92:96] = header[24:28]  # the count of pages above holds for this change counter
    with copy.open("r+b") as file:
        file.write(header)
    if not _is_read(copy):
        raise StoreDamaged("it is no database, or none of which anything can be read")


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")
