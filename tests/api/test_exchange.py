"""Folders that are exported and imported are equal; what others have packed does no harm."""

import dataclasses
import io
import json
import stat
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.errors import AlreadyExists, FileTooLarge, TreeError, UsageError
from geniuzfs.model import CHUNK, ROOT, InodeNumber
from geniuzfs.store import check, content, memories, meta, tree, xattrs
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import Txn, View

_LIMIT = 4 * CHUNK


def _program(home: Path, owner: tuple[int, int] = (0, 0)) -> Geniuz:
    config = Config.from_environment(
        {
            "GENIUZ_HOME": str(home),
            "XDG_RUNTIME_DIR": str(home),
            "GENIUZ_CONTENT_LIMIT": str(_LIMIT),
        }
    )
    program = runtime.geniuz(dataclasses.replace(config, owner=owner))
    program.begin()
    return program


@pytest.fixture
def geniuz(tmp_path: Path) -> Geniuz:
    return _program(tmp_path / "home")


def _opened(program: Geniuz, name: str = "My memory") -> Database:
    return program.open(program.folder(name), wait=1)


def _described(program: Geniuz, name: str) -> dict[str, Any]:
    """All that an archive must bring back of a folder, which is sound."""
    database = _opened(program, name)
    try:
        with database.snapshot() as view:
            assert list(check.problems(view)) == []
            files = dict(_files(view, ROOT, b""))
            kept = [row[1:] for row in memories.rows(view, 0, 1000)]
            return {"files": files, "memories": kept}
    finally:
        database.close()


def _files(view: View, directory: InodeNumber, above: bytes) -> Iterator[tuple[bytes, Any]]:
    inode = tree.inode(view, directory)
    assert inode is not None
    held: list[Any] = [
        inode._replace(number=ROOT, ctime_ns=0),
        {name: xattrs.get(view, directory, name) for name in xattrs.names(view, directory)},
    ]
    if stat.S_ISREG(inode.mode):
        lengths = content.lengths(view, directory)
        held[0] = inode._replace(number=ROOT, ctime_ns=0, stored=0)
        pieces = {index: content.piece(view, directory, index) for index in lengths}
        stripped = {index: piece.rstrip(b"\0") for index, piece in pieces.items()}
        held.append({index: piece for index, piece in stripped.items() if piece})
        same = view.rows("SELECT parent, name FROM entries WHERE inode = ?", (directory,))
        held.append(len(same))
    if stat.S_ISLNK(inode.mode):
        held.append(tree.target(view, directory))
    yield above, held
    if stat.S_ISDIR(inode.mode):
        for entry in tree.listing(view, directory, 0, 10_000):
            yield from _files(view, entry.inode, above + b"/" + entry.name)


def _stored(program: Geniuz, name: str) -> int:
    database = _opened(program, name)
    try:
        stored: int = database.view.row("SELECT sum(stored) FROM inodes")[0]
        return stored
    finally:
        database.close()


# What comes back

_NAMES = st.one_of(
    st.sampled_from(
        [b"a", b"b", b".geniuz", b"-x", b"\xff\xfe", b"e\xcc\x81", b"n" * 255, b" \n%="]
    ),
    st.binary(min_size=1, max_size=20).filter(
        lambda name: (
            not {0, ord("/")} & set(name)
            and name
            not in (b".", b"..", b".recall", b".find", b".status", b".memories", b".history")
        )
    ),
)
_TIMES = st.one_of(st.integers(-(2**62), 2**62), st.sampled_from([0, -1, -1_500_000_000]))
_ATTRIBUTES = st.dictionaries(
    st.sampled_from([b"user.a", b"user.b=c%3D", b"user.\xff", b"user.geniuz.label.channel"]),
    st.binary(max_size=40),
    max_size=3,
)
_KINDS = st.sampled_from([stat.S_IFREG] * 4 + [stat.S_IFDIR] * 2 + [stat.S_IFLNK, stat.S_IFIFO, 0])
_PIECES = st.dictionaries(
    st.sampled_from([0, 1, 2, 1 << 20]), st.binary(min_size=1, max_size=50), max_size=3
)
_MADE = st.tuples(
    _NAMES,
    _KINDS,
    st.integers(0, 0o7777),
    st.tuples(st.sampled_from([0, 1000, 2**32 - 2]), st.sampled_from([0, 5_000_000])),
    _TIMES,
    _ATTRIBUTES,
    _PIECES,
    st.integers(0, 100),
)


