"""A corpus of damaged databases: what was done to a sound one, by name."""

import os
import random
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

PAGE = 4096

Damage = Callable[[Path], None]


def _cut(part: float, more: int = 0) -> Damage:
    def cut(path: Path) -> None:
        pages = path.stat().st_size // PAGE
        os.truncate(path, int(pages * part) * PAGE + more)

    return cut


def _written(at: int, bytes_: bytes) -> Damage:
    def write(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(at)
            file.write(bytes_)

    return write


def _page_of(name: str, bytes_: bytes) -> Damage:
    """The root page of a table or index, or the first page on the way to its rows."""

    def write(path: Path) -> None:
        with closing(sqlite3.connect(path)) as plain:
            found = plain.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,))
            (page,) = found.fetchone()
        with path.open("r+b") as file:
            file.seek((page - 1) * PAGE)
            kind = file.read(12)
            if kind[0] in (2, 5):  # an interior page: its last child is a leaf or leads to one
                page = int.from_bytes(kind[8:12], "big")
            file.seek((page - 1) * PAGE)
            file.write(bytes_)

    return write


def _run(sql: str) -> Damage:
    def run(path: Path) -> None:
        with closing(sqlite3.connect(path)) as plain:
            plain.executescript(sql)

    return run


def _held(bytes_: bytes) -> Damage:
    def hold(path: Path) -> None:
        path.write_bytes(bytes_)

    return hold


def _overflow(path: Path) -> None:
    """The chain of a large file leads nowhere."""
    held = path.read_bytes()
    at = held.rindex(b"OVERFLOWS" * 100) // PAGE * PAGE
    _written(at, b"\xff\xff\xff\xff")(path)


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("note.md", "text")


def _of_another_program(path: Path) -> None:
    path.unlink()
    _run("CREATE TABLE urls (id INTEGER PRIMARY KEY, url TEXT); INSERT INTO urls VALUES (1, 'x')")(
        path
    )


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _log_of_another(path: Path) -> None:
    """As who copies files together by hand: the log of "My memory", which has commits in it."""
    other = path.parent.parent / "memory.db"
    with closing(sqlite3.connect(other)) as plain:
        plain.execute("PRAGMA wal_autocheckpoint = 0")
        plain.executescript("UPDATE _meta SET value = 'x' WHERE key = 'description'")
        shutil.copy(f"{other}-wal", f"{path}-wal")


def _without_log(path: Path) -> None:
    """The log is gone, its index is left over."""
    with closing(sqlite3.connect(path)) as plain:
        plain.execute("PRAGMA wal_autocheckpoint = 0")
        plain.executescript("UPDATE _meta SET value = 'x' WHERE key = 'description'")
        shutil.copy(f"{path}-shm", f"{path}-left")
        shutil.copy(path, f"{path}-copy")
    Path(f"{path}-left").rename(f"{path}-shm")
    Path(f"{path}-copy").rename(path)


def flips(seed: int, count: int = 24) -> Damage:
    """Single bytes here and there, but not in what SQLite reads first."""

    def flip(path: Path) -> None:
        dice, size = random.Random(seed), path.stat().st_size
        with path.open("r+b") as file:
            for _ in range(count):
                at = dice.randrange(PAGE, size)
                file.seek(at)
                byte = file.read(1)
                file.seek(at)
                file.write(bytes([byte[0] ^ dice.randrange(1, 256)]))

    return flip


_NOISE = random.Random(7).randbytes(PAGE)

SAVED: dict[str, Damage] = {
    "cut in the middle": _cut(0.6),
    "cut within a page": _cut(0.6, 100),
    "its end is cut off": _cut(0.97),
    "no header": _written(0, bytes(100)),
    "another header": _written(5, b"xx"),
    "a page of zeros among the bytes": _page_of("contents", bytes(PAGE)),
    "noise among the bytes": _page_of("contents", _NOISE),
    "noise among the names": _page_of("entries", _NOISE),
    "noise among the memories": _page_of("memories", _NOISE),
    "noise in an index": _page_of("entries_by_inode", _NOISE),
    "noise among what was learned": _page_of("passages", _NOISE),
    "an overflow that leads nowhere": _overflow,
    "the log of another": _log_of_another,
    "a table is missing": _run("DROP TABLE xattrs"),
    "what was learned is missing": _run("DROP TABLE teaches; DROP TABLE blocks"),
    "no guard": _run("DROP TRIGGER prevent_memory_delete; DROP TRIGGER contents_added"),
}
"""After a repair the folder is sound, whatever was lost."""

REFUSED: dict[str, Damage] = {
    "cut in its header": _cut(0, 50),
    "one page is left": _cut(0, PAGE),
    "a text": _held(b"No database, a text.\n" * 500),
    "a zip": _zip,
    "of another program": _of_another_program,
    "newer": _run("INSERT INTO migrations (number, name) VALUES (9999, 'later')"),
    "a directory": _directory,
    "noise in the schema": _written(100, _NOISE[:3000]),
}
"""Nothing can be saved, or nothing is to be: a repair leaves it as it is."""

HARMLESS: dict[str, Damage] = {"without its log": _without_log}
"""Nothing is wrong with it, but for what the log held."""
