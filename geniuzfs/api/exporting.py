"""A folder becomes a tar archive: its files as they are, its kept memories as JSON lines.

Hides: what the archive holds beside the files. Promises: all of it is of one moment, and needs no
more memory than a piece of a file, apart from the names of hard links. Sockets, which no archive
can hold, are left out and named.
"""

import json
import stat
import tarfile
from collections.abc import Iterable, Iterator
from itertools import count
from typing import IO, NamedTuple

from geniuzfs.api import tar
from geniuzfs.errors import UsageError
from geniuzfs.model import CHUNK, ROOT, Identity, Inode, InodeNumber
from geniuzfs.store import content, counts, memories, tree, xattrs
from geniuzfs.store.copying import Told
from geniuzfs.store.transactions import View

PLACE = b".geniuz"
"""The directory of what is no file of the folder, or the like where a file has that name."""

DIRECTORY, FOLDER, MEMORIES = "geniuz directory", "geniuz folder", "geniuz memories"
"""How these say what they are."""

FORMAT = 1

_PAGE = 500

_KINDS = {
    stat.S_IFREG: tarfile.REGTYPE,
    stat.S_IFDIR: tarfile.DIRTYPE,
    stat.S_IFLNK: tarfile.SYMTYPE,
    stat.S_IFIFO: tarfile.FIFOTYPE,
    stat.S_IFCHR: tarfile.CHRTYPE,
    stat.S_IFBLK: tarfile.BLKTYPE,
}


class Exported(NamedTuple):
    """How many names and memories an archive holds, and what had to be left out."""

    files: int
    memories: int
    left_out: list[str]


def export(view: View, identity: Identity, out: IO[bytes], now_ns: int, told: Told) -> Exported:
    """Write the archive. `view`: a snapshot; `told` hears of bytes."""
    return _Export(view, out, now_ns, told).write(identity)


