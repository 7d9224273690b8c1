"""A tar archive becomes files and kept memories of a folder.

Hides: that it may come from another program. Promises: all of it or nothing, in the caller's
transaction; it goes into the folder's tree and never onto the disk, so that no name or link in it
leads anywhere else; nothing that is there is replaced, and no memory is doubled. Refuses: names
with `..` or from the root, hard links to what the archive does not hold, and an archive that is
cut off. Who is not root gets what is his alone: his ownership, no devices, and of the extended
attributes those of users.
"""

import json
import stat
import tarfile
from collections.abc import Callable
from typing import IO, NamedTuple

from geniuzfs.api import tar
from geniuzfs.api.capturing import MADE_ATTRIBUTE
from geniuzfs.api.exporting import DIRECTORY, FOLDER, FORMAT, MEMORIES, row_in
from geniuzfs.errors import AlreadyExists, FileTooLarge, NotFound, TreeError, UsageError
from geniuzfs.model import CHUNK, RESERVED, ROOT, Identity, Inode, InodeNumber, Writer
from geniuzfs.store import content, memories, tree, whole, xattrs
from geniuzfs.store.content import Save
from geniuzfs.store.transactions import Txn
from geniuzfs.store.tree import Fields, New

LINE_MAX = 64 * 1024 * 1024
"""Bytes of a line of kept memories."""

_IMPORT = Writer("geniuzfs import", 0, 0)

_ABOUT_MAX = 1024 * 1024

_NAMESPACES = (b"user.", b"trusted.", b"security.")

_MODES = {
    tarfile.REGTYPE: stat.S_IFREG,
    tarfile.DIRTYPE: stat.S_IFDIR,
    tarfile.SYMTYPE: stat.S_IFLNK,
    tarfile.FIFOTYPE: stat.S_IFIFO,
    tarfile.CHRTYPE: stat.S_IFCHR,
    tarfile.BLKTYPE: stat.S_IFBLK,
}

_IDS, _TIMES, _SIZES = range(2**32 - 1), range(-(2**63), 2**63), range(2**63)


class Imported(NamedTuple):
    """How many names and memories came, how many of the memories were here already, what was left
    out, and whose the archive says it is; None: it was made by another program.
    """

    files: int
    memories: int
    known: int
    left_out: list[str]
    identity: Identity | None


class Rules(NamedTuple):
    """`owner`: who imports; `limit`: bytes of content that a file may hold; `is_new`: the folder is
    made for this, so that the attributes of its top are those of the archive.
    """

    owner: tuple[int, int]
    limit: int
    is_new: bool


def take_in(
    txn: Txn, source: IO[bytes], rules: Rules, now_ns: int, tell: Callable[[], None]
) -> Imported:
    """Take an archive in; `tell` is called after each of its members. Raises UsageError,
    AlreadyExists and FileTooLarge, after which the transaction must be undone.
    """
    taking = _Import(txn, rules, now_ns)
    with tar.whole():
        for member, file in tar.members(source):
            taking.member(member, file)
            tell()
    return taking.done()


