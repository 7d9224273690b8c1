"""Files are brought in whole, with all that belongs to them, once, and overwrite nothing."""

import hashlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from geniuzfs import runtime
from geniuzfs.api import Geniuz, capturing
from geniuzfs.api.capturing import Captured
from geniuzfs.config import Config
from geniuzfs.errors import AlreadyExists, NotADirectory, NotFound, UsageError
from geniuzfs.model import CHUNK, ROOT, InodeNumber
from geniuzfs.store import check, content, memories, paths, tree, xattrs
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import View
from tests.folders.killing import killed_at

Seen = dict[bytes, tuple[object, ...]]


@pytest.fixture
def geniuz(tmp_path: Path) -> Iterator[Geniuz]:
    environment = {"GENIUZ_HOME": str(tmp_path / "home"), "GENIUZ_CONTENT_LIMIT": "300000"}
    made = runtime.geniuz(Config.from_environment(environment))
    made.begin()
    yield made
    database = Database.open(tmp_path / "home" / "memory.db")
    with database.snapshot() as view:
        assert list(check.problems(view)) == []
    database.close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.mkdir()
    return path


def there(geniuz: Geniuz) -> Seen:
    """All that is in "My memory": by path, what stat and the bytes say."""
    database = geniuz.open(geniuz.folder("My memory"), wait=5)
    try:
        with database.snapshot() as view:
            return dict(_below(view, ROOT, b""))
    finally:
        database.close()


def _below(
    view: View, parent: InodeNumber, above: bytes
) -> Iterator[tuple[bytes, tuple[object, ...]]]:
    for entry in tree.listing(view, parent, 0, 10_000):
        found = tree.inode(view, entry.inode)
        assert found is not None
        path, is_directory = above + entry.name, stat.S_ISDIR(found.mode)
        said: object = None
        if stat.S_ISREG(found.mode):
            said = hashlib.sha256(
                content.read(view, found.number).ljust(found.size, b"\0")
            ).digest()
        elif stat.S_ISLNK(found.mode):
            said = tree.target(view, found.number)
        held = {
            name: xattrs.get(view, found.number, name) for name in xattrs.names(view, found.number)
        }
        nlink = 0 if is_directory else found.nlink
        yield path, (found.mode, found.mtime_ns, nlink, said, held)
        if is_directory:
            yield from _below(view, found.number, path + b"/")


def on_disk(top: bytes, under: bytes) -> Seen:
    """The same of a tree on disk that was brought in as `under`."""
    found: Seen = {}
    for directory, directories, files in os.walk(top):
        for name in [*directories, *files, b""]:
            path = os.path.join(directory, name) if name else directory
            status = os.lstat(path)
            said: object = None
            if stat.S_ISREG(status.st_mode):
                said = hashlib.sha256(Path(os.fsdecode(path)).read_bytes()).digest()
            elif stat.S_ISLNK(status.st_mode):
                said = os.readlink(path)
            names = [] if stat.S_ISLNK(status.st_mode) else os.listxattr(path)
            held = {os.fsencode(one): os.getxattr(path, one) for one in names if one[:5] == "user."}
            nlink = 0 if stat.S_ISDIR(status.st_mode) else status.st_nlink
            key = under + path[len(top) :]
            found[key] = (status.st_mode, status.st_mtime_ns, nlink, said, held)
    return found


def reasons(captured: Captured) -> dict[str, str]:
    return {os.path.basename(path): str(reason) for path, reason in captured.left_out}


def test_a_tree_comes_as_it_is_to_the_last_attribute(geniuz: Geniuz, source: Path) -> None:
    deep = source / "notes" / "deep"
    deep.mkdir(parents=True)
    for number, name in enumerate(
        (b"plain", b"two\nlines", b"\xff not UTF-8", b" ", b"-rf", b"%2F")
    ):
        path = os.fsencode(deep) + b"/" + name
        with open(path, "wb") as file:
            file.write(os.urandom(number * 33_000))
        os.chmod(path, 0o600 + number)
        os.utime(path, ns=(1, 1_234_567_890_123_456_789 + number))
    (source / "empty").touch()
    (source / "link").symlink_to("/nowhere\n")
    (source / "loop").symlink_to(".")
    os.link(deep / "plain", source / "hard")
    with open(source / "hole", "wb") as file:
        file.write(b"x" * 10)
        file.truncate(50_000_000)
        file.seek(10 * CHUNK + 5)
        file.write(b"y" * 10)
    try:
        os.setxattr(deep / "plain", "user.geniuz.label.channel", b"claude")
    except OSError:
        pytest.skip("the test directory's file system has no extended attributes")
    os.utime(deep, ns=(1, 987_654_321))
    captured = geniuz.capture(None, [source])
    assert (captured.files, captured.directories, captured.links) == (9, 3, 2)
    assert captured.left_out == []
    assert there(geniuz) == on_disk(os.fsencode(source), b"source")
    database = geniuz.open(geniuz.folder("My memory"), wait=5)
    hole = paths.find(database.view, b"source/hole")
    assert hole is not None
    found = tree.inode(database.view, hole)
    assert found is not None
    assert (found.size, found.stored) == (50_000_000, 2 * CHUNK)
    database.close()


