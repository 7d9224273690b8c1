"""One folder's database: how it is opened, read, changed and watched.

Hides: SQLite (apsw, which brings a SQLite of its own, the same on every
machine) and how its errors become ours. Promises: a transaction is whole or
not at all; a commit that returned survives the end of this process, and the
loss of power once the WAL has been synced (`wal_path`). Refuses: to wait for a
lock unless told how long.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import quote

import apsw

from geniuzfs import durable
from geniuzfs.errors import Busy, NotFound, ReadOnly, StoreDamaged, StoreFault, UnsafePlace
from geniuzfs.model import Change, InodeNumber
from geniuzfs.store import schema
from geniuzfs.store.transactions import Snapshot, Txn, View, leave_log, translated

NEWS_LIMIT = 100_000
"""Changes that are reported one by one; of more, the reader drops all it cached."""

_IDENTITY = "SELECT value FROM _meta WHERE key = 'uuid'"

CHANGES_KEPT = 100_000
"""Rows of `changes` that pruning leaves."""


_STEPS = 10_000
"""SQLite's steps, less than a millisecond of them, between two looks at the clock."""


class Database:
    """An open `memory.db`. For one thread at a time; a second thread opens its own."""

    def __init__(self, path: Path, connection: apsw.Connection, wait: float) -> None:
        self.path = path
        status = path.stat()
        self.file = (status.st_dev, status.st_ino)
        """Which file was opened: the same, wherever it was moved to on its disk since."""
        self._wait_ms = int(wait * 1000)
        connection.set_busy_timeout(self._wait_ms)
        self.view = View(connection)
        self.wal_pages = 0
        """Pages in the WAL after the last commit here; what a checkpoint would copy."""
        self.held = False
        """Set while another connection of this process is to have the write lock: it polls for
        it, and would find none free beside a saver that never pauses.
        """
        self._connection = connection
        self._snapshot = Snapshot(connection)
        self._txn = Txn(connection)
        self._wal_limit = 0
        self._on_large_wal: Callable[[], None] | None = None
        self._first_change = self._last_change = 0
        self._own_changes: list[range] = []
        connection.set_update_hook(self._changed)
        connection.set_rollback_hook(self._undone)
        connection.set_wal_hook(self._committed)
        with self.snapshot() as view:
            self._version = _data_version(view)
            self._seen = _newest(view)

    @classmethod
    def open(cls, path: Path, *, wait: float = 5.0, create: bool = False) -> Self:
        """Open the database at `path`, bringing its schema up to date.

        `wait`: seconds to wait for another's lock before Busy; 0 raises at once.
        `create` makes the file where there is none; otherwise that is NotFound.
        Raises TooNew for a file of a later version, StoreDamaged for no database, and UnsafePlace
        for a path that is not UTF-8, which SQLite does not take.
        """
        if any("\ud800" <= each <= "\udfff" for each in str(path)):  # a byte that is no character
            raise UnsafePlace(f"{path} is no UTF-8, and SQLite takes no other path: rename it")
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        if not create and not path.exists():
            raise NotFound(f"no database at {path}")
        _check_not_emptied(path)
        try:
            connection = apsw.Connection(str(path), flags=flags, statementcachesize=256)
        except apsw.Error as error:
            _check_writable(path)
            raise translated(error) from error
        try:
            # Opening waits even where the caller will not: another may be closing or migrating.
            connection.set_busy_timeout(5_000)
            _check_ours(path, connection)
            _configure(connection)
            schema.migrate(Txn(connection))
            try:
                return cls(path, connection, wait)
            except FileNotFoundError as moved:
                raise NotFound(f"{path} was moved at this moment: try again") from moved
        except BaseException as error:
            with suppress(apsw.Error):  # of two errors, the first tells more
                leave_log(connection)
                connection.close()
            if isinstance(error, StoreFault | ReadOnly):
                _check_writable(path)
            raise

    @property
    def wal_path(self) -> Path:
        """The write-ahead log. It stays the same file as long as this database is open."""
        return self.path.with_name(self.path.name + "-wal")

    def is_at(self, path: Path) -> bool:
        """Whether this is the file at `path`, opened by that name: it may have been moved since,
        or another put into its place.
        """
        try:
            status = path.stat()
        except OSError:
            return False
        return self.path == path and self.file == (status.st_dev, status.st_ino)

    def txn(self) -> Txn:
        """The right to change, for a `with`. Raises Busy while `held`."""
        if self.held:
            raise Busy("a checkpoint is on its way")
        return self._txn

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def news(self) -> list[Change] | None:
        """What other connections have changed since the last call, in commit
        order; None when that is too much to tell: drop everything cached.
        """
        own, self._own_changes = self._own_changes, []
        with self.snapshot() as view:
            version = _data_version(view)
            if version == self._version:
                self._seen = _newest(view)
                return []
            newest = _newest(view)
            rows = view.rows(
                "SELECT seq, inode, name FROM changes WHERE seq > ? ORDER BY seq LIMIT ?",
                (self._seen, NEWS_LIMIT),
            )
            # More than the limit, pruned meanwhile, or the file replaced by an older state of it.
            gaps = len(rows) != newest - self._seen
            self._version, self._seen = version, newest
        if gaps:
            return None
        return [
            Change(seq, InodeNumber(inode), name)
            for seq, inode, name in rows
            if not any(seq in seqs for seqs in own)
        ]

    def prune_changes(self) -> None:
        """Forget all but the newest CHANGES_KEPT rows of `changes`."""
        with self.txn() as txn:
            txn.run(
                "DELETE FROM changes WHERE seq <= (SELECT max(seq) FROM changes) - ?",
                (CHANGES_KEPT,),
            )

    def checkpoint(self, *, hold_writers: bool) -> None:
        """Copy the WAL into the database and sync both.

        Without `hold_writers` commits go on meanwhile, so that some of it may be
        left. With it they are Busy for as long as this takes, and the next one
        begins the WAL anew. Raises Busy when somebody reads an old state or
        checkpoints for longer than 0.1 s: then savers should not be held up for it.
        """
        mode = apsw.SQLITE_CHECKPOINT_FULL if hold_writers else apsw.SQLITE_CHECKPOINT_PASSIVE
        self._connection.set_busy_timeout(100)
        try:
            self._connection.wal_checkpoint(mode=mode)
        except apsw.Error as error:
            raise translated(error) from error
        finally:
            self._connection.set_busy_timeout(self._wait_ms)

    # Erasing. What SQLite deletes stands in gaps of pages, in free pages and in the log until
    # something else is written there.

    def overwrite_deleted(self) -> None:
        """Have what this connection deletes from now on overwritten with zeros."""
        self.view.row("PRAGMA secure_delete = ON")

    def rewrite(self) -> None:
        """Write the whole file anew, without free pages and with zeros in the gaps: by way of a
        temporary file and the log, each as large as it. Nobody else commits meanwhile, for 9 s a
        GB; a crash leaves the file as it was. Raises Busy and StoreFull.
        """
        self.view.row("VACUUM")

    def empty_log(self) -> None:
        """Copy all of the WAL into the database, sync it, and cut the WAL to nothing. Raises Busy
        while somebody reads an older state: then the log may still hold it.
        """
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error as error:
            raise translated(error) from error

    def leave_log(self) -> None:
        """Have close() leave the WAL as it is: what is damaged is not made worse by it."""
        leave_log(self._connection)

    def close(self) -> None:
        """Close it; the last one of all processes copies the WAL into the database. What
        was committed stays, even where this raises StoreFault.
        """
        try:
            self._connection.close()
        except apsw.Error as error:
            raise translated(error) from error

    def when_wal_exceeds(self, pages: int, call: Callable[[], None]) -> None:
        """Have `call` called after each commit that leaves more than `pages` in the WAL."""
        self._wal_limit, self._on_large_wal = pages, call

    def spare_bytes(self) -> int:
        """Bytes for which the file has pages that are free, less those by which it has
        still to grow for what is in the WAL: negative when that is more.
        """
        view = self.view
        size: int = view.row("PRAGMA page_size")[0]
        pages: int = view.row("PRAGMA page_count")[0]
        free: int = view.row("PRAGMA freelist_count")[0]
        growth: int = pages * size - self.path.stat().st_size
        return free * size - growth

    def version(self) -> int:
        """Changes when, and only when, another connection has committed."""
        return _data_version(self.view)

    def quick_check(self, seconds: float) -> str | None:
        """The first thing that SQLite finds wrong with the file's pages, "" for none; None when it
        was not through after `seconds`.
        """
        until = time.monotonic() + seconds
        self._connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        try:
            found = str(self._connection.execute("PRAGMA quick_check(1)").fetchall()[0][0])
        except apsw.InterruptError:
            return None
        except apsw.Error as error:
            raise translated(error) from error
        finally:
            self._connection.set_progress_handler(None)
        return "" if found == "ok" else found

    def newest_change(self) -> int:
        """The `seq` of the newest change."""
        return _newest(self.view)

    # Which changes are ours: noted here, 1 us a commit, since asking before and after costs 3.

    def _changed(self, kind: int, _schema: str, table: str, rowid: int) -> None:
        if table == "changes" and kind == apsw.SQLITE_INSERT:
            self._first_change = self._first_change or rowid
            self._last_change = rowid

    def _undone(self) -> None:
        self._first_change = 0

    def _note_own_changes(self) -> None:
        """Of the transaction that is being committed: nobody else adds any meanwhile."""
        if self._first_change:
            first, end = self._first_change, self._last_change + 1
            if self._own_changes and self._own_changes[-1].stop == first:
                first = self._own_changes.pop().start
            self._own_changes.append(range(first, end))
            self._first_change = 0

    def _committed(self, _connection: apsw.Connection, _schema: str, pages: int) -> int:
        self._note_own_changes()
        self.wal_pages = pages
        if self._on_large_wal is not None and pages > self._wal_limit:
            self._on_large_wal()
        return apsw.SQLITE_OK