class _Export:
    def __init__(self, view: View, out: IO[bytes], now_ns: int, told: Told) -> None:
        self._view = view
        self._out = out
        self._now_ns = now_ns
        self._told = told
        self._done, self._of = 0, counts.counts(view).bytes
        self._place = _free_place(view)
        self._first_name: dict[InodeNumber, bytes] = {}

    def write(self, identity: Identity) -> Exported:
        kept = sum(1 for _ in self._memories())
        about = {"format": FORMAT, **identity._asdict(), "memories": kept}
        self._beside(b"", DIRECTORY, [])
        text = json.dumps(about, ensure_ascii=False, indent=2) + "\n"
        self._beside(b"/folder.json", FOLDER, [text.encode()])
        files, left_out = 0, []
        for path, inode in self._walk():
            files += path != b""  # the top is what an archive always has
            if stat.S_IFMT(inode.mode) in _KINDS:
                self._file(path, inode)
            else:
                left_out.append(path.decode("utf-8", "backslashreplace"))
        # The last: an archive that was cut off has none.
        self._beside(b"/memories.jsonl", MEMORIES, self._memories())
        tar.end(self._out)
        self._told(self._of, self._of)
        return Exported(files - len(left_out), kept, left_out)

    def _beside(self, name: bytes, comment: str, lines: Iterable[bytes]) -> None:
        kind, mode = (tarfile.REGTYPE, 0o600) if name else (tarfile.DIRTYPE, 0o700)
        top = tree.inode(self._view, ROOT)
        owner = (0, 0) if top is None else (top.uid, top.gid)
        size = sum(map(len, self._memories() if comment == MEMORIES else lines))
        member = tar.Member(
            self._place + name, kind, mode, owner, self._now_ns, size=size, comment=comment
        )
        tar.write(self._out, member, lines)

    def _memories(self) -> Iterator[bytes]:
        """A line a memory: content and gist as text, and `payload` where that is not all."""
        after = 0
        while page := memories.rows(self._view, after, _PAGE):
            yield from map(line_of, page)
            after = page[-1].number

    def _walk(self) -> Iterator[tuple[bytes, Inode]]:
        """Every name with its inode; each directory and at once what is in it, since a tar that
        unpacks gives a directory its times when the next file is none of it.
        """
        top = tree.inode(self._view, ROOT)
        if top is None:
            return
        yield b"", top
        open_ = [self._within(ROOT, b"")]
        while open_:
            found = next(open_[-1], None)
            if found is None:
                open_.pop()
                continue
            path, inode = found
            yield path, inode
            if stat.S_ISDIR(inode.mode):
                open_.append(self._within(inode.number, path + b"/"))

    def _within(self, directory: InodeNumber, above: bytes) -> Iterator[tuple[bytes, Inode]]:
        after = 0
        while page := tree.listing(self._view, directory, after, _PAGE):
            for entry in page:
                inode = tree.inode(self._view, entry.inode)
                if inode is not None:  # else the tree is damaged: check names it
                    yield above + entry.name, inode
            after = page[-1].id

    def _file(self, path: bytes, inode: Inode) -> None:
        first = path
        if inode.nlink > 1 and not stat.S_ISDIR(inode.mode):
            first = self._first_name.setdefault(inode.number, path)
        view, number = self._view, inode.number
        member = tar.Member(
            path,
            _KINDS[stat.S_IFMT(inode.mode)],
            inode.mode & 0o7777,
            (inode.uid, inode.gid),
            inode.mtime_ns,
            inode.atime_ns,
        )
        if first != path:
            tar.write(self._out, member._replace(kind=tarfile.LNKTYPE, link=b"./" + first))
            return
        member = member._replace(
            xattrs={name: xattrs.get(view, number, name) for name in xattrs.names(view, number)}
        )
        if stat.S_ISLNK(inode.mode):
            tar.write(self._out, member._replace(link=tree.target(view, number)))
        elif stat.S_ISREG(inode.mode):
            self._content(member, inode)
        else:
            tar.write(self._out, member._replace(device=tar.device(inode.rdev)))

    def _content(self, member: tar.Member, inode: Inode) -> None:
        lengths = sorted(content.lengths(self._view, inode.number).items())
        is_whole = inode.stored == inode.size
        extents = None if is_whole else _extents(lengths, inode.size)
        member = member._replace(size=inode.size, extents=extents)
        tar.write(self._out, member, self._pieces(inode, [index for index, _ in lengths]))

    def _pieces(self, inode: Inode, indexes: list[int]) -> Iterator[bytes]:
        for index in indexes:
            piece = content.piece(self._view, inode.number, index)
            yield piece + bytes(tar.padding(index * CHUNK + len(piece), inode.size))
            self._done += len(piece)
            self._told(self._done, max(self._of, self._done + 1))


def _extents(lengths: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """What is no hole, in whole blocks, and where the file ends."""
    extents: list[tuple[int, int]] = []
    for index, length in lengths:
        start, end = index * CHUNK, index * CHUNK + length
        end += tar.padding(end, size)
        if extents and sum(extents[-1]) == start:
            extents[-1] = (extents[-1][0], end - extents[-1][0])
        else:
            extents.append((start, end - start))
    return extents if extents and sum(extents[-1]) == size else [*extents, (size, 0)]


def line_of(row: memories.Row) -> bytes:
    """The line of a memory."""
    memory = memories.read(row)
    about = {
        "uuid": row.id,
        "content": memory.content,
        "gist": memory.gist,
        "created_at": row.created_at,
        "parent": row.parent,
    }
    if row.payload != memories.packed(memory.content, memory.gist):
        about["payload"] = row.payload
    return json.dumps(about).encode() + b"\n"


def row_in(line: bytes) -> memories.Row:
    """What such a line says. Raises UsageError."""
    try:
        about = json.loads(line)
        parent = about["parent"]
        payload = about.get("payload") or memories.packed(about["content"], about["gist"])
        row = memories.Row(0, about["uuid"], payload, about["created_at"], parent)
        if not all(isinstance(part, str) for part in row[1:4]) or not isinstance(
            parent, str | None
        ):
            raise TypeError("text is wanted")
        payload.encode()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(f"a line of the kept memories makes no sense: {line[:60]!r}") from error
    return row


def _free_place(view: View) -> bytes:
    for number in count(1):
        place = PLACE if number == 1 else PLACE + b"~%d" % number
        if tree.child(view, ROOT, place) is None:
            return place
    raise AssertionError("numbers do not end")