def _fill(txn: Txn, steps: list[Any]) -> None:
    directories: list[InodeNumber] = [ROOT]
    files: list[InodeNumber] = []
    for name, kind, mode, owner, time, attributes, pieces, pick in steps:
        parent = directories[pick % len(directories)]
        if tree.child(txn, parent, name) is not None:
            continue
        if kind == 0:
            if files:
                tree.link(txn, files[pick % len(files)], parent, name, 5)
            continue
        target = b"../\xff" + name if kind == stat.S_IFLNK else None
        new = tree.New(kind | mode, owner[0], owner[1], 0, target)
        number = tree.create(txn, parent, name, new, 5).number
        (directories if kind == stat.S_IFDIR else files).append(number)
        if kind == stat.S_IFREG:
            held = {
                index: part * (CHUNK // len(part) + 1) if pick % 3 == 0 else part
                for index, part in pieces.items()
            }
            held = {index: part[:CHUNK] for index, part in held.items()}
            end = max((index * CHUNK + len(part) for index, part in held.items()), default=0)
            size = end + (pick * 1000 if pick % 2 else 0)
            content.save(txn, number, content.Save(size, 5, 5, held))
        for key, value in attributes.items():
            xattrs.put(txn, number, key, value, 5)
        tree.change(txn, number, tree.Fields(None, None, None, -time, time), 5)


@settings(max_examples=20, deadline=None)
@given(st.lists(_MADE, max_size=15), st.lists(st.text(min_size=1, max_size=30), max_size=3), _TIMES)
def test_what_is_exported_and_imported_is_equal(
    steps: list[Any], kept: list[str], time: int
) -> None:
    with TemporaryDirectory() as place:
        program = _program(Path(place) / "home")
        database = _opened(program)
        with database.txn() as txn:
            _fill(txn, steps)
            tree.change(txn, ROOT, tree.Fields(0o700, 7, 8, time, time), 5)
            for text in kept:
                if text.strip() and "\0" not in text:
                    memories.keep(txn, text, None, None, time % 10**18)
        database.close()
        before = _described(program, "My memory")
        archive = Path(place) / "x.tar"
        program.copies.exchange().export(
            program.folder("My memory"), archive, lambda done, of: None, packed=False
        )
        done, restored = program.copies.exchange().import_new(archive, "again")
        assert done.left_out == []
        assert _described(program, "again") == before
        assert restored.folder.identity.id != program.folder("My memory").identity.id


def _exported(program: Geniuz, path: Path, *, packed: bool = False) -> Path:
    folder = program.folder("My memory")
    _, written = program.copies.exchange().export(
        folder, path, lambda done, of: None, packed=packed
    )
    assert written is not None
    return written


def test_a_memory_comes_back_with_all_it_was_and_none_comes_twice(
    geniuz: Geniuz, tmp_path: Path
) -> None:
    first = geniuz.keep("My memory", "Tea at four.", "tea").memory
    geniuz.keep("My memory", "At five.", None, first.id)
    odd = '{ "content": "by another tool", "gist": "odd", "more": [1] }'
    database = _opened(geniuz)
    with database.txn() as txn:
        txn.run("INSERT INTO memories VALUES (?, ?, '2020-01-02 03:04:05', NULL)", ("0" * 36, odd))
    database.close()
    path = _exported(geniuz, tmp_path / "x.tar")
    other = _program(tmp_path / "other")
    before = _described(geniuz, "My memory")["memories"]
    done = other.copies.exchange().import_into(other.folder("My memory"), path)
    assert (done.memories, done.known) == (3, 0)
    assert _described(other, "My memory")["memories"] == before
    done = other.copies.exchange().import_into(other.folder("My memory"), path)
    assert (done.memories, done.known) == (0, 3)
    assert _described(other, "My memory")["memories"] == before
    lines = subprocess.run(
        ["tar", "-xOf", path, "./.geniuz/memories.jsonl"], capture_output=True, check=True
    ).stdout.splitlines()
    assert [json.loads(line)["gist"] for line in lines] == ["tea", "At five.", "odd"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_folder_that_is_not_here_is_imported_as_itself(
    geniuz: Geniuz, tmp_path: Path, packed: bool
) -> None:
    if packed:
        pytest.importorskip("zstandard", reason="the package zstandard is not installed")
    geniuz.keep("My memory", "Tea at four.")
    written = _exported(geniuz, tmp_path, packed=packed)
    assert written.suffixes[-1] == (".zst" if packed else ".tar")
    other = runtime.geniuz(Config.from_environment({"GENIUZ_HOME": str(tmp_path / "other")}))
    _done, restored = other.copies.exchange().import_new(written, None)
    assert restored.folder.path == tmp_path / "other" / "memory.db"
    assert restored.folder.identity == geniuz.folder("My memory").identity


def test_who_imports_is_told_how_much_is_read(geniuz: Geniuz, tmp_path: Path) -> None:
    for number in range(3):
        geniuz.keep("My memory", f"Tea at {number}.")
    database = _opened(geniuz)
    with database.txn() as txn:
        for number in range(20):
            tree.create(txn, ROOT, b"%d" % number, tree.New(0o100644, 0, 0), 5)
    database.close()
    exchange, archive = geniuz.copies.exchange(), tmp_path / "x.tar"
    exchange.export(geniuz.folder("My memory"), archive, lambda done, of: None, packed=False)
    said: list[tuple[int, int]] = []
    exchange.import_new(archive, "again", lambda *numbers: said.append(numbers))
    assert {of for _, of in said} == {archive.stat().st_size}
    assert [done for done, _ in said] == sorted(done for done, _ in said)
    assert 0 < said[0][0] < said[-1][0]


def test_without_zstd_it_says_what_brings_it(
    geniuz: Geniuz, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("zstandard", "compression.zstd", "compression"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(UsageError, match="zstandard"):
        _exported(geniuz, tmp_path / "x.tar.zst", packed=True)
    assert not (tmp_path / "x.tar.zst").exists()


# What others have packed


def _archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for info, held in members:
            info.size = len(held) or info.size
            archive.addfile(info, io.BytesIO(held) if held else None)
    return path


def _info(name: str, kind: bytes = tarfile.REGTYPE, **fields: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in fields.items():
        setattr(info, key, value)
    return info


_GOOD = (_info("good"), b"good")

_HOSTILE: dict[str, Callable[[Path], Path]] = {
    "up": lambda path: _archive(path, _GOOD, (_info("a/../../etc/passwd"), b"x")),
    "from the root": lambda path: _archive(path, _GOOD, (_info("/etc/passwd"), b"x")),
    "through a link": lambda path: _archive(
        path, _GOOD, (_info("a", tarfile.SYMTYPE, linkname="/etc"), b""), (_info("a/passwd"), b"x")
    ),
    "hard link out": lambda path: _archive(
        path, _GOOD, (_info("a", tarfile.LNKTYPE, linkname="../../etc/passwd"), b"")
    ),
    "hard link to nothing": lambda path: _archive(
        path, _GOOD, (_info("a", tarfile.LNKTYPE, linkname="none"), b"")
    ),
    "hard link to a directory": lambda path: _archive(
        path, (_info("d", tarfile.DIRTYPE), b""), (_info("a", tarfile.LNKTYPE, linkname="d"), b"")
    ),
    "twice": lambda path: _archive(path, _GOOD, (_info("good"), b"other")),
    "too large": lambda path: _archive(path, _GOOD, (_info("a"), bytes(_LIMIT + 1))),
    "a time that is none": lambda path: _archive(
        path, (_info("a", pax_headers={"mtime": "99999999999"}), b"x")
    ),
    "an attribute that is too large": lambda path: _archive(
        path, (_info("a", pax_headers={"SCHILY.xattr.user.a": "x" * 70_000}), b"x")
    ),
    "a name that is too long": lambda path: _archive(path, (_info("n" * 256), b"x")),
    "an unknown kind": lambda path: _archive(path, (_info("a", b"Z"), b"")),
    "holes beyond the end": lambda path: _sparse(path, "1\n100\n5\n", 50),
    "holes that overlap": lambda path: _sparse(path, "2\n0\n5\n3\n5\n", 50),
    "a negative hole": lambda path: _sparse(path, "1\n-5\n5\n", 50),
    "more than 2^63 bytes": lambda path: _sparse(path, "0\n", 2**64),
    "cut off within a file": lambda path: _cut(path, 1024 + 512),
    "a file of 8 GB that is not there": lambda path: _claimed(path, tarfile.REGTYPE),
    "a name of 8 GB": lambda path: _claimed(path, tarfile.GNUTYPE_LONGNAME),
    "a header of 8 GB": lambda path: _claimed(path, tarfile.XHDTYPE),
    "no archive": lambda path: _written(path, b"no archive at all" * 100),
    "nothing": lambda path: _written(path, b""),
}


def _sparse(path: Path, holes: str, size: int) -> Path:
    headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "a",
        "GNU.sparse.realsize": str(size),
    }
    return _archive(path, (_info("x", pax_headers=headers), holes.encode().ljust(512, b"\0")))


def _cut(path: Path, size: int) -> Path:
    _archive(path, _GOOD, (_info("a"), bytes(5000)))
    path.write_bytes(path.read_bytes()[:size])
    return path


def _written(path: Path, held: bytes) -> Path:
    path.write_bytes(held)
    return path


def _claimed(path: Path, kind: bytes) -> Path:
    header = _info("a", kind, size=8 * 1024**3 - 1).tobuf(tarfile.USTAR_FORMAT)
    path.write_bytes(header + bytes(100 * 512))
    return path


@pytest.mark.parametrize("id_", ["../../x", "", ".", "A" * 500, "a\nb"])
def test_an_identity_that_leads_elsewhere_is_none(geniuz: Geniuz, tmp_path: Path, id_: str) -> None:
    about = {
        "format": 1,
        "id": id_,
        "name": "../x",
        "description": "",
        "created_at": "",
        "memories": 0,
    }
    with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for comment, held in (("geniuz folder", json.dumps(about)), ("geniuz memories", "")):
            member = tarfile.TarInfo(comment)
            member.size, member.pax_headers = len(held), {"comment": comment}
            archive.addfile(member, io.BytesIO(held.encode()))
    _done, restored = geniuz.copies.exchange().import_new(tmp_path / "x.tar", None)
    assert restored.folder.path.parent == geniuz.config.home / "restored"
    assert str(UUID(restored.folder.identity.id)).upper() == restored.folder.identity.id
    # Who puts such a database there himself is told.
    database = Database.open(restored.folder.path)
    with database.txn() as txn:
        meta.put(txn, "uuid", id_)
    database.close()
    seen = geniuz.arranging.seen()
    assert [folder.name for folder in seen.folders] == ["My memory"]
    assert "can't be one" in seen.left_out[0].reason


@pytest.mark.parametrize("what", _HOSTILE)
def test_a_hostile_archive_is_refused_and_nothing_of_it_stays(
    geniuz: Geniuz, tmp_path: Path, what: str
) -> None:
    path = _HOSTILE[what](tmp_path / "hostile.tar")
    before = _described(geniuz, "My memory")
    exchange = geniuz.copies.exchange()
    refusal = (UsageError, AlreadyExists, FileTooLarge, TreeError)
    with pytest.raises(refusal) as raised:
        exchange.import_into(geniuz.folder("My memory"), path)
    assert "\n" not in str(raised.value)
    with pytest.raises(refusal):
        exchange.import_new(path, "new")
    assert _described(geniuz, "My memory") == before
    assert [folder.name for folder in geniuz.folders()] == ["My memory"]
    left = {path.name for path in geniuz.config.home.iterdir()}
    assert left - {".folders-lock"} == {"memory.db"}


def test_an_archive_that_lost_its_end_is_refused(geniuz: Geniuz, tmp_path: Path) -> None:
    geniuz.keep("My memory", "Tea at four.")
    path = _exported(geniuz, tmp_path / "x.tar")
    held = path.read_bytes()
    with tarfile.open(path) as archive:
        last = archive.getmembers()[-1]
    assert last.name == "./.geniuz/memories.jsonl"
    path.write_bytes(held[: last.offset])
    with pytest.raises(UsageError, match="its end is missing"):
        geniuz.copies.exchange().import_new(path, "new")


def test_links_and_devices_of_others_stay_in_the_folder(geniuz: Geniuz, tmp_path: Path) -> None:
    path = _archive(
        tmp_path / "x.tar",
        (_info("out", tarfile.SYMTYPE, linkname="/etc/passwd"), b""),
        (_info("null", tarfile.CHRTYPE, devmajor=1, devminor=3), b""),
        (_info(".status"), b"of a mount"),
    )
    done, _restored = geniuz.copies.exchange().import_new(path, "new")
    files = _described(geniuz, "new")["files"]
    assert files[b"/out"][2] == b"/etc/passwd"
    assert files[b"/null"][0].rdev == 0x103
    assert done.left_out == [".status: a mount makes it itself"]


def test_who_is_not_root_gets_what_is_his(tmp_path: Path) -> None:
    program = _program(tmp_path / "home", owner=(1000, 1001))
    attributes = {
        "SCHILY.xattr.user.a": "1",
        "SCHILY.xattr.user.geniuz.state": "learned",
        "SCHILY.xattr.security.capability": "2",
    }
    path = _archive(tmp_path / "x.tar", (_info("a", pax_headers=attributes), b"x"))
    done, _restored = program.copies.exchange().import_new(path, "new")
    inode, held, *_ = _described(program, "new")["files"][b"/a"]
    assert (inode.uid, inode.gid) == (1000, 1001)
    assert held == {b"user.a": b"1"}
    assert done.left_out == ["a: security.capability"]
    device = _archive(tmp_path / "y.tar", (_info("null", tarfile.CHRTYPE, devminor=3), b""))
    with pytest.raises(UsageError, match="device"):
        program.copies.exchange().import_new(device, "newer")


def test_an_archive_of_another_program_is_taken_as_it_is(geniuz: Geniuz, tmp_path: Path) -> None:
    (tmp_path / "t" / "d").mkdir(parents=True)
    (tmp_path / "t" / "d" / "a").write_bytes(b"x" * 100)
    with (tmp_path / "t" / "hole").open("wb") as file:
        file.seek(100 * CHUNK)
        file.write(b"end")
    path = tmp_path / "x.tar.gz"
    subprocess.run(["tar", "-C", tmp_path / "t", "-Sczf", path, "d", "hole"], check=True)
    with pytest.raises(UsageError, match="--as"):
        geniuz.copies.exchange().import_new(path, None)
    geniuz.copies.exchange().import_new(path, "taken")
    files = _described(geniuz, "taken")["files"]
    assert files[b"/d/a"][2] == {0: b"x" * 100}
    assert files[b"/hole"][0].size == 100 * CHUNK + 3
    assert files[b"/hole"][2][100] == b"end"
    assert _stored(geniuz, "taken") < 2 * CHUNK