def test_a_file_lands_at_the_top_or_in_the_directory_that_is_named(
    geniuz: Geniuz, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "note.md").write_text("tea")
    geniuz.capture(None, [source / "note.md"])
    geniuz.capture(None, [source / "note.md"], into="/a/b/")
    monkeypatch.chdir(source)
    geniuz.capture(None, [Path(".")], into="here")
    assert set(there(geniuz)) == {
        b"note.md",
        b"a",
        b"a/b",
        b"a/b/note.md",
        b"here",
        b"here/note.md",
    }
    for wrong in ("..", "a/../b", ".recall/x"):
        with pytest.raises(UsageError):
            geniuz.capture(None, [source], into=wrong)
    with pytest.raises(NotADirectory):
        geniuz.capture(None, [source], into="note.md")


def test_what_is_left_out_is_told_with_its_reason(geniuz: Geniuz, source: Path) -> None:
    (source / "sub" / "build").mkdir(parents=True)
    (source / ".git").mkdir()
    for name in (
        ".git/HEAD",
        "a.log",
        "keep.log",
        "draft.md~",
        "sub/a.md",
        "sub/build/out",
        "secret",
    ):
        (source / name).write_text(name)
    (source / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n")
    (source / "sub" / ".geniuzignore").write_text("/a.md\n")
    (source / "large").write_bytes(b"x" * 300_001)
    (source / ".status").touch()
    os.mkfifo(source / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(source / "socket"))
    captured = geniuz.capture(None, [source])
    assert reasons(captured) == {
        ".git": "temporary",
        "a.log": "ignored",
        "draft.md~": "temporary",
        "a.md": "ignored",
        "build": "ignored",
        "large": "too large",
        ".status": "reserved name",
        "fifo": "no file",
        "socket": "no file",
    }
    came = {path.removeprefix(b"source/") for path in there(geniuz)}
    assert came == {b"source", b".gitignore", b"keep.log", b"secret", b"sub", b"sub/.geniuzignore"}
    more = geniuz.capture(None, [source], everything=True)
    assert reasons(more).keys() == {"large", ".status", "fifo", "socket"}
    assert b"source/.git/HEAD" in there(geniuz)


def test_what_is_named_is_brought_in_though_a_rule_covers_it(geniuz: Geniuz, source: Path) -> None:
    (source / ".gitignore").write_text("*\n")
    (source / "note.bak").write_text("tea")
    geniuz.capture(None, [source / "note.bak"])
    assert set(there(geniuz)) == {b"note.bak"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_can_not_be_read_is_left_out(geniuz: Geniuz, source: Path) -> None:
    (source / "secret").touch(0)
    (source / "closed").mkdir(0)
    assert reasons(geniuz.capture(None, [source])) == {
        "secret": "unreadable",
        "closed": "unreadable",
    }


def test_a_file_that_goes_meanwhile_is_left_out(
    geniuz: Geniuz, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capturing, "AT_ONCE", 1)
    for name in "abc":
        (source / name).write_text(name)
    captured = geniuz.capture(
        None, [source], step=lambda done, of: (source / "c").unlink(missing_ok=True)
    )
    assert reasons(captured) == {"c": "unreadable"}
    assert set(there(geniuz)) == {b"source", b"source/a", b"source/b"}


def test_the_same_is_there_already_and_other_bytes_are_refused(
    geniuz: Geniuz, source: Path
) -> None:
    for name in "abc":
        (source / name).write_text(name)
    geniuz.capture(None, [source])
    before = there(geniuz)
    again = geniuz.capture(None, [source])
    assert (again.files, again.already_there) == (0, 4)
    assert there(geniuz) == before
    (source / "b").write_text("other")
    (source / "new").write_text("new")
    for dry_run in (True, False):
        with pytest.raises(AlreadyExists, match="source/b"):
            geniuz.capture(None, [source], dry_run=dry_run)
    assert there(geniuz) == before
    captured = geniuz.capture(None, [source], replace=True)
    assert (captured.files, captured.replaced, captured.already_there) == (2, 1, 3)
    assert there(geniuz) == on_disk(os.fsencode(source), b"source")


def test_what_is_replaced_is_kept_with_who_wrote_it(geniuz: Geniuz, source: Path) -> None:
    for text in ("one", "two", "three"):
        (source / "note").write_text(text)
        geniuz.capture(None, [source / "note"], replace=True)
    kept = geniuz.histories.of(None, "/note", None)
    assert [(one.version.size, one.version.writer) for one in kept] == [
        (3, ""),
        (3, "geniuzfs capture"),
    ]


def test_a_shorter_file_leaves_nothing_of_the_longer_one(geniuz: Geniuz, source: Path) -> None:
    path = source / "note"
    for size in (200_000, 70_000, 5, 0, 131_072):
        path.write_bytes(os.urandom(size))
        geniuz.capture(None, [source], replace=True)
        assert there(geniuz) == on_disk(os.fsencode(source), b"source")


def test_a_file_and_a_directory_never_replace_each_other(geniuz: Geniuz, source: Path) -> None:
    (source / "x").mkdir()
    (source / "x" / "within").touch()
    geniuz.capture(None, [source / "x"])
    (source / "x" / "within").unlink()
    (source / "x").rmdir()
    (source / "x").write_text("file")
    with pytest.raises(AlreadyExists):
        geniuz.capture(None, [source / "x"], replace=True)
    geniuz.capture(None, [source / "x"], into="y")
    (source / "x").unlink()
    (source / "x").mkdir()
    with pytest.raises(AlreadyExists):
        geniuz.capture(None, [source / "x"], into="y", replace=True)
    (source / "x").rmdir()
    (source / "x").symlink_to("elsewhere")
    geniuz.capture(None, [source / "x"], into="y", replace=True)
    assert set(there(geniuz)) == {b"x", b"x/within", b"y", b"y/x"}
    assert there(geniuz)[b"y/x"][3] == b"elsewhere"


def test_two_for_one_place_and_a_path_that_is_not_there_change_nothing(
    geniuz: Geniuz, source: Path
) -> None:
    for name in ("a", "b"):
        (source / name).mkdir()
        (source / name / "note").write_text(name)
    with pytest.raises(AlreadyExists, match="one place"):
        geniuz.capture(None, [source / "a" / "note", source / "b" / "note"])
    with pytest.raises(NotFound):
        geniuz.capture(None, [source / "a" / "note", source / "missing"])
    assert there(geniuz) == {}


def test_a_dry_run_says_the_same_and_changes_nothing(geniuz: Geniuz, source: Path) -> None:
    for name in ("a", "b~"):
        (source / name).write_text(name)
    dry = geniuz.capture(None, [source], dry_run=True)
    assert there(geniuz) == {}
    assert dry == geniuz.capture(None, [source])


def test_killed_at_every_step_what_came_is_whole_and_the_next_run_goes_on(
    geniuz: Geniuz, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capturing, "AT_ONCE", 2)
    (source / "sub").mkdir()
    for number in range(5):
        (source / "sub" / f"note {number}").write_bytes(os.urandom(70_000))
    os.utime(source / "sub", ns=(5, 5))
    whole, step, killed = on_disk(os.fsencode(source), b"source"), 0, True
    files = {path: said for path, said in whole.items() if not stat.S_ISDIR(said[0])}  # type: ignore[arg-type]
    while killed:
        step += 9
        into = f"{step}"

        def run(into: str = into) -> object:
            return geniuz.capture(None, [source], into=into)

        killed = killed_at(step, run)
        came = {
            path[len(into) + 1 :]: said
            for path, said in there(geniuz).items()
            if path.startswith(into.encode() + b"/")
        }
        assert {path: said for path, said in came.items() if path in files}.items() <= files.items()
        run()
        database = geniuz.open(geniuz.folder("My memory"), wait=5)
        top = paths.find(database.view, into.encode())
        assert top is not None
        assert dict(_below(database.view, top, b"")) == whole
        database.close()
    assert step > 100


# As memories


def test_each_text_becomes_a_memory_once(geniuz: Geniuz, source: Path) -> None:
    (source / "sub").mkdir()
    (source / "tea.md").write_bytes("\ufeffTea at four.\n".encode())
    (source / "sub" / "cat.txt").write_text("Die Katze schläft.", encoding="utf-8")
    (source / "copy.md").write_text("Tea at four.")
    (source / "photo.jpg").write_bytes(b"\xff\xd8\xff")
    (source / "nul").write_bytes(b"a\0b")
    (source / "blank").write_text(" \n")
    (source / "link").symlink_to("tea.md")
    (source / "draft~").write_text("no")
    dry = geniuz.capture(None, [source], as_memories=True, dry_run=True)
    captured = geniuz.capture(None, [source], as_memories=True)
    assert dry == captured
    assert (captured.memories, captured.already_there) == (2, 1)
    assert reasons(captured) == {
        "photo.jpg": "no text",
        "nul": "no text",
        "blank": "no text",
        "link": "link",
        "draft~": "temporary",
    }
    assert geniuz.capture(None, [source], as_memories=True).memories == 0
    database = geniuz.open(geniuz.folder("My memory"), wait=5)
    kept = {(one.memory.content, one.memory.gist) for one in memories.page(database.view, 0, 9)}
    database.close()
    assert kept == {("Tea at four.", "copy.md"), ("Die Katze schläft.", "cat.txt")}
    assert there(geniuz) == {}
    with pytest.raises(UsageError):
        geniuz.capture(None, [source], as_memories=True, into="x")
