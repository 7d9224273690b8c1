"""Kept memories in a mount: `.memories/` lists and opens them, and a new file there keeps one."""

import os
import sqlite3
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from errno import EACCES, EBADF, EFBIG, EINVAL, ENAMETOOLONG, ENODATA, ENOENT, EPERM
from pathlib import Path

import pytest

from geniuzfs.fs.memories import DRAFT_MAX, PAGE
from geniuzfs.model import FolderId, Memory
from geniuzfs.store import memories, meta
from geniuzfs.store.connection import Database
from tests.daemon import Daemon, wait_until
from tests.geniuz import NAMINGS, TABLES, as_geniuz_asks, as_geniuz_keeps, as_geniuz_lists
from tests.mounted.calls import Directory, as_user, errno_as_user, errno_of

NOW_NS = 1_790_000_000 * 10**9  # 2026-09-21, in every time zone


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A mount that several tests share."""
    with Daemon(tmp_path_factory.mktemp("memories")) as daemon:
        yield daemon


def keep(daemon: Daemon, text: str, gist: str = "", parent: str | None = None) -> Memory:
    """Keep one as another process does."""
    database = Database.open(daemon.database_path, wait=5)
    try:
        with database.txn() as txn:
            return memories.keep(txn, text, gist, parent, NOW_NS).memory
    finally:
        database.close()


def kept(daemon: Daemon) -> list[Memory]:
    """All memories, in the order of keeping. close(2) returns before the daemon hears that it was
    the last one; what the mount is asked next, it hears later.
    """
    assert not (daemon.root / ".memories" / "no such name").exists()
    database = Database.open(daemon.database_path, wait=5)
    try:
        return [each.memory for each in memories.page(database.view, 0, 100_000)]
    finally:
        database.close()


def folder_of(daemon: Daemon) -> FolderId:
    database = Database.open(daemon.database_path, wait=5)
    try:
        identity = meta.identity(database.view)
        assert identity is not None
        return identity.id
    finally:
        database.close()


def shell(daemon: Daemon, script: str) -> None:
    subprocess.run(["bash", "-ec", script], cwd=daemon.root / ".memories", check=True, timeout=60)


# Reading


def test_a_memory_is_listed_and_read_like_a_file(mounted: Daemon) -> None:
    made = keep(mounted, "Priya Nair signs\nthe renewal.", "who signs")
    name = f"2026-09-21 who signs~{made.id[:8]}.md"
    path = mounted.root / ".memories" / name
    assert name in os.listdir(mounted.root / ".memories")
    status = os.stat(path)
    assert (status.st_size, status.st_mtime_ns) == (30, NOW_NS)
    assert status.st_mode == stat.S_IFREG | 0o400
    assert path.read_text() == "Priya Nair signs\nthe renewal.\n"
    assert os.stat(path.parent).st_mtime_ns >= NOW_NS
    assert b"who signs" in subprocess.check_output(["ls", "-l", path.parent])
    assert b"the renewal." in subprocess.check_output(["grep", "-r", "renewal", mounted.root])


def test_a_memory_opens_by_its_id_and_by_its_address(mounted: Daemon) -> None:
    made, directory = keep(mounted, "Tea at four."), mounted.root / ".memories"
    short, folder = made.id[:8], folder_of(mounted)[:8]
    for name in (short, short.lower(), made.id, f"{short}.md", f"anything~{short}", f"~{short}.md"):
        assert (directory / name).read_text() == "Tea at four.\n"
        assert os.stat(directory / name).st_ino == os.stat(directory / short).st_ino
    assert (directory / f"{folder}:{short}").read_text() == "Tea at four.\n"
    for name in (short[:7], f"DEADBEEF:{short}", "DEADBEEF", f"~{short} ", "Tea at four."):
        assert not (directory / name).exists(), name


def test_an_id_that_two_memories_begin_with_opens_neither(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        database = Database.open(daemon.database_path, wait=5)
        for number, gist in ((1, "one"), (2, "two")):
            with database.txn() as txn:
                txn.run(
                    "INSERT INTO memories VALUES (?, ?, '2026-09-21 12:00:00', NULL)",
                    (
                        f"3487B9B0-0000-4000-8000-{number:012}",
                        f'{{"content":"{gist}","gist":"{gist}"}}',
                    ),
                )
        database.close()
        directory = daemon.root / ".memories"
        assert not (directory / "3487B9B0").exists()
        assert (directory / "3487B9B0-0000-4000-8000-000000000002").read_text() == "two\n"
        for path in directory.iterdir():
            assert path.read_text() in path.name.replace("~", "\n")


@pytest.mark.parametrize(
    "created_at", ["9999-12-31 23:59:59", "0001-01-01 00:00:00", "yesterday", "", "2026-09-21"]
)
def test_a_time_that_another_tool_made_up_is_shown_as_none(tmp_path: Path, created_at: str) -> None:
    with Daemon(tmp_path) as daemon:
        with closing(sqlite3.connect(daemon.database_path)) as plain, plain:
            plain.execute(
                "INSERT INTO memories VALUES (?, ?, ?, NULL)",
                (f"{'A' * 8}-0000-4000-8000-{1:012}", '{"content":"tea","gist":"g"}', created_at),
            )
        (path,) = (daemon.root / ".memories").iterdir()
        assert (path.read_text(), os.stat(path).st_mtime_ns) == ("tea\n", 0)
        for question in ("tea mode:words", "mode:recent", "AAAAAAAA", "tea mode:words since:7d"):
            (daemon.root / ".recall" / question).read_bytes()


def test_many_are_listed_once_each_while_others_are_kept(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        made = {keep(daemon, f"memory {n}").id for n in range(3 * PAGE)}
        directory = Directory(daemon.root / ".memories")
        names = [directory.read() for _ in range(PAGE)]
        keep(daemon, "one more")
        while name := directory.read():
            names.append(name)
        directory.close()
        found = [name.rpartition(b"~")[2][:8].decode() for name in names if name and b"~" in name]
        assert len(found) == len(set(found))
        assert set(found) >= {id_[:8] for id_ in made}


def test_crawlers_copy_memories(mounted: Daemon, tmp_path: Path) -> None:
    made = keep(mounted, "Carried along.")
    for number, command in enumerate((["cp", "-a"], ["rsync", "-a"])):
        copy = tmp_path / str(number)
        subprocess.run([*command, mounted.root / ".memories", copy], check=True, timeout=60)
        (path,) = copy.rglob(f"*~{made.id[:8]}.md")
        assert (path.read_text(), os.stat(path).st_mtime_ns) == ("Carried along.\n", NOW_NS)


def test_a_memory_stands_in_its_folder_and_opens_from_any(tmp_path: Path) -> None:
    with Daemon(tmp_path, alone=None) as daemon:
        made, folder = keep(daemon, "Tea at four."), folder_of(daemon)
        top, own = daemon.root / ".memories", daemon.root / "My memory" / ".memories"
        assert [path.read_text() for path in own.iterdir()] == ["Tea at four.\n"]
        assert list(top.iterdir()) == []  # or whoever walks the tree meets each of them twice
        assert (top / f"{folder[:8]}:{made.id[:8]}").read_text() == "Tea at four.\n"
        assert (top / made.id[:8]).read_text() == "Tea at four.\n"
        assert errno_of(lambda: (top / "gist").write_text("text")) == EPERM
        (own / "gist").write_text("text")
        assert [memory.content for memory in kept(daemon)] == ["Tea at four.", "text"]
    assert not (tmp_path / "mount" / ".memories").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_only_the_owner_reads_memories(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--allow-other") as daemon:
        made = keep(daemon, "a secret")
        for call in (
            lambda: os.listdir(".memories"),
            lambda: os.stat(f".memories/{made.id[:8]}"),
            lambda: Path(".memories/new").write_text("mine"),
        ):
            assert errno_as_user(daemon.root, call) == EACCES
        assert ".memories" in as_user(daemon.root, os.listdir)


# Keeping


def test_a_new_file_is_kept_with_its_name_as_gist(mounted: Daemon) -> None:
    (mounted.root / ".memories" / "Wer unterschreibt.md").write_text(" Priya Nair.\n\n")
    made = kept(mounted)[-1]
    assert (made.content, made.gist, made.parent) == ("Priya Nair.", "Wer unterschreibt", made.id)
    (listed,) = (n for n in os.listdir(mounted.root / ".memories") if made.id[:8] in n)
    assert listed.endswith(f" Wer unterschreibt~{made.id[:8]}.md")
    assert not (mounted.root / ".memories" / "Wer unterschreibt.md").exists()
    (mounted.root / ".memories" / "Wer unterschreibt.md").write_text("Someone else.")  # another
    assert kept(mounted)[-1].content == "Someone else."


@pytest.mark.parametrize(
    ("script", "content"),
    [
        ("echo one > 'a gist'", "one"),
        ("echo one >> 'a gist'", "one"),
        ("(/bin/echo one; /bin/echo two) > 'a gist'", "one\ntwo"),
        ("{ echo one; echo two; } > 'a gist'", "one\ntwo"),
        (
            "exec 5>'a gist'; echo one >&5; /bin/echo two >&5; echo three >&5; exec 5>&-",
            "one\ntwo\nthree",
        ),
        ("echo one | tee 'a gist'", "one"),
        ("printf one | dd of='a gist' conv=fsync status=none", "one"),
        ("echo one > /tmp/$$.md; cp -p /tmp/$$.md 'a gist'; rm /tmp/$$.md", "one"),
        ("vim -Nu NONE -es -c 'call setline(1, \"one\")' -c 'wq' 'a gist'", "one"),
    ],
)
def test_what_programs_write_is_kept_whole_and_once(
    mounted: Daemon, script: str, content: str
) -> None:
    before = len(kept(mounted))
    shell(mounted, script)
    wait_until(lambda: len(kept(mounted)) > before)
    (made,) = kept(mounted)[before:]
    assert (made.content, made.gist) == (content, "a gist")


def test_what_is_written_anywhere_in_the_file_is_kept(mounted: Daemon) -> None:
    with open(mounted.root / ".memories" / "a gist", "w+b", buffering=0) as file:
        file.write(b"Tee at five and more")
        file.seek(7)
        file.write(b"four.")
        file.seek(1)
        file.write(b"e")
        file.truncate(12)
        file.seek(0)
        assert file.read() == b"Tee at four."
        assert os.fstat(file.fileno()).st_size == 12
    assert kept(mounted)[-1].content == "Tee at four."


def test_two_who_write_under_one_name_each_keep_their_own(mounted: Daemon) -> None:
    path, before = mounted.root / ".memories" / "both", len(kept(mounted))
    with open(path, "w") as one, open(path, "w") as other:
        one.write("one")
        other.write("other")
    assert {made.content for made in kept(mounted)[before:]} == {"one", "other"}


@pytest.mark.parametrize("text", [b"", b" \n", b"\xff\xfe", b"a\0b"])
def test_what_can_not_be_kept_is_refused_at_close(mounted: Daemon, text: bytes) -> None:
    before = kept(mounted)
    file = os.open(mounted.root / ".memories" / "nothing", os.O_WRONLY | os.O_CREAT)
    os.write(file, text)
    assert errno_of(lambda: os.fsync(file)) == EINVAL
    assert errno_of(lambda: os.close(file)) == EINVAL
    assert kept(mounted) == before


def test_what_is_too_long_is_refused_when_it_is_written(mounted: Daemon) -> None:
    before = kept(mounted)
    file = os.open(mounted.root / ".memories" / "long", os.O_WRONLY | os.O_CREAT)
    os.write(file, b"the beginning of it")
    assert errno_of(lambda: os.pwrite(file, b"x", DRAFT_MAX)) == EFBIG
    assert errno_of(lambda: os.fsync(file)) == EINVAL
    assert errno_of(lambda: os.close(file)) == EINVAL
    assert kept(mounted) == before


def test_what_was_synced_is_kept_and_takes_no_more(mounted: Daemon) -> None:
    with open(mounted.root / ".memories" / "synced", "wb", buffering=0) as file:
        file.write(b"all of it")
        os.fsync(file.fileno())
        assert kept(mounted)[-1].content == "all of it"
        assert errno_of(lambda: file.write(b" and more")) == EPERM
        assert errno_of(lambda: file.truncate(1)) == EPERM
        os.fsync(file.fileno())
    assert [made.content for made in kept(mounted)].count("all of it") == 1


def test_a_name_with_re_continues_a_memory(mounted: Daemon) -> None:
    directory, root = mounted.root / ".memories", keep(mounted, "Who signs?")
    (directory / f"re {root.id[:8]} the answer").write_text("Priya does.")
    child = kept(mounted)[-1]
    assert (child.parent, child.gist) == (root.id, "the answer")
    (directory / f"re {child.id[:8]}").write_text("From May.")
    assert (kept(mounted)[-1].parent, kept(mounted)[-1].gist) == (child.id, "From May.")
    before = kept(mounted)
    assert errno_of(lambda: (directory / "re DEADBEEF").write_text("text")) == ENOENT
    assert kept(mounted) == before


@pytest.mark.parametrize(
    ("name", "error"),
    [
        (".hidden", EPERM),
        ("note.md~", EPERM),
        (".note.md.swp", EPERM),
        (".note.md.Xy12Ab", EPERM),
        ("4913", EPERM),
        ("tmp1a2b3c4d", EPERM),
        ("ä" * 128, ENAMETOOLONG),
        (os.fsdecode(b"\xff"), EINVAL),
    ],
)
def test_names_of_editors_and_names_that_are_no_gist_are_refused(
    mounted: Daemon, name: str, error: int
) -> None:
    before = kept(mounted)
    path = mounted.root / ".memories" / name
    assert errno_of(lambda: os.open(path, os.O_WRONLY | os.O_CREAT)) == error
    assert kept(mounted) == before


def test_nothing_else_changes_a_memory(mounted: Daemon) -> None:
    made, directory = keep(mounted, "for good"), mounted.root / ".memories"
    path, note = directory / made.id[:8], mounted.root / "note.md"
    note.write_text("a note\n")
    changes: list[Callable[[], object]] = [
        lambda: path.write_text("x"),
        lambda: path.open("a"),
        lambda: os.truncate(path, 0),
        path.unlink,
        lambda: path.chmod(0o600),
        lambda: os.utime(path),
        lambda: os.chown(path, 1, 1),
        lambda: path.rename(directory / "another name"),
        lambda: path.rename(mounted.root / "moved.md"),
        lambda: note.rename(directory / "note"),
        lambda: note.rename(path),
        lambda: os.link(note, directory / "note"),
        lambda: os.link(path, mounted.root / "linked.md"),
        lambda: os.symlink("x", directory / "note"),
        lambda: os.mkfifo(directory / "note"),
        (directory / "note").mkdir,
        directory.rmdir,
        lambda: directory.rename(mounted.root / "moved"),
        lambda: directory.chmod(0o777),
        lambda: os.setxattr(path, "user.x", b""),
        lambda: os.removexattr(path, "user.x"),
    ]
    before = kept(mounted)
    for number, change in enumerate(changes):
        assert errno_of(change) == EPERM, number
    assert errno_of(lambda: os.getxattr(path, "user.x")) == ENODATA
    with open(path, "rb") as file:
        assert errno_of(lambda: os.write(file.fileno(), b"x")) == EBADF
    assert kept(mounted) == before
    assert path.read_text() == "for good\n"


def test_a_memory_is_kept_although_another_holds_the_lock_meanwhile(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        other = Database.open(daemon.database_path, wait=5)
        with other.txn():
            (daemon.root / ".memories" / "patience").write_text("text")
            assert list((daemon.root / ".memories").iterdir()) == []
        other.close()
        wait_until(lambda: len(kept(daemon)) == 1)


def test_a_memory_that_was_kept_is_found_at_once(mounted: Daemon) -> None:
    (mounted.root / ".memories" / "who signs").write_text("Aurelia countersigns everything.")
    answer = (mounted.root / ".recall" / "Aurelia mode:words").read_text()
    assert answer.startswith("- Aurelia countersigns everything. [")
    assert f":{kept(mounted)[-1].id[:8]}, {time.strftime('%Y-%m-%d')}" in answer


# Beside Geniuz


@pytest.mark.parametrize("file", ["memory.db", "station.db"])
@pytest.mark.parametrize("naming", NAMINGS)
def test_a_database_of_geniuz_is_mounted_and_both_go_on_keeping(
    tmp_path: Path, naming: str, file: str
) -> None:
    (tmp_path / "home").mkdir()
    with closing(sqlite3.connect(tmp_path / "home" / file)) as plain:
        plain.executescript(TABLES.format(**NAMINGS[naming]))
        root = as_geniuz_keeps(plain, "Who signs?", naming=naming)
    daemon = Daemon(tmp_path)
    daemon.database_path = daemon.home / file
    with daemon, closing(sqlite3.connect(daemon.database_path)) as plain:
        assert sorted(path.name for path in daemon.home.glob("*.db")) == [file]
        directory = daemon.root / ".memories"
        assert [path.read_text() for path in directory.iterdir()] == ["Who signs?\n"]
        (directory / f"re {root[:8]}").write_text("Priya does.")
        assert [memory.parent for memory in kept(daemon)] == [root, root]
        plain.executescript(TABLES.format(**NAMINGS["geniuz"]))  # they open it meanwhile
        child = as_geniuz_keeps(plain, "Since May.", kept(daemon)[1].id)
        assert (directory / child[:8]).read_text() == "Since May.\n"
        texts = {"Who signs?", "Priya does.", "Since May."}
        assert {path.read_text()[:-1] for path in directory.iterdir()} == texts
        assert {content for content, _ in as_geniuz_lists(plain)} == texts
        assert plain.execute(
            "SELECT level, root_uuid FROM memory_chains ORDER BY level"
        ).fetchall() == [(level, root) for level in range(3)]
        second = kept(daemon)[1].id
        asked = as_geniuz_asks(plain, "Priya", second.lower(), "2000-01-01 00:00:00")
        assert asked["word"] == [("Priya does.",)]
        assert asked["id"] == [("Priya does.", root)]
        assert len(asked["since"]) == 3
        assert asked["vectors"] == [(root, "Who signs?", 1536), (child, "Since May.", 1536)]
        assert asked["lacking"] == [(second,)]
        assert asked["count"] == [(3,)]
        answer = (daemon.root / ".recall" / f"mode:thread {child[:8]}").read_text()
        assert [line[2:12] for line in answer.splitlines()[:3]] == [
            "Who signs?",
            "Priya does",
            "Since May.",
        ]