class _Import:
    def __init__(self, txn: Txn, rules: Rules, now_ns: int) -> None:
        self._txn = txn
        self._rules = rules
        self._now_ns = now_ns
        self._as_root = rules.owner[0] == 0
        self._made: set[InodeNumber] = {ROOT} if rules.is_new else set()
        self._directories: list[tuple[InodeNumber, tar.Member]] = []
        self._about: dict[str, object] | None = None
        self._files = self._memories = self._known = 0
        self._seen_memories = False
        self._left_out: list[str] = []

    def member(self, member: tar.Member, file: IO[bytes] | None) -> None:
        if member.comment == FOLDER and file is not None:
            self._about = _about(file)
        elif member.comment == MEMORIES and file is not None:
            self._keep(file)
        elif member.comment != DIRECTORY:
            names = _names(member.path)
            if not RESERVED.isdisjoint(names):
                self._leave_out(member, "a mount makes it itself")
            else:
                with _naming(member):
                    self._take(member, names, file)

    def done(self) -> Imported:
        # What came into a directory has moved its times, so these are put last.
        for number, member in self._directories:
            self._dress(number, member)
        kept = None if self._about is None else self._about.get("memories")
        if self._about is not None and (
            not self._seen_memories or kept != self._memories + self._known
        ):
            raise UsageError("the archive is not whole: its end is missing")
        identity = None if self._about is None else _identity(self._about)
        return Imported(self._files, self._memories, self._known, self._left_out, identity)

    def _keep(self, file: IO[bytes]) -> None:
        self._seen_memories = True
        while line := file.readline(LINE_MAX):
            if memories.bring(self._txn, row_in(line)):
                self._memories += 1
            else:
                self._known += 1

    def _take(self, member: tar.Member, names: list[bytes], file: IO[bytes] | None) -> None:
        if not names:
            if ROOT in self._made:
                self._directories.append((ROOT, member))
            return
        parent = self._directory(names[:-1])
        self._files += 1
        found = tree.child(self._txn, parent, names[-1])
        if member.kind == tarfile.DIRTYPE and found is not None and stat.S_ISDIR(found.mode):
            if found.number in self._made:
                self._directories.append((found.number, member))
        elif member.kind == tarfile.LNKTYPE:
            self._link(member, parent, names[-1])
        elif member.kind in _MODES:
            self._create(member, parent, names[-1], file)
        else:
            raise UsageError(f"it is of a kind {member.kind!r} that no folder can hold")

    def _directory(self, names: list[bytes]) -> InodeNumber:
        """The directory of that path, made where the archive does not say what it is like."""
        maker = whole.Maker(*self._rules.owner, self._now_ns)
        return whole.make_directories(self._txn, names, maker, self._made.add)

    def _link(self, member: tar.Member, parent: InodeNumber, name: bytes) -> None:
        found: Inode | None = tree.inode(self._txn, ROOT)
        for part in _names(member.link):
            found = None if found is None else tree.child(self._txn, found.number, part)
        if found is None or found.number not in self._made:
            raise UsageError(f"it is a link to {member.link!r}, which the archive does not hold")
        tree.link(self._txn, found.number, parent, name, self._now_ns)

    def _create(
        self, member: tar.Member, parent: InodeNumber, name: bytes, file: IO[bytes] | None
    ) -> None:
        mode = _MODES[member.kind]
        if mode in (stat.S_IFCHR, stat.S_IFBLK) and not self._as_root:
            raise UsageError("it is a device: only root may take that in")
        if mode == stat.S_IFLNK and not member.link:
            raise UsageError("it is a link to nowhere")
        new = New(
            mode | member.mode,
            *self._owner(member),
            tar.device_number(*member.device) if mode in (stat.S_IFCHR, stat.S_IFBLK) else 0,
            member.link if mode == stat.S_IFLNK else None,
        )
        number = tree.create(self._txn, parent, name, new, self._now_ns).number
        self._made.add(number)
        if mode == stat.S_IFREG and file is not None:
            self._fill(number, member, file)
        if mode == stat.S_IFDIR:
            self._directories.append((number, member))
        else:
            self._dress(number, member)

    def _fill(self, number: InodeNumber, member: tar.Member, file: IO[bytes]) -> None:
        if member.size not in _SIZES:
            raise UsageError(f"a file has no {member.size} bytes")
        extents = [(0, member.size)] if member.extents is None else member.extents
        held = sum(length for _offset, length in extents)
        if held > self._rules.limit:
            raise FileTooLarge(f"a file may hold {self._rules.limit} bytes, not {held}")
        pieces: dict[int, bytearray] = {}
        for offset, length in extents:
            if member.extents is not None:
                file.seek(offset)
            _read(file, offset, length, pieces)
        if member.extents is not None:  # they end in zeros that are none of the file's
            pieces = {index: piece.rstrip(b"\0") for index, piece in pieces.items()}
        save = Save(member.size, self._now_ns, self._now_ns, pieces, _IMPORT)
        content.save(self._txn, number, save)

    def _dress(self, number: InodeNumber, member: tar.Member) -> None:
        """Give it what else the archive says of it, the times last."""
        for name, value in member.xattrs.items():
            if name == MADE_ATTRIBUTE:
                continue
            if name.startswith(_NAMESPACES[: None if self._as_root else 1]):
                xattrs.put(self._txn, number, name, value, self._now_ns)
            else:
                self._leave_out(member, name.decode("utf-8", "backslashreplace"))
        atime_ns = member.mtime_ns if member.atime_ns is None else member.atime_ns
        if member.mtime_ns not in _TIMES or atime_ns not in _TIMES:
            raise UsageError(f"{member.path!r} has a time that no file can have")
        fields = Fields(member.mode, *self._owner(member), atime_ns, member.mtime_ns)
        tree.change(self._txn, number, fields, self._now_ns)

    def _owner(self, member: tar.Member) -> tuple[int, int]:
        if not self._as_root:
            return self._rules.owner
        if member.owner[0] not in _IDS or member.owner[1] not in _IDS:
            raise UsageError(f"nobody has the number {member.owner}")
        return member.owner

    def _leave_out(self, member: tar.Member, why: str) -> None:
        self._left_out.append(f"{member.path.decode('utf-8', 'backslashreplace')}: {why}")


class _naming:
    """What fails within is told of that member."""

    def __init__(self, member: tar.Member) -> None:
        self._path = member.path.decode("utf-8", "backslashreplace")

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, AlreadyExists):
            raise AlreadyExists(f"{self._path} is there already, and nothing is replaced")
        if isinstance(error, UsageError | TreeError | NotFound):
            raise type(error)(f"{self._path}: {error}") from error


def _names(path: bytes) -> list[bytes]:
    """The names of a path from the top. Raises UsageError for one that leads elsewhere."""
    names = [name for name in path.split(b"/") if name not in (b"", b".")]
    if path.startswith(b"/") or b".." in names:
        raise UsageError(f"{path!r} leads out of the archive: nothing of it was taken")
    return names


def _read(file: IO[bytes], offset: int, length: int, pieces: dict[int, bytearray]) -> None:
    """Read an extent into the pieces of CHUNK bytes that it is part of."""
    while length:
        index, within = divmod(offset, CHUNK)
        part = file.read(min(length, CHUNK - within))
        if not part:
            raise UsageError("the archive ends within it")
        piece = pieces.setdefault(index, bytearray())
        piece += bytes(within - len(piece)) + part
        offset += len(part)
        length -= len(part)


def _about(file: IO[bytes]) -> dict[str, object]:
    try:
        about = json.loads(file.read(_ABOUT_MAX))
    except ValueError as error:
        raise UsageError(f"what the archive says of its folder makes no sense: {error}") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise UsageError("the archive was made by a newer geniuzfs: upgrade")
    return about


def _identity(about: dict[str, object]) -> Identity | None:
    said = [about.get(key) for key in ("id", "name", "description", "created_at")]
    return Identity(*map(str, said)) if all(isinstance(one, str) for one in said) else None  # type: ignore[arg-type]
