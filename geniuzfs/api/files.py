"""Files of one folder by their paths, for programs: put, got, edited, listed, moved and deleted.

Hides: directories: they are made with the first file in them, and those that a deletion or a move
leaves empty go. Promises: each call is one transaction, whole or not
there at all, and what it answers is of one state of the folder; what another process has committed
is seen, and a mount shows within a second what was done here. Refuses: what api.requests refuses,
and whatever else than a file stands at a path; nothing is changed then.
"""

import builtins
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from geniuzfs.api import histories, requests
from geniuzfs.api.connections import Connections
from geniuzfs.api.filed import (
    Earlier,
    File,
    Page,
    Put,
    Read,
    characters,
    file_source,
    moment,
    version,
)
from geniuzfs.api.histories import Undone
from geniuzfs.api.requests import PAGE
from geniuzfs.api.witnessing import Witness
from geniuzfs.config import Config
from geniuzfs.errors import (
    AlreadyExists,
    BadPath,
    BeneathFile,
    Changed,
    FileTooLarge,
    IntoItself,
    IsADirectory,
    NotADirectory,
    NotFound,
    UsageError,
)
from geniuzfs.model import NOBODY, Inode, InodeNumber, Writer
from geniuzfs.ports import Clock
from geniuzfs.store import content, paths, retention, tree, versions, whole
from geniuzfs.store import histories as ended
from geniuzfs.store import labels as labelled
from geniuzfs.store.transactions import Txn, View
from geniuzfs.store.whole import Maker

Witnessed = TypeVar("Witnessed", Put, Read)


