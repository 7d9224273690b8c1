"""Breaks a database on purpose."""

from contextlib import closing

import apsw

from geniuzfs.store.connection import Database


def breaking(database: Database, script: str, *, trusting: bool = False) -> None:
    """Run SQL with no foreign keys and no triggers; with `trusting` not even CHECK holds."""
    with closing(apsw.Connection(str(database.path))) as plain:
        plain.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        plain.execute(f"PRAGMA ignore_check_constraints = {'ON' if trusting else 'OFF'}")
        plain.execute(f"PRAGMA foreign_keys = OFF; BEGIN; {script}; COMMIT")
