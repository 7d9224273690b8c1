"""What can go wrong, as one tree: each error knows its errno and its exit code.

GeniuzError
├── UsageError               the request makes no sense as asked         EINVAL   2
│   ├── BadPath              no path that a file can have
│   ├── NotOnce              a text to be replaced stands there never or again
│   └── NotText              the file's bytes are no text                EILSEQ
├── NotFound                 no such file, folder or memory              ENOENT   1
├── Conflict                 what is there is not what was supposed      EEXIST   3
│   ├── AlreadyExists        the name is taken
│   │   └── BeneathFile      a file stands where a directory would be
│   └── Changed              the file is another than was read           EAGAIN
├── TreeError                the tree's rules forbid it                           3
│   ├── NotADirectory                                                    ENOTDIR
│   ├── IsADirectory                                                     EISDIR
│   ├── DirectoryNotEmpty                                                ENOTEMPTY
│   ├── NameTooLong          more than 255 bytes                         ENAMETOOLONG
│   ├── IntoItself           a directory moved beneath itself            EINVAL
│   ├── TooManyLinks                                                     EMLINK
│   ├── Stale                the file is gone, its handle is not         ESTALE
│   ├── OtherFolder          a move or link from one folder to another   EXDEV
│   ├── NotHere              not in the directory that lists the folders EPERM
│   ├── NoSuchAttribute      no extended attribute of that name          ENODATA
│   └── FileTooLarge         more content than a file may hold           EFBIG
├── Unreadable               a file outside can't be read                EACCES   5
├── StoreError               the database could not do it
│   ├── Busy                 another process holds the write lock        EBUSY    4
│   │   └── Moved            the folder is somewhere else by now
│   ├── StoreFull            the disk is full                            ENOSPC   5
│   ├── StoreFault           reading or writing the disk failed          EIO      5
│   ├── StoreDamaged         the file is not a sound database            EIO      6
│   ├── ReadOnly             the database can't be written               EROFS    5
│   └── TooNew               made by a newer version of this program     EPROTO   6
├── ModelUnavailable         no vectors: the model can't be loaded, or
│   │                        its helper not be reached                   EHOSTDOWN 9
│   └── TooLate              the helper did not answer in time           ETIMEDOUT
├── FolderError              a folder can't be used or moved as it is    EPERM   10
│   ├── TwoCopies            a folder is there twice                     EBUSY
│   └── Unfinished           a move that was interrupted is in the way   EBUSY
├── UnsafePlace              a place where a database or mount may not be EINVAL  2
└── MountError               the kernel or fusermount3 refused           EIO      7

The message is one line that says what to do next. Programs know three of them by another name
(`import geniuzfs`): InvalidRequest, NotFoundError and ConflictError. `EXIT_PROBLEMS` is what a
check exits with when it ran well and found something, `EXIT_INTERRUPTED` what a command does that
was stopped from the keyboard.
"""

import errno

EXIT_PROBLEMS = 8
EXIT_INTERRUPTED = 130
"""As shells say it of SIGINT."""


class GeniuzError(Exception):
    """The root: anything this program refuses or fails to do, on purpose."""

    errno: int = errno.EIO
    exit_code: int = 1


class UsageError(GeniuzError):
    """What was asked makes no sense; nothing was changed."""

    errno = errno.EINVAL
    exit_code = 2


class BadPath(UsageError):
    """No path of a file: nothing was stored."""


class NotText(UsageError):
    """The file holds something else than text: its bytes can be had."""

    errno = errno.EILSEQ


class NotOnce(UsageError):
    """What was to be replaced stands in the text nowhere, or more than once."""

    def __init__(self, message: str, lines: list[int]) -> None:
        super().__init__(message)
        self.lines = lines
        """Where it stands, from 1; the first LINES_MOST of them (api.edits)."""


class NotFound(GeniuzError):
    """What was named does not exist."""

    errno = errno.ENOENT
    exit_code = 1


class Conflict(GeniuzError):
    """What is there is not what the request supposed; nothing was changed."""

    errno = errno.EEXIST
    exit_code = 3


class AlreadyExists(Conflict):
    """The name is taken; nothing was changed."""


class BeneathFile(AlreadyExists):
    """A file stands where the path needs a directory; nothing was changed."""


class Changed(Conflict):
    """The file is another than was read; nothing was changed: read it anew."""

    errno = errno.EAGAIN


class TreeError(GeniuzError):
    """The rules of a tree of files forbid it; nothing was changed."""

    exit_code = 3


class NotADirectory(TreeError):
    errno = errno.ENOTDIR


class IsADirectory(TreeError):
    errno = errno.EISDIR


class DirectoryNotEmpty(TreeError):
    errno = errno.ENOTEMPTY


class NameTooLong(TreeError):
    errno = errno.ENAMETOOLONG


class IntoItself(TreeError):
    errno = errno.EINVAL


class TooManyLinks(TreeError):
    errno = errno.EMLINK


class Stale(TreeError):
    errno = errno.ESTALE


class OtherFolder(TreeError):
    errno = errno.EXDEV


class NotHere(TreeError):
    errno = errno.EPERM


class NoSuchAttribute(TreeError):
    errno = errno.ENODATA


class FileTooLarge(TreeError):
    errno = errno.EFBIG


class Unreadable(GeniuzError):
    """A file outside of the folders can't be read; nothing was changed."""

    errno = errno.EACCES
    exit_code = 5


class StoreError(GeniuzError):
    """The database could not do it; the transaction was undone."""

    exit_code = 5


class Busy(StoreError):
    """Another process holds the write lock: nothing happened, try again."""

    errno = errno.EBUSY
    exit_code = 4


class Moved(Busy):
    """The folder is somewhere else by now: open it there, and try again."""


class StoreFull(StoreError):
    errno = errno.ENOSPC


class StoreFault(StoreError):
    errno = errno.EIO


class StoreDamaged(StoreError):
    errno = errno.EIO
    exit_code = 6


class ReadOnly(StoreError):
    errno = errno.EROFS


class TooNew(StoreError):
    errno = errno.EPROTO
    exit_code = 6


class ModelUnavailable(GeniuzError):
    """No vectors: the model can't be loaded, or its helper not be reached. Words still work."""

    errno = errno.EHOSTDOWN
    exit_code = 9


class TooLate(ModelUnavailable):
    """The helper did not answer within the time it was given."""

    errno = errno.ETIMEDOUT


class FolderError(GeniuzError):
    """The folder can't be used or moved as it is; nothing was changed."""

    errno = errno.EPERM
    exit_code = 10


class TwoCopies(FolderError):
    """A folder is there twice: both are blocked until one of them is moved away."""

    errno = errno.EBUSY


class Unfinished(FolderError):
    """A move that was interrupted can't be finished or undone yet."""

    errno = errno.EBUSY


class UnsafePlace(GeniuzError):
    """A database or a mount point would stand where it can lose data."""

    errno = errno.EINVAL
    exit_code = 2


class MountError(GeniuzError):
    """The kernel, fusermount3 or an earlier mount stands in the way."""

    exit_code = 7
