"""Files that are already somewhere are brought into a folder: as files, or as kept memories.

Hides: in which steps. Promises: each file comes whole, with mode, times, owner and the attributes
of users as `cp -a` would keep them, or not at all; savers are held up for a batch at most, some
milliseconds; what was brought when it was interrupted is there, and doing it again goes on.
Refuses: to put other bytes in the place of a file unless told to, before anything is changed.
"""

import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from geniuzfs import disk, durable
from geniuzfs.api.walking import LeftOut, Plan, Reason, Wanted, kind_of
from geniuzfs.disk import Content
from geniuzfs.errors import AlreadyExists, Busy, FileTooLarge, GeniuzError
from geniuzfs.learn.states import State, read_text
from geniuzfs.model import CHUNK, Inode, InodeNumber, Writer
from geniuzfs.store import content, memories, paths, tree, whole, xattrs
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import Txn, View

AT_ONCE = 64
AT_ONCE_BYTES = 1024 * 1024
"""Of a transaction: it holds the write lock for some 5 ms. A larger file goes alone."""

LOG_PAGES = 4_000
"""Pages (16 MiB) in the write-ahead log that start a checkpoint: without a mount nobody does."""

MADE_ATTRIBUTE = b"user.geniuz.state"
"""An attribute that a mount makes up: it is no one's to keep."""

_CAPTURE = Writer("geniuzfs capture", 0, 0)

_NAMED = 5
"""Conflicts that are named in the error."""

Step = Callable[[int], None]
"""Called with the number of things that are done since the last call."""


@dataclass
class Captured:
    """What was brought in, or would be. Sizes in bytes."""

    files: int = 0
    directories: int = 0
    links: int = 0
    memories: int = 0
    bytes: int = 0
    already_there: int = 0
    """Files, directories and links that were there as they are, and texts that were kept before."""
    replaced: int = 0
    left_out: list[LeftOut] = field(default_factory=list)


class Into(NamedTuple):
    """Where files go, and how. `owner`: user and group of what is made; root keeps everybody's."""

    database: Database
    owner: tuple[int, int]
    limit: int
    now_ns: Callable[[], int]
    replace: bool = False
    dry_run: bool = False


class _Prepared(NamedTuple):
    """A thing that was read. `content`: of a file; `target`: of a link."""

    wanted: Wanted
    attributes: dict[bytes, bytes]
    content: Content | None = None
    target: bytes | None = None


# As files


def files(plan: Plan, into: Into, step: Step) -> Captured:
    """Bring in what is planned. Raises what the store does, and, before anything was changed,
    AlreadyExists where other bytes are in the way.
    """
    done = Captured(left_out=list(plan.left_out))
    _check_free(plan, into)
    numbers: dict[tuple[int, int], InodeNumber] = {}
    for batch in _batches(_read(plan.wanted, into.limit, done)):
        _write(batch, into, done, numbers)
        step(len(batch))
    if not into.dry_run:
        _finish_directories(plan, into)
        with suppress(GeniuzError):  # the last one who closes it has emptied the log
            durable.sync(into.database.wal_path)
    return done


def _check_free(plan: Plan, into: Into) -> None:
    """Raises AlreadyExists for what would be replaced, all of it together."""
    view, taken = into.database.view, []
    for wanted in plan.wanted:
        found = _standing(view, wanted.place)
        if found is not None and not _may_stand(view, found, wanted, into):
            taken.append(disk.shown(wanted.place))
    if taken:
        named = ", ".join(taken[:_NAMED]) + (", ..." if len(taken) > _NAMED else "")
        raise AlreadyExists(
            f"there already and not the same: {named} ({len(taken)} in all); nothing was brought"
            " in: --replace overwrites files, --into DIR puts them elsewhere"
        )


def _may_stand(view: View, found: Inode, wanted: Wanted, into: Into) -> bool:
    """Whether what is found there is no obstacle."""
    kind = kind_of(found.mode)
    if stat.S_IFDIR in (kind, kind_of(wanted.found.mode)):
        return kind == kind_of(wanted.found.mode)
    if into.replace:
        return True
    try:
        prepared = _prepare(wanted, into.limit)
    except GeniuzError:  # it will be left out
        return True
    return _is_same(view, found, prepared)


def _read(wanted: Iterable[Wanted], limit: int, done: Captured) -> Iterator[_Prepared]:
    for each in wanted:
        try:
            yield _prepare(each, limit)
        except FileTooLarge:
            done.left_out.append(LeftOut(disk.shown(each.found.path), Reason.TOO_LARGE))
        except GeniuzError:
            done.left_out.append(LeftOut(disk.shown(each.found.path), Reason.UNREADABLE))