class Files:
    """May be used from several threads at once. Every call raises BadPath for a path that breaks
    the rules, and UsageError (InvalidRequest) for what else makes no sense.
    """

    def __init__(
        self, connections: Connections, config: Config, clock: Clock, witness: Witness
    ) -> None:
        self._connections = connections
        self._config = config
        self._clock = clock
        self._witness = witness

    def put(
        self,
        path: str,
        text: str,
        labels: Mapping[str, str] | None = None,
        *,
        if_version: str | None = None,
    ) -> Put:
        """Have the file hold this text, with the directories above it. `labels` replace those that
        it has; None leaves them. `if_version`: only where the file is still that one; "": only
        where there is none. Raises Changed then, AlreadyExists where a directory or the like is in
        the way, FileTooLarge.
        """
        wanted, data = requests.path(path), requests.text(text).encode()
        marks = None if labels is None else requests.labels(labels)
        supposed = requests.version(if_version)

        def put(txn: Txn) -> Put:
            _check_version(txn, wanted, supposed)
            there, now_ns = _at(txn, wanted), self._clock.now_ns()
            blind = supposed is None and self._witness.is_blind(txn, there, now_ns)
            return self._put(txn, wanted, data, marks, blind=blind)

        return self._witnessed(self._connections.write(put))

    def edit(
        self,
        path: str,
        change: Callable[[str], str],
        labels: Mapping[str, str] | None = None,
        *,
        if_version: str | None = None,
    ) -> Put:
        """Have the file hold what `change` makes of its text, and bear these labels beside those
        that it has; no other edit can come in between, and what `change` raises leaves all as it
        was. It must be quick, as everybody waits, write nothing itself, and may be called twice.
        Raises NotFound, NotText, and as `put`.
        """
        wanted, supposed = requests.path(path), requests.version(if_version)
        marks = requests.labels(labels or {})

        def edit(txn: Txn) -> Put:
            _check_version(txn, wanted, supposed)
            changed = requests.text(change(self._read(txn, wanted).text))
            labelled.add(txn, found(txn, wanted).number, marks, self._clock.now_ns())
            return self._put(txn, wanted, changed.encode(), None)

        return self._witnessed(self._connections.write(edit))

    def get(self, path: str) -> Read:
        """The file. Raises NotFound."""
        wanted = requests.path(path)
        return self._witnessed(self._connections.read(lambda view: self._read(view, wanted)))

    def versions(self, path: str) -> builtins.list[Earlier]:
        """What the file was earlier, the oldest first; it may be removed by now. Raises NotFound
        where nothing is kept of it.
        """
        wanted = requests.path(path)[1:].encode()
        known = self._connections.read(lambda view: histories.of(view, wanted))
        return [Earlier.of(*each) for each in known]

    def earlier(self, path: str, name: str) -> bytes:
        """The bytes of the version of that name, or whose name begins so. Raises NotFound,
        UsageError where several do, and FileTooLarge for one large hole.
        """
        wanted, begins = requests.path(path)[1:].encode(), requests.text(name)

        def read(view: View) -> bytes:
            version = histories.chosen(histories.of(view, wanted), begins).version
            if version.size > self._config.content_limit:
                raise FileTooLarge(f"that version has {version.size:,} bytes, most of them a hole")
            return b"".join(versions.read(view, version))

        return self._connections.read(read)

    def undo(self, path: str, to: str | None = None) -> builtins.list[Undone]:
        """Bring back what the file was before its last save, or its version `to`, or the file that
        was removed; of a directory, the files of the last removal beneath it. What is there
        becomes a version. Raises NotFound where there is nothing to bring back.
        """
        wanted = requests.path(path)[1:].encode()
        version = None if to is None else requests.text(to)
        now_ns = self._clock.now_ns()
        return self._connections.write(lambda txn: histories.undo(txn, wanted, version, now_ns))

    def list(self, prefix: str = "/", limit: int = PAGE, cursor: str | None = None) -> Page:
        """The files whose paths begin with `prefix`, as it stands and case and all, in the order of
        their paths' bytes. `cursor`: the page before's `next`; a file that is there from the first
        page to the last comes once, whatever others do. All that is listed is read.
        """
        begins = requests.prefix(prefix)
        most, after = requests.page(limit, cursor)

        def page(view: View) -> Page:
            every, unlisted = named(view, begins)
            # Characters compare as their bytes in UTF-8 do.
            first = bisect_right(every, after, key=lambda each: each[0])
            shown = every[first : first + most]
            files = tuple(_file(view, path, number) for path, number in shown)
            more = shown[-1][0] if first + most < len(every) else None
            return Page(files, len(every), more, unlisted)

        return self._connections.read(page)

    def iter(self, prefix: str = "/") -> Iterator[File]:
        """All files whose paths begin so, those that are there at the first and still there when
        their turn comes.
        """
        begins = requests.prefix(prefix)
        every, _ = self._connections.read(lambda view: named(view, begins))
        for path, _ in every:
            file = self._connections.read(partial(_file_at, path=path))
            if file is not None:
                yield file

    def move(self, old: str, new: str) -> int:
        """Move a file, or, where both end with a slash, everything beneath; how many files. All or
        nothing. Raises NotFound, and AlreadyExists where a file would come upon another.
        """
        if requests.means_all(old):
            return self._move_all(requests.directory(old), requests.directory(new))
        source, target = requests.path(old), requests.path(new)

        def move(txn: Txn) -> int:
            found(txn, source)
            self._move(txn, source, target)
            return 1

        return self._connections.write(move)

    def delete(
        self, path: str, *, if_version: str | None = None, keeps_history: bool = False
    ) -> int:
        """Forget the file: its text, its history, that of what was removed at its path, and what
        only it taught are gone for every reader at once; 1. What is freed is overwritten, but for
        copies in the index and in the log, which `geniuzfs forget` overwrites too. With
        `keeps_history` it is only removed, and can be undone. Raises NotFound, and Changed where
        it is not that version any more.
        """
        wanted, supposed = requests.path(path), requests.version(if_version)

        def delete(txn: Txn) -> int:
            found(txn, wanted)
            _check_version(txn, wanted, supposed)
            return self._forget(txn, [wanted], keep=keeps_history)

        return self._connections.write(delete, overwriting=not keeps_history)

    def delete_prefix(self, prefix: str) -> int:
        """Forget every file whose path begins so, as `list` finds them, and the history of what was
        removed there; how many files: perhaps 0.
        """
        begins = requests.prefix(prefix)

        def delete(txn: Txn) -> int:
            for lineage in ended.ended(txn, begins[1:].encode()):
                retention.erase(txn, lineage)
            return self._forget(txn, [path for path, _ in named(txn, begins)[0]])

        return self._connections.write(delete, overwriting=True)

    def _witnessed(self, known: Witnessed) -> Witnessed:
        """What the caller gets to know, noted."""
        self._witness.saw(InodeNumber(int(known.source.id)), known.version)
        return known

    def _put(
        self,
        txn: Txn,
        path: str,
        data: bytes,
        labels: Mapping[str, str] | None,
        *,
        blind: bool = False,
    ) -> Put:
        if len(data) > self._config.content_limit:
            raise FileTooLarge(f"a file holds at most {self._config.content_limit:,} bytes")
        maker = maker_of(self._config, self._clock, self._witness.writer)
        with in_the_way(path):
            placed = whole.put(txn, parts(path), data, maker, blind=blind)
        if labels is not None:
            labelled.replace(txn, placed.number, labels, maker.now_ns)
        made = _file(txn, path, placed.number)
        return Put(path, made.size or 0, made.updated_at, placed.created, made.version, made.source)

    def _read(self, view: View, path: str) -> Read:
        inode = found(view, path)
        stored = content.read(view, inode.number)
        labels = labelled.labels(view, inode.number)
        return Read(
            path,
            moment(inode.mtime_ns),
            labels,
            version(stored, inode.size),
            file_source(path, inode, labels),
            inode.size,
            stored,
            self._config.content_limit,
        )

    def _move_all(self, source: str, target: str) -> int:
        def move(txn: Txn) -> int:
            every, _ = named(txn, source)
            if not every:
                raise NotFound(f"there is no file beneath {source}")
            can_be_asked_for(every, source, target)
            self._move(txn, source[:-1], target[:-1])
            return len(every)

        return self._connections.write(move)

    def _move(self, txn: Txn, source: str, target: str) -> None:
        maker = maker_of(self._config, self._clock)
        with in_the_way(target):
            if source == target:
                raise AlreadyExists(f"{target} is where it stands already")
            whole.move(txn, parts(source), parts(target), maker)
        whole.prune(txn, parts(source.rpartition("/")[0]), maker.now_ns)

    def _forget(self, txn: Txn, wanted: Sequence[str], *, keep: bool = False) -> int:
        """Remove files and, unless to `keep` it, their history; the rest goes by trigger."""
        now_ns = self._clock.now_ns()
        for path in wanted:
            *above, name = parts(path)
            parent = whole.at(txn, above)
            if parent is None:
                raise NotFound(f"there is no file at {path}")
            tree.remove(txn, parent.number, name, now_ns, directory=False, keep=keep)
            gone = [] if keep else ended.lineages(txn, b"/".join([*above, name]))
            for lineage in gone:
                retention.erase(txn, lineage)
        for directory in {path.rpartition("/")[0] for path in wanted}:
            whole.prune(txn, parts(directory), now_ns)
        return len(wanted)


