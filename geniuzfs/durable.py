"""Files that are written whole or not at all, and renames that last.

Hides: which syncs that takes, and the errors of the operating system. Promises: what a function
here has done when it returns survives the loss of power; killed before, the earlier state
stands. Raises StoreFull, ReadOnly and StoreFault.
"""

import contextlib
import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from geniuzfs.errors import AlreadyExists, Busy, ReadOnly, StoreError, StoreFault, StoreFull

_ERRORS: dict[int | None, type[StoreError]] = {
    errno.ENOSPC: StoreFull,
    errno.EDQUOT: StoreFull,
    errno.EROFS: ReadOnly,
    errno.EACCES: ReadOnly,
    errno.EPERM: ReadOnly,
}


@contextlib.contextmanager
def translating(path: Path) -> Iterator[None]:
    """An OSError within becomes one of ours that names `path`."""
    try:
        yield
    except OSError as error:
        kind = _ERRORS.get(error.errno, StoreFault)
        raise kind(f"{path}: {error.strerror}") from error


def try_writing(directory: Path) -> None:
    """Make a file there, and have it gone again. Raises ReadOnly, StoreFull and StoreFault. Asking
    for permission is not enough: an ext4 that has found an error still says that all is well.
    """
    with translating(directory), tempfile.TemporaryFile(dir=directory):
        pass


def write(path: Path, text: str) -> None:
    """Have `path` hold `text`, in UTF-8, readable for its owner alone. Of several who write it at
    once each waits for its turn; the next one clears away what a killed one has left.
    """
    new = _new(path)
    while not _written(new, text.encode(), path):
        pass  # who had its turn before has renamed what was opened
    sync(path.parent)


@contextlib.contextmanager
def staged(path: Path) -> Iterator[Path]:
    """A new file beside `path`, which has that name when the block has ended well; else it is
    removed. Raises Busy as `scratch` does, and AlreadyExists for what has that name by then.
    """
    with scratch(_new(path)) as new:
        _check_free(path)  # who had `new` before may have put it there
        yield new
        sync(new)
        _check_free(path)
        rename(new, path)


def is_staged(path: Path) -> bool:
    """Whether a process is making that file, or was killed while it did."""
    return _new(path).exists()


def clear(directory: Path, suffix: str) -> None:
    """Remove what killed processes have left of new files called so; what is being made stays."""
    with translating(directory):
        left = [path for path in directory.iterdir() if path.name.endswith(f"{suffix}.new")]
    for path in left:
        if path.name.startswith(".") and path.is_file() and not path.is_symlink():
            with contextlib.suppress(StoreError), scratch(path):
                pass


@contextlib.contextmanager
def scratch(path: Path) -> Iterator[Path]:
    """An empty file at `path`, for the owner alone, removed at the end unless it was renamed. One
    that a killed process has left is taken over; Busy is raised while another process has it.
    """
    with translating(path), open(path, "ab", opener=_for_the_owner) as file:
        _claim(path, file.fileno())
        file.truncate(0)
        try:
            yield path
        finally:
            if _is_at(path, file.fileno()):
                path.unlink(missing_ok=True)


def _written(new: Path, held: bytes, path: Path) -> bool:
    with translating(path), open(new, "ab", opener=_for_the_owner) as file:
        _lock(file.fileno(), fcntl.LOCK_EX)
        if not _is_at(new, file.fileno()):
            return False
        try:
            file.truncate(0)
            file.write(held)
            file.flush()
            os.fsync(file.fileno())
            os.replace(new, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new)
            raise
    return True


def _claim(path: Path, descriptor: int) -> None:
    try:
        _lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise Busy(f"another process is writing {path}: try again when it is done") from error
    if not _is_at(path, descriptor):  # renamed or removed by who had it
        raise Busy(f"another process was writing {path}: try again")


def _lock(descriptor: int, how: int) -> None:
    try:
        fcntl.flock(descriptor, how)
    except OSError as error:  # a disk that knows no such locks: then nobody is asked
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise


def _check_free(path: Path) -> None:
    if path.exists():
        raise AlreadyExists(f"{path} is there already: nothing is written over it")


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def rename(old: Path, new: Path) -> None:
    """Give a file or directory another name on the same file system."""
    with translating(old):
        os.rename(old, new)
    sync(new.parent)
    sync(old.parent)


def remove(path: Path) -> None:
    """Have no file at `path`."""
    with translating(path):
        path.unlink(missing_ok=True)
        _new(path).unlink(missing_ok=True)
    sync(path.parent)


def sync(path: Path) -> None:
    """Put a file's bytes, or a directory's names, on the disk."""
    with translating(path):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:  # of directories, not every file system knows that
            if error.errno != errno.EINVAL or not path.is_dir():
                raise
        finally:
            os.close(descriptor)


def _new(path: Path) -> Path:
    return path.with_name(f".{path.name}.new")


def _for_the_owner(path: str, flags: int) -> int:
    # A link was put there by somebody else: in /tmp, say, to have another file emptied.
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
