"""Other processes that commit to a folder's database: the sqlite3 shell, and one that uses
`geniuzfs.store`. Every method returns once its commit is done.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from geniuzfs.model import CHUNK, ROOT, Exchange
from geniuzfs.store import content, tree, xattrs
from geniuzfs.store.connection import Database

VISIBLE_SECONDS = 0.2
"""What is promised."""


def seconds_until(true: Callable[..., object], *values: object) -> float:
    """How long it takes until `true(*values)` holds; fails when that is longer than promised."""
    begun = time.monotonic()
    while not true(*values):
        assert time.monotonic() - begun < VISIBLE_SECONDS, "it did not show in time"
        time.sleep(0.0005)
    return time.monotonic() - begun


class Foreign:
    """A process that answers one line for each line it is sent. Names are in the top directory."""

    command: tuple[str, ...]

    def __init__(self, database: Path) -> None:
        self._process = subprocess.Popen(
            [*self.command, str(database)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _send(self, text: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    def make(self, name: str, text: str) -> None:
        raise NotImplementedError

    def remove(self, name: str) -> None:
        raise NotImplementedError

    def rename(self, old: str, new: str) -> None:
        raise NotImplementedError

    def write(self, name: str, text: str) -> None:
        """Other content; at most a piece (CHUNK bytes)."""
        raise NotImplementedError

    def chmod(self, name: str, mode: int) -> None:
        raise NotImplementedError

    def setxattr(self, name: str, attribute: str, value: str) -> None:
        raise NotImplementedError


class Shell(Foreign):
    """The sqlite3 shell: knows nothing of this program, only the tables."""

    command = ("sqlite3", "-batch")

    def __init__(self, database: Path) -> None:
        super().__init__(database)
        self.run(".timeout 10000", "PRAGMA foreign_keys = ON;")

    def run(self, *lines: str) -> None:
        """Carry out SQL that prints nothing."""
        self._send("\n".join([*lines, ".print done"]))

    def make(self, name: str, text: str) -> None:
        size = len(text.encode())
        self._commit(
            "INSERT INTO inodes (mode, uid, gid, nlink, size, stored, atime_ns, mtime_ns, ctime_ns)"
            f" VALUES (33188, 0, 0, 1, {size}, {size}, 1, 1, 1);",
            "INSERT INTO entries (parent, id, name, inode)"
            f" SELECT 1, coalesce(max(id), 0) + 1, CAST('{name}' AS BLOB),"
            " (SELECT max(number) FROM inodes) FROM entries WHERE parent = 1;",
            f"INSERT INTO contents SELECT max(number), CAST('{text}' AS BLOB) FROM inodes;",
            "UPDATE inodes SET mtime_ns = mtime_ns + 1 WHERE number = 1;",
        )

    def remove(self, name: str) -> None:
        self._commit(
            f"CREATE TEMP TABLE lost AS {_number(name)};",
            f"DELETE FROM entries WHERE parent = 1 AND name = CAST('{name}' AS BLOB);",
            "DELETE FROM inodes WHERE number IN (SELECT inode FROM lost);",
            "DROP TABLE lost;",
        )

    def rename(self, old: str, new: str) -> None:
        self._commit(
            f"UPDATE entries SET name = CAST('{new}' AS BLOB)"
            f" WHERE parent = 1 AND name = CAST('{old}' AS BLOB);"
        )

    def write(self, name: str, text: str) -> None:
        size = len(text.encode())
        self._commit(
            f"UPDATE inodes SET size = {size}, stored = {size}, mtime_ns = mtime_ns + 1"
            f" WHERE number = ({_number(name)});",
            f"UPDATE contents SET bytes = CAST('{text}' AS BLOB) WHERE inode = ({_number(name)});",
        )

    def chmod(self, name: str, mode: int) -> None:
        self._commit(
            f"UPDATE inodes SET mode = (mode & 61440) | {mode} WHERE number = ({_number(name)});"
        )

    def setxattr(self, name: str, attribute: str, value: str) -> None:
        self._commit(
            "INSERT INTO xattrs (inode, name, value)"
            f" VALUES (({_number(name)}), CAST('{attribute}' AS BLOB), CAST('{value}' AS BLOB))"
            " ON CONFLICT DO UPDATE SET value = excluded.value;"
        )

    def hold_lock(self) -> None:
        """Take the write lock and keep it."""
        self.run("BEGIN IMMEDIATE;")

    def release_lock(self) -> None:
        self.run("COMMIT;")

    def _commit(self, *lines: str) -> None:
        self.run("BEGIN IMMEDIATE;", *lines, "COMMIT;")


class Store(Foreign):
    """A Python process that uses the store, as other commands of this program do."""

    command = (sys.executable, "-m", "tests.mounted.foreign")

    def make(self, name: str, text: str) -> None:
        self._send(json.dumps(["make", name, text]))

    def remove(self, name: str) -> None:
        self._send(json.dumps(["remove", name]))

    def rename(self, old: str, new: str) -> None:
        self._send(json.dumps(["rename", old, new]))

    def write(self, name: str, text: str) -> None:
        self._send(json.dumps(["write", name, text]))

    def chmod(self, name: str, mode: int) -> None:
        self._send(json.dumps(["chmod", name, mode]))

    def setxattr(self, name: str, attribute: str, value: str) -> None:
        self._send(json.dumps(["setxattr", name, attribute, value]))


class _Answering:
    """The other side of Store: one method for each word."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def make(self, name: str, text: str) -> None:
        with self._database.txn() as txn:
            new = tree.create(txn, ROOT, name.encode(), tree.New(0o100644, 0, 0), time.time_ns())
            content.save(txn, new.number, _save(text.encode()))

    def remove(self, name: str) -> None:
        with self._database.txn() as txn:
            tree.remove(txn, ROOT, name.encode(), time.time_ns(), directory=False)

    def rename(self, old: str, new: str) -> None:
        with self._database.txn() as txn:
            places = ((ROOT, old.encode()), (ROOT, new.encode()))
            tree.rename(txn, *places, Exchange.REPLACE, time.time_ns())

    def write(self, name: str, text: str) -> None:
        with self._database.txn() as txn:
            found = tree.child(txn, ROOT, name.encode())
            assert found is not None
            content.save(txn, found.number, _save(text.encode()))

    def chmod(self, name: str, mode: int) -> None:
        with self._database.txn() as txn:
            found = tree.child(txn, ROOT, name.encode())
            assert found is not None
            tree.change(txn, found.number, tree.Fields(mode=mode), time.time_ns())

    def setxattr(self, name: str, attribute: str, value: str) -> None:
        with self._database.txn() as txn:
            found = tree.child(txn, ROOT, name.encode())
            assert found is not None
            xattrs.put(txn, found.number, attribute.encode(), value.encode(), time.time_ns())


def _number(name: str) -> str:
    return f"SELECT inode FROM entries WHERE parent = 1 AND name = CAST('{name}' AS BLOB)"


def _save(text: bytes) -> content.Save:
    pieces = {at // CHUNK: text[at : at + CHUNK] for at in range(0, len(text), CHUNK)}
    return content.Save(len(text), time.time_ns(), time.time_ns(), pieces)


def _main() -> None:
    database = Database.open(Path(sys.argv[1]), wait=10)
    answering = _Answering(database)
    for line in sys.stdin:
        word, *values = json.loads(line)
        getattr(answering, word)(*values)
        sys.stdout.write("done\n")
        sys.stdout.flush()
    database.close()


if __name__ == "__main__":
    _main()
