"""The right to read and the right to change, as types.

Hides: apsw's cursors and errors. Promises: a transaction is whole or not at
all: leaving its `with` commits, an exception undoes everything.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import apsw

from geniuzfs.errors import (
    AlreadyExists,
    Busy,
    GeniuzError,
    Moved,
    NotFound,
    ReadOnly,
    Stale,
    StoreDamaged,
    StoreFault,
    StoreFull,
    UsageError,
)

_NO_TEXT = "a text in the database is none: geniuzfs check --repair saves what can be read"

SEALED = "this folder is somewhere else now"
"""How what a sealed file says begins (store.copying)."""

_CONSTRAINTS: dict[int, type[GeniuzError]] = {
    apsw.SQLITE_CONSTRAINT_UNIQUE: AlreadyExists,
    apsw.SQLITE_CONSTRAINT_PRIMARYKEY: AlreadyExists,
    apsw.SQLITE_CONSTRAINT_FOREIGNKEY: NotFound,
    apsw.SQLITE_CONSTRAINT_TRIGGER: ReadOnly,
}

_ERRORS: tuple[tuple[type[apsw.Error], type[GeniuzError]], ...] = (
    (apsw.BusyError, Busy),
    (apsw.LockedError, Busy),
    (apsw.FullError, StoreFull),
    (apsw.ReadOnlyError, ReadOnly),
    (apsw.CantOpenError, StoreFault),
    (apsw.IOError, StoreFault),
    (apsw.PermissionsError, StoreFault),
    (apsw.NotADBError, StoreDamaged),
    (apsw.ConnectionClosedError, Stale),  # the mount has let go of a folder that is gone
)


def translated(error: apsw.Error) -> Exception:
    """The error of ours that `error` stands for; a mistake in our SQL stays what it is."""
    extended = getattr(error, "extendedresult", 0)
    if isinstance(error, apsw.ConstraintError):
        if str(error).startswith(SEALED):
            return Moved(str(error))
        return _CONSTRAINTS.get(extended, UsageError)(str(error))
    if extended == apsw.SQLITE_IOERR_SHMSIZE:  # the one that hides a full disk
        return StoreFull(str(error))
    if isinstance(error, apsw.CorruptError):
        return StoreDamaged(f"{error}: geniuzfs check --repair saves what can be read")
    if isinstance(error, apsw.SQLError) and str(error).startswith("no such table: "):
        return StoreDamaged(f"{error}: geniuzfs check --repair makes it anew")
    for theirs, ours in _ERRORS:
        if isinstance(error, theirs):
            return ours("the disk is full" if ours is StoreFull else str(error))
    return error


def leave_log(connection: apsw.Connection) -> None:
    """Have the log stay as it is when this is closed, be it the last one: what is damaged, or has
    the log of something else, is not made worse by looking at it.
    """
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)


class View:
    """The right to read. Each statement sees the newest commit of any process."""

    __slots__ = ("_connection", "_execute")

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute

    def row(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first row, a tuple, or None."""
        try:
            return self._execute(sql, values).fetchone()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self._told(error) from error

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Every row, each a tuple."""
        try:
            return self._execute(sql, values).fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self._told(error) from error

    def _told(self, error: apsw.Error | UnicodeDecodeError) -> Exception:
        told = translated(error) if isinstance(error, apsw.Error) else StoreDamaged(_NO_TEXT)
        if isinstance(told, StoreDamaged):
            leave_log(self._connection)
        return told


class Snapshot(View):
    """A View whose statements all see one state: `with database.snapshot() as view`."""

    __slots__ = ()

    def __enter__(self) -> Self:
        self.row("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection.in_transaction:
            self.row("ROLLBACK")


class Txn(View):
    """The right to change: `with database.txn() as txn`. Leaving commits; an
    exception undoes everything. Raises Busy on entering, at once or after the
    database's wait, while another connection holds the write lock.
    """

    __slots__ = ()

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Carry out one statement, or several, that return nothing."""
        try:
            self._execute(sql, values)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise self._told(error) from error

    def inserted(self) -> int:
        """The rowid of the last INSERT (not of one that a trigger made)."""
        return self._connection.last_insert_rowid()

    def changed(self) -> int:
        """How many rows the last statement changed."""
        return self._connection.changes()

    def __enter__(self) -> Self:
        self.run("BEGIN IMMEDIATE")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.run("COMMIT")
        finally:
            # After a failed COMMIT or a full disk the transaction may or may not be open still.
            if self._connection.in_transaction:
                self.run("ROLLBACK")