def _prepare(wanted: Wanted, limit: int) -> _Prepared:
    path = wanted.found.path
    attributes = disk.attributes(path)
    attributes.pop(MADE_ATTRIBUTE, None)
    if stat.S_ISREG(wanted.found.mode):
        return _Prepared(wanted, attributes, content=disk.read(path, limit))
    if stat.S_ISLNK(wanted.found.mode):
        return _Prepared(wanted, attributes, target=disk.target(path))
    return _Prepared(wanted, attributes)


def _batches(prepared: Iterable[_Prepared]) -> Iterator[list[_Prepared]]:
    batch: list[_Prepared] = []
    size = 0
    for each in prepared:
        added = 0 if each.content is None else sum(map(len, each.content.pieces.values()))
        if batch and (len(batch) == AT_ONCE or size + added > AT_ONCE_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += added
    if batch:
        yield batch


def _write(
    batch: list[_Prepared],
    into: Into,
    done: Captured,
    numbers: dict[tuple[int, int], InodeNumber],
) -> None:
    if into.dry_run:
        for each in batch:
            found = _standing(into.database.view, each.wanted.place)
            same = found is not None and _is_same(into.database.view, found, each)
            _count(done, each, found, same)
        return
    with into.database.txn() as txn:
        outcome = [_put(txn, each, into, numbers) for each in batch]
    for each, (found, same) in zip(batch, outcome, strict=True):
        _count(done, each, found, same)
    _checkpoint(into.database)


def _standing(view: View, place: bytes) -> Inode | None:
    number = paths.find(view, place)
    return None if number is None else tree.inode(view, number)


def _count(done: Captured, prepared: _Prepared, found: Inode | None, same: bool) -> None:
    if same:
        done.already_there += 1
        return
    done.replaced += found is not None
    done.files += prepared.content is not None
    done.links += prepared.target is not None
    done.directories += stat.S_ISDIR(prepared.wanted.found.mode)
    if prepared.content is not None:
        done.bytes += prepared.content.size


def _put(
    txn: Txn, prepared: _Prepared, into: Into, numbers: dict[tuple[int, int], InodeNumber]
) -> tuple[Inode | None, bool]:
    """Bring one in. What was there before, and whether it is the same."""
    above, _, name = prepared.wanted.place.rpartition(b"/")
    maker = whole.Maker(*into.owner, into.now_ns())
    parent = whole.make_directories(txn, whole.parts(above), maker)
    found = tree.child(txn, parent, name)
    same = found is not None and _is_same(txn, found, prepared)
    if found is not None and not same:
        _make_room(txn, parent, name, found, prepared, into)
    if found is None or not same:
        number = _made(txn, parent, name, found, prepared, into, numbers)
    else:
        number = found.number
    if prepared.wanted.found.nlink > 1 and prepared.content is not None:
        numbers[prepared.wanted.found.identity] = number
    return found, same


def _make_room(
    txn: Txn, parent: InodeNumber, name: bytes, found: Inode, prepared: _Prepared, into: Into
) -> None:
    """For what came between the look at all places and now, and for what is replaced."""
    kinds = kind_of(found.mode), kind_of(prepared.wanted.found.mode)
    if not into.replace or stat.S_IFDIR in kinds:
        raise AlreadyExists(
            f"{disk.shown(prepared.wanted.place)} has come meanwhile and is not the same: what was"
            " brought in before it stays"
        )
    if kinds != (stat.S_IFREG, stat.S_IFREG):
        tree.remove(txn, parent, name, into.now_ns(), directory=False)


def _made(
    txn: Txn,
    parent: InodeNumber,
    name: bytes,
    found: Inode | None,
    prepared: _Prepared,
    into: Into,
    numbers: dict[tuple[int, int], InodeNumber],
) -> InodeNumber:
    source, held = prepared.wanted.found, prepared.content
    number = tree.child(txn, parent, name)
    if number is None and held is not None:
        other = numbers.get(source.identity)
        linked = None if other is None else tree.inode(txn, other)
        if linked is not None and _is_same(txn, linked, prepared):
            return tree.link(txn, linked.number, parent, name, into.now_ns()).number
    if number is None:
        new = tree.New(source.mode, *_owner(into, prepared.wanted), target=prepared.target)
        number = tree.create(txn, parent, name, new, into.now_ns())
    if held is not None:
        emptied = dict.fromkeys(content.lengths(txn, number.number), b"")
        save = content.Save(held.size, held.mtime_ns, into.now_ns(), {**emptied, **held.pieces})
        content.save(txn, number.number, save._replace(by=_CAPTURE))
    _keep_attributes(txn, number.number, prepared, into)
    return number.number


def _keep_attributes(txn: Txn, number: InodeNumber, prepared: _Prepared, into: Into) -> None:
    source, now_ns = prepared.wanted.found, into.now_ns()
    mtime_ns = source.mtime_ns if prepared.content is None else prepared.content.mtime_ns
    for name, value in prepared.attributes.items():
        xattrs.put(txn, number, name, value, now_ns)
    uid, gid = _owner(into, prepared.wanted)
    mode = source.mode
    if (uid, gid) != (source.uid, source.gid):
        mode &= ~(stat.S_ISUID | stat.S_ISGID)  # as cp does where it can't keep the owner
    tree.change(txn, number, tree.Fields(mode, uid, gid, source.atime_ns, mtime_ns), now_ns)


def _owner(into: Into, wanted: Wanted) -> tuple[int, int]:
    return (wanted.found.uid, wanted.found.gid) if into.owner[0] == 0 else into.owner


def _is_same(view: View, found: Inode, prepared: _Prepared) -> bool:
    """Whether that is what stands there: of its kind, with the same bytes."""
    if kind_of(found.mode) != kind_of(prepared.wanted.found.mode):
        return False
    if prepared.target is not None:
        return tree.target(view, found.number) == prepared.target
    held = prepared.content
    if held is None:
        return True
    if found.size != held.size:
        return False
    return all(
        _padded(content.piece(view, found.number, index)) == _padded(held.pieces.get(index, b""))
        for index in {*content.lengths(view, found.number), *held.pieces}
    )


def _padded(piece: bytes) -> bytes:
    """A hole reads as zeros."""
    return piece.ljust(CHUNK, b"\0")


def _finish_directories(plan: Plan, into: Into) -> None:
    """Their times, which have moved with all that came into them."""
    directories = [one for one in plan.wanted if stat.S_ISDIR(one.found.mode)]
    for first in range(0, len(directories), AT_ONCE):
        batch = [_prepare(each, into.limit) for each in directories[first : first + AT_ONCE]]
        with into.database.txn() as txn:
            for each in batch:
                found = _standing(txn, each.wanted.place)
                if found is not None and stat.S_ISDIR(found.mode):
                    _keep_attributes(txn, found.number, each, into)
        _checkpoint(into.database)


def _checkpoint(database: Database) -> None:
    if database.wal_pages > LOG_PAGES:
        with suppress(Busy):
            database.checkpoint(hold_writers=False)


# As memories


def as_memories(plan: Plan, into: Into, step: Step) -> Captured:
    """Keep the text of each planned file as a memory with the file's name as its gist, unless a
    memory says it already. Raises what the store raises.
    """
    done = Captured(left_out=list(plan.left_out))
    known = _contents(into.database.view)
    for batch in _batches(_read(_only_files(plan.wanted, done), into.limit, done)):
        kept = []
        for each in batch:
            text = _text(each)
            if text is None:
                path = disk.shown(each.wanted.found.path)
                done.left_out.append(LeftOut(path, Reason.NO_TEXT))
            elif _digest(text) in known:
                done.already_there += 1
            else:
                known.add(_digest(text))
                kept.append((text, _gist(each)))
        if not into.dry_run:
            with into.database.txn() as txn:
                for text, gist in kept:
                    memories.keep(txn, text, gist, None, into.now_ns())
            _checkpoint(into.database)
        done.memories += len(kept)
        done.bytes += sum(len(text.encode()) for text, _ in kept)
        step(len(batch))
    return done


def _only_files(wanted: Iterable[Wanted], done: Captured) -> Iterator[Wanted]:
    for each in wanted:
        if stat.S_ISREG(each.found.mode):
            yield each
        elif stat.S_ISLNK(each.found.mode):
            done.left_out.append(LeftOut(disk.shown(each.found.path), Reason.LINK))


def _text(prepared: _Prepared) -> str | None:
    held = prepared.content
    if held is None:
        return None
    joined = bytearray(held.size if len(held.pieces) * CHUNK >= held.size else 0)
    if not joined:  # empty, or a hole, which reads as NUL
        return None
    for index, piece in held.pieces.items():
        joined[index * CHUNK : index * CHUNK + len(piece)] = piece
    text = read_text(bytes(joined))
    return None if isinstance(text, State) else text.removeprefix("\ufeff").strip()


def _gist(prepared: _Prepared) -> str:
    name = prepared.wanted.place.rpartition(b"/")[2]
    return name.decode("utf-8", "replace")


def _contents(view: View) -> set[bytes]:
    """Digests of all that is kept."""
    found: set[bytes] = set()
    after = 0
    while page := memories.page(view, after, 1_000):
        found.update(_digest(each.memory.content) for each in page)
        after = page[-1].number
    return found


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