def maker_of(config: Config, clock: Clock, by: Writer = NOBODY) -> Maker:
    """Who makes files, and when: now."""
    return Maker(*config.owner, clock.now_ns(), by)


def parts(path: str) -> list[bytes]:
    """The names in a path."""
    return whole.parts(path.encode())


def _at(view: View, path: str) -> Inode | None:
    inode = whole.at(view, parts(path))
    return inode if inode is not None and stat.S_ISREG(inode.mode) else None


def found(view: View, path: str) -> Inode:
    """The file at `path`. Raises NotFound."""
    inode = _at(view, path)
    if inode is None:
        raise NotFound(f"there is no file at {path}")
    return inode


def _check_version(view: View, path: str, supposed: str | None) -> None:
    if supposed is None:
        return
    inode = _at(view, path)
    there = "" if inode is None else version(content.read(view, inode.number), inode.size)
    if there == supposed:
        return
    if not supposed:
        raise Changed(f"{path} is there already: read it first")
    raise Changed(f"{path} {'has changed since: read it anew' if there else 'has gone since'}")


def _file_at(view: View, path: str) -> File | None:
    inode = _at(view, path)
    return None if inode is None else _file(view, path, inode.number)


def _file(view: View, path: str, number: InodeNumber) -> File:
    inode = tree.inode(view, number)
    if inode is None:
        raise NotFound(f"there is no file at {path}")
    stored, labels = content.read(view, number), labelled.labels(view, number)
    return File(
        path,
        characters(stored, inode.size),
        moment(inode.mtime_ns),
        labels,
        version(stored, inode.size),
        file_source(path, inode, labels),
    )


def named(view: View, prefix: str) -> tuple[list[tuple[str, InodeNumber]], int]:
    """The files whose paths begin so, in order, and how many have paths that can't be asked for."""
    above, _, begins = prefix.rpartition("/")
    directory = whole.at(view, parts(above))
    if directory is None or not stat.S_ISDIR(directory.mode):
        return [], 0
    every = paths.named_beneath(view, directory.number, begins.encode())
    listed: list[tuple[str, InodeNumber]] = []
    for relative, number in every:
        try:
            listed.append((requests.path(f"{above}/{relative.decode()}"), number))
        except (UnicodeDecodeError, BadPath):
            continue
    return listed, len(every) - len(listed)


def can_be_asked_for(every: Iterable[tuple[str, InodeNumber]], source: str, target: str) -> None:
    """Raises BadPath where a path that begins with `source` would be none with `target` in its
    place: such a file would be lost to who calls.
    """
    for path, _ in every:
        requests.path(target + path[len(source) :])


@contextmanager
def in_the_way(path: str) -> Iterator[None]:
    """What stands in the way of a path, told as a conflict about that path."""
    try:
        yield
    except IntoItself as error:
        raise UsageError(f"{path} lies in what is to be moved") from error
    except IsADirectory as error:
        raise AlreadyExists(f"{path} is no file, so it can't be written as one") from error
    except NotADirectory as error:
        raise BeneathFile(f"{path}: a file is where a directory would be") from error
    except AlreadyExists as error:
        raise AlreadyExists(f"{path} is taken: {error}") from error
