"""The archives that folders are exported as: tar with pax headers, as GNU tar writes them.

Hides: how a member is laid out. Promises: names and values are the bytes that they are, times are
exact to the nanosecond, and a hole takes no room. Reading, a header can take no more memory than
HEADER_MAX, whatever size it claims. Writing and reading need no more than a file at once.
"""

import re
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from geniuzfs.errors import UsageError

HEADER_MAX = 64 * 1024 * 1024
"""Bytes of a pax header: an extended attribute may have 65,536."""

COMMENT = "comment"
"""The pax keyword that every tar passes over: what is not a file of the folder says so here."""

_XATTR = "SCHILY.xattr."
_BLOCK = 512
_SMALL_ID, _SMALL_SIZE = 0o7777777, 0o77777777777
_NAME = 99
"""Bytes in a name that needs no pax header."""

_TIME = re.compile(r"(-?)([0-9]{1,12})(?:\.([0-9]+))?", re.ASCII)


class Member(NamedTuple):
    """A file as it stands in an archive. `path`: from the top, which is b"". `extents`: offset and
    length of what is no hole; None: all of it.
    """

    path: bytes
    kind: bytes
    mode: int
    owner: tuple[int, int]
    mtime_ns: int
    atime_ns: int | None = None
    size: int = 0
    link: bytes = b""
    device: tuple[int, int] = (0, 0)
    xattrs: Mapping[bytes, bytes] = {}
    extents: list[tuple[int, int]] | None = None
    comment: str = ""


