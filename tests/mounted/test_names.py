"""Any name that ext4 takes, and no other."""

import os
import stat
from collections.abc import Callable
from errno import EEXIST, EINVAL, ENAMETOOLONG, ENOENT
from pathlib import Path

import pytest

from tests.daemon import Daemon
from tests.mounted.calls import (
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    RENAME_WHITEOUT,
    errno_of,
    renameat2,
)

LONG = "n" * 255
TOO_LONG = "n" * 256

ODD_NAMES = [
    b"two\nlines",
    b"\xff\xfe not UTF-8",
    b"tab\tand\\backslash",
    b"-rf",
    b"*?[a]",
    b" blanks ",
    b"\x01\x7f",
    "caf\N{LATIN SMALL LETTER E WITH ACUTE}".encode(),
    "cafe\N{COMBINING ACUTE ACCENT}".encode(),
    "日本語".encode(),
    b"...",
    bytes(set(range(1, 256)) - {ord("/")}),
]

CALLS: dict[str, Callable[[Path], object]] = {
    "stat": os.stat,
    "open": lambda path: os.open(path, os.O_RDONLY),
    "create": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)),
    "create_exclusively": lambda path: os.close(os.open(path, os.O_CREAT | os.O_EXCL)),
    "mkdir": os.mkdir,
    "mknod": lambda path: os.mknod(path, stat.S_IFREG | 0o600),
    "mkfifo": os.mkfifo,
    "symlink": lambda path: os.symlink("target", path),
    "link": lambda path: os.link(path.parent / "file", path),
    "link_from": lambda path: os.link(path, path.parent / "other"),
    "rename": lambda path: os.rename(path.parent / "file", path),
    "rename_from": lambda path: os.rename(path, path.parent / "other"),
    "exchange": lambda path: renameat2(path.parent / "file", path, RENAME_EXCHANGE),
    "unlink": os.unlink,
    "rmdir": os.rmdir,
    "chmod": lambda path: os.chmod(path, 0o600),
    "truncate": lambda path: os.truncate(path, 0),
    "setxattr": lambda path: os.setxattr(path, "user.x", b""),
    "readlink": os.readlink,
    "beneath": lambda path: os.stat(path / "file"),
}

MAKING = ["create", "create_exclusively", "mkdir", "mknod", "mkfifo", "symlink", "link", "rename"]


@pytest.mark.parametrize("call", CALLS)
def test_a_name_of_256_bytes_is_too_long_in_every_call(here: Path, call: str) -> None:
    (here / "file").write_bytes(b"")
    assert errno_of(lambda: CALLS[call](here / TOO_LONG)) == ENAMETOOLONG
    assert os.listdir(here) == ["file"]


@pytest.mark.parametrize("call", MAKING)
def test_a_name_of_255_bytes_is_not(here: Path, call: str) -> None:
    (here / "file").write_bytes(b"")
    assert errno_of(lambda: CALLS[call](here / LONG)) == 0
    assert LONG in os.listdir(here)


def test_a_name_is_measured_in_bytes(here: Path) -> None:
    (here / ("é" * 127)).write_bytes(b"")
    assert errno_of(lambda: (here / ("é" * 128)).write_bytes(b"")) == ENAMETOOLONG


def test_any_bytes_but_slash_and_nul_make_a_name(shared: Daemon, here: Path) -> None:
    for number, name in enumerate(ODD_NAMES):
        Path(os.fsdecode(os.fsencode(here) + b"/" + name)).write_bytes(b"%d" % number)
    shared.stop()
    shared.start()
    assert sorted(os.listdir(os.fsencode(here))) == sorted(ODD_NAMES)
    for number, name in enumerate(ODD_NAMES):
        assert Path(os.fsdecode(os.fsencode(here) + b"/" + name)).read_bytes() == b"%d" % number


def test_case_and_normal_form_tell_names_apart(here: Path) -> None:
    names = ["caf\u00e9", "cafe\u0301", "CAF\u00c9"]
    for name in names:
        (here / name).write_text(name)
    assert sorted(os.listdir(here)) == sorted(names)
    assert [(here / name).read_text() for name in names] == names


# Renames


@pytest.mark.parametrize("flags", [RENAME_WHITEOUT, RENAME_NOREPLACE | RENAME_EXCHANGE, 8, 1 << 31])
def test_other_rename_flags_are_refused(here: Path, flags: int) -> None:
    (here / "a").write_bytes(b"a")
    assert errno_of(lambda: renameat2(here / "a", here / "b", flags)) == EINVAL
    assert os.listdir(here) == ["a"]


def test_rename_without_replacing(here: Path) -> None:
    (here / "a").write_bytes(b"a")
    (here / "b").write_bytes(b"b")
    assert errno_of(lambda: renameat2(here / "a", here / "b", RENAME_NOREPLACE)) == EEXIST
    renameat2(here / "a", here / "c", RENAME_NOREPLACE)
    assert {path.name: path.read_bytes() for path in here.iterdir()} == {"b": b"b", "c": b"a"}


def test_exchange_of_a_file_and_a_directory(here: Path) -> None:
    (here / "one").mkdir()
    (here / "one" / "file").write_bytes(b"file")
    (here / "two" / "directory" / "within").mkdir(parents=True)
    links = [os.stat(here / name).st_nlink for name in ("one", "two")]
    renameat2(here / "one" / "file", here / "two" / "directory", RENAME_EXCHANGE)
    assert (here / "two" / "directory").read_bytes() == b"file"
    assert (here / "one" / "file" / "within").is_dir()
    assert [os.stat(here / name).st_nlink for name in ("one", "two")] == [
        links[0] + 1,
        links[1] - 1,
    ]
    assert errno_of(lambda: renameat2(here / "one", here / "nothing", RENAME_EXCHANGE)) == ENOENT


def test_rename_over_an_open_file_keeps_its_bytes(here: Path) -> None:
    (here / "note").write_bytes(b"old" * 1000)
    with open(here / "note", "r+b") as old:
        (here / "new").write_bytes(b"new")
        os.rename(here / "new", here / "note")
        assert (here / "note").read_bytes() == b"new"
        old.seek(3000)
        old.write(b"!")
        old.seek(0)
        assert old.read() == b"old" * 1000 + b"!"
        assert os.fstat(old.fileno()).st_nlink == 0
    assert (here / "note").read_bytes() == b"new"


def test_rename_of_an_open_file_leaves_it_open(here: Path) -> None:
    with open(here / "a", "wb", buffering=0) as file:
        file.write(b"before, ")
        os.rename(here / "a", here / "b")
        file.write(b"after")
    assert (here / "b").read_bytes() == b"before, after"