def _check_ours(path: Path, connection: apsw.Connection) -> None:
    """Before anything is written: raises StoreDamaged for what is no database of a folder, or has
    the log of another one. Taken in, that log would leave neither.
    """
    log = path.with_name(path.name + "-wal")
    other = f"{log.name} beside it is not its log: move that away, or try geniuzfs check --repair"
    logged = _size(log)
    view = View(connection)
    try:
        schema.check_ours(view)
    except StoreDamaged as error:
        if logged and _without_log(path, "SELECT count(*) FROM sqlite_schema"):
            raise StoreDamaged(other) from error
        raise
    if logged and (row := _without_log(path, _IDENTITY)) and view.row(_IDENTITY) != row:
        raise StoreDamaged(other)


def _without_log(path: Path, sql: str) -> object:
    """The first row of what the file says without its log; None where that can't be told."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        bare = apsw.Connection(f"file:{quote(str(path))}?immutable=1", flags=flags)
        try:
            return bare.execute(sql).fetchone()
        finally:
            bare.close()
    except apsw.Error:
        return None


def _size(path: Path) -> int | None:
    """None where there is no file: who closes a database last takes its log away."""
    try:
        return path.stat().st_size
    except OSError:
        return None


def _check_not_emptied(path: Path) -> None:
    """Raises StoreDamaged: of an empty file SQLite makes a new one, and throws its log away."""
    # The log first: who makes a new file begins it when the file is written.
    if _size(path.with_name(path.name + "-wal")) and _size(path) == 0:
        raise StoreDamaged(f"the file is empty, and its log is not: put a copy of {path} back")


def _check_writable(path: Path) -> None:
    """What SQLite says is that it can't open the file, where it can't make the log beside it: say
    that. Raises ReadOnly and StoreFull.
    """
    try:
        durable.try_writing(path.parent)
    except ReadOnly as error:
        raise ReadOnly(f"{error}: a folder is written to even to be read") from error


def _configure(connection: apsw.Connection) -> None:
    view = View(connection)
    if _turned_to_wal(connection) != "wal":
        raise StoreFault(
            "the database can't use a write-ahead log where it lies: move it to a local disk"
        )
    # NORMAL: a commit is not synced, which takes it from 100 us and more to 10;
    # who asks for fsync gets one of the WAL (fs.durability). Checkpoints still sync.
    view.row("PRAGMA synchronous = NORMAL")
    view.row("PRAGMA foreign_keys = ON")
    # A mount checkpoints in a thread (fs.durability); others are too short-lived to need it sooner.
    view.row("PRAGMA wal_autocheckpoint = 0")
    view.row("PRAGMA journal_size_limit = 67108864")
    # 16 MB of pages: the inodes and names of some 100,000 files (SQLite keeps 2 MB otherwise).
    view.row("PRAGMA cache_size = -16000")


def _turned_to_wal(connection: apsw.Connection) -> str:
    """The journal mode there is then. SQLite does not wait here for another who opens a
    new file at the same time (2 in 100 met one), so wait for the lock and try again.
    """
    for _ in range(100):
        with suppress(Busy):
            mode: str = View(connection).row("PRAGMA journal_mode = WAL")[0]
            return mode
        with Txn(connection):
            pass
    raise Busy("others keep the database locked while they open it")


def _data_version(view: View) -> int:
    version: int = view.row("PRAGMA data_version")[0]
    return version


def _newest(view: View) -> int:
    seq: int = view.row("SELECT coalesce(max(seq), 0) FROM changes")[0]
    return seq