def write(out: IO[bytes], member: Member, content: Iterable[bytes] = ()) -> None:
    """Append a member; `content` is the bytes of its extents, one after the other."""
    records = _records(member)
    info = tarfile.TarInfo("pax")
    info.type, info.mode = member.kind, member.mode
    info.uid, info.gid = (id_ if id_ <= _SMALL_ID else 0 for id_ in member.owner)
    info.mtime = max(0, min(member.mtime_ns // 10**9, _SMALL_SIZE))
    info.devmajor, info.devminor = member.device
    lead = b""
    held = member.size
    if member.extents is not None:
        lead = _map(member.extents)
        held = len(lead) + sum(length for _offset, length in member.extents)
    if held > _SMALL_SIZE:
        records[b"size"] = str(held).encode()
    info.size = 0 if held > _SMALL_SIZE else held
    name, link = _written(member), member.link
    if len(name) > _NAME or not name.isascii():
        records[b"path"] = name
    else:
        info.name = name.decode()
    if len(link) > _NAME or not link.isascii():
        records[b"linkpath"] = link
    else:
        info.linkname = link.decode()
    _write_records(out, records)
    out.write(info.tobuf(tarfile.USTAR_FORMAT) + lead)
    for part in content:
        out.write(part)
    out.write(bytes(-held % _BLOCK))


def padding(end: int, size: int) -> int:
    """Zeros that an extent which ends at `end` must have, of a file of `size`: tars read extents in
    blocks, but for the last.
    """
    return min(-end % _BLOCK, size - end)


def end(out: IO[bytes]) -> None:
    """Write what ends an archive."""
    out.write(bytes(2 * _BLOCK))


def _written(member: Member) -> bytes:
    if member.extents is not None:
        return b"./GNUSparseFile.0/file"
    path = b"./" + member.path
    return path + b"/" if member.kind == tarfile.DIRTYPE and member.path else path


def _records(member: Member) -> dict[bytes, bytes]:
    """The pax header, but for name and size."""
    records = {b"mtime": _time(member.mtime_ns)}
    if member.atime_ns is not None:
        records[b"atime"] = _time(member.atime_ns)
    for key, id_ in zip((b"uid", b"gid"), member.owner, strict=True):
        if id_ > _SMALL_ID:
            records[key] = str(id_).encode()
    if member.comment:
        records[COMMENT.encode()] = member.comment.encode()
    if member.extents is not None:
        records |= {
            b"GNU.sparse.major": b"1",
            b"GNU.sparse.minor": b"0",
            b"GNU.sparse.name": b"./" + member.path,
            b"GNU.sparse.realsize": str(member.size).encode(),
        }
    for name, value in member.xattrs.items():
        records[_XATTR.encode() + name.replace(b"%", b"%25").replace(b"=", b"%3D")] = value
    return records


def _write_records(out: IO[bytes], records: Mapping[bytes, bytes]) -> None:
    held = b"".join(_record(key, value) for key, value in records.items())
    info = tarfile.TarInfo("./PaxHeaders/file")
    info.type, info.size = tarfile.XHDTYPE, len(held)
    out.write(info.tobuf(tarfile.USTAR_FORMAT) + held + bytes(-len(held) % _BLOCK))


def _record(key: bytes, value: bytes) -> bytes:
    """`LENGTH KEY=VALUE`, where the length counts its own digits."""
    rest = b" " + key + b"=" + value + b"\n"
    length = len(rest)
    while length != len(rest) + len(str(length)):
        length = len(rest) + len(str(length))
    return str(length).encode() + rest


def _map(extents: list[tuple[int, int]]) -> bytes:
    numbers = [len(extents), *(number for extent in extents for number in extent)]
    text = "".join(f"{number}\n" for number in numbers).encode()
    return text + bytes(-len(text) % _BLOCK)


def _time(ns: int) -> bytes:
    seconds, rest = divmod(abs(ns), 10**9)
    return f"{'-' if ns < 0 else ''}{seconds}.{rest:09}".encode()


def device(number: int) -> tuple[int, int]:
    """Major and minor of a device, as Linux packs them."""
    major = number >> 8 & 0xFFF | number >> 32 & ~0xFFF
    return major, number & 0xFF | number >> 12 & 0xFFFFFF00


def device_number(major: int, minor: int) -> int:
    """The reverse of `device`."""
    return (major & 0xFFF) << 8 | (major & ~0xFFF) << 32 | minor & 0xFF | (minor & ~0xFF) << 12


# Reading


class _Info(tarfile.TarInfo):
    """A header whose size is looked at before it is read into memory."""

    def _proc_member(self, archive: tarfile.TarFile) -> Any:
        if self.size < 0 or (not self.isfile() and self.size > HEADER_MAX):
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        return super()._proc_member(archive)  # type: ignore[misc]


def members(source: IO[bytes]) -> Iterator[tuple[Member, IO[bytes] | None]]:
    """Each member of an archive, with the bytes of a regular file, to be read before the next one
    is asked for: all of it within `whole`.
    """
    with tarfile.open(
        fileobj=source, mode="r|*", tarinfo=_Info, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        while (info := _next(archive)) is not None:
            yield _member(info), _content(archive, info)
            vars(archive)["members"] = []  # or it remembers them all


@contextmanager
def whole() -> Iterator[None]:
    """What is no archive, or ends before its time, is a UsageError."""
    try:
        yield
    except (tarfile.TarError, EOFError) as error:
        raise UsageError(f"this is no whole tar archive: {error}") from error


def _next(archive: tarfile.TarFile) -> tarfile.TarInfo | None:
    try:
        return archive.next()
    except (ValueError, OverflowError, IndexError) as error:  # of numbers that are none
        raise tarfile.ReadError(f"a header makes no sense: {error}") from error


def _content(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes] | None:
    """The bytes of a regular file. What has holes can seek forward; a buffer could not."""
    if not info.isreg():
        return None
    file: Any = archive.extractfile(info)
    content: IO[bytes] = file.raw if info.issparse() else file
    return content


def _member(info: tarfile.TarInfo) -> Member:
    headers = info.pax_headers
    atime = headers.get("atime")
    return Member(
        _bytes(info.name),
        tarfile.REGTYPE if info.isreg() else info.type,
        info.mode & 0o7777,
        (info.uid, info.gid),
        _ns(headers["mtime"]) if "mtime" in headers else int(info.mtime) * 10**9,
        None if atime is None else _ns(atime),
        info.size,
        _bytes(info.linkname),
        (info.devmajor, info.devminor),
        {
            _bytes(key[len(_XATTR) :]).replace(b"%3D", b"=").replace(b"%25", b"%"): _bytes(value)
            for key, value in headers.items()
            if key.startswith(_XATTR)
        },
        _extents(info),
        headers.get(COMMENT, ""),
    )


def _extents(info: tarfile.TarInfo) -> list[tuple[int, int]] | None:
    sparse: list[tuple[int, int]] | None = getattr(info, "sparse", None)
    if sparse is None:
        return None
    end = 0
    extents = [extent for extent in sparse if extent[1]]  # empty ones tell the end, or nothing
    for offset, length in extents:
        if offset < end or length < 0 or offset + length > info.size:
            raise UsageError(f"the map of holes of {info.name!r} makes no sense")
        end = offset + length
    return extents


def _ns(text: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is no time")
    ns = int(found[2]) * 10**9 + int((found[3] or "0").ljust(9, "0")[:9])
    return -ns if found[1] else ns


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
