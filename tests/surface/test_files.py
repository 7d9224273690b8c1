"""Files by their paths, for programs: every rule as it shows to who calls."""

import stat
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from geniuzfs import BadPath, ConflictError, InvalidRequest, NotFoundError, NotText
from geniuzfs.api import Geniuz
from geniuzfs.api.opened import Opened
from geniuzfs.errors import FileTooLarge
from geniuzfs.model import ROOT, InodeNumber
from geniuzfs.store import content, paths, tree, whole, xattrs
from geniuzfs.store.connection import Database
from geniuzfs.store.whole import Maker, make_directories
from tests.embed.fake import FakeEmbedder
from tests.surface.test_requests import BAD_PATHS

MAKER = Maker(0, 0, 1)


def database(mem: Opened) -> Database:
    """The folder, opened as another program would."""
    return Database.open(mem.folder.path)


def paths_of(mem: Opened, prefix: str = "/") -> list[str]:
    return [file.path for file in mem.files.iter(prefix)]


def raw(mem: Opened, path: bytes, data: bytes, size: int | None = None) -> InodeNumber:
    """Make a file as a mount would, whatever its name and bytes."""
    other = database(mem)
    *above, name = path.split(b"/")[1:]
    with other.txn() as txn:
        parent = make_directories(txn, above, MAKER)
        made = tree.create(txn, parent, name, tree.New(stat.S_IFREG | 0o600, 0, 0), 1)
        save = content.Save(len(data) if size is None else size, 2, 2, {0: data})
        content.save(txn, made.number, save)
    other.close()
    return made.number


def test_what_was_put_is_got(mem: Opened) -> None:
    before = datetime.now(UTC)
    put = mem.files.put("/drafts/2026/plan.md", "Grüße 😀\r\n", {"channel": "claude"})
    got = mem.files.get("/drafts/2026/plan.md")
    assert (put.path, put.size, put.created) == ("/drafts/2026/plan.md", 9, True)
    assert put.source[1:] == (
        "note",
        "plan",
        {"channel": "claude"},
        "file:/drafts/2026/plan.md",
        put.updated_at,
    )
    assert (got.text, got.bytes, got.size) == ("Grüße 😀\r\n", "Grüße 😀\r\n".encode(), 9)
    assert (got.labels, got.source) == ({"channel": "claude"}, put.source)
    assert got.version == put.version
    assert before - timedelta(seconds=1) < got.updated_at == put.updated_at
    assert got.updated_at <= datetime.now(UTC)


def test_the_second_put_replaces_the_text_and_keeps_what_the_file_is(mem: Opened) -> None:
    first = mem.files.put("/a", "one " * 50_000)
    other = database(mem)
    with other.txn() as txn:
        number = InodeNumber(int(first.source.id))
        tree.change(txn, number, tree.Fields(mode=0o600), 1)
    second = mem.files.put("/a", "two")
    found = tree.inode(other.view, number)
    other.close()
    assert not second.created
    assert second.source.id == first.source.id
    assert mem.files.get("/a").text == "two"
    assert found is not None
    assert (found.size, found.stored, found.mode & 0o777) == (3, 3, 0o600)


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_bad_path_stores_nothing(mem: Opened, path: Any) -> None:
    mem.files.put("/a", "here")
    for call in (
        lambda: mem.files.put(path, "x"),
        lambda: mem.files.edit(path, str.upper),
        lambda: mem.files.get(path),
        lambda: mem.files.delete(path),
        lambda: mem.files.move("/a", path),
        lambda: mem.files.move(path, "/b"),
    ):
        with pytest.raises(BadPath):
            call()
    assert paths_of(mem) == ["/a"]


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "x" * 2_000_001, "x" * 3_000_000, 5, None])
def test_bad_text_stores_nothing(mem: Opened, text: Any) -> None:
    mem.files.put("/a", "here")
    with pytest.raises(InvalidRequest):
        mem.files.put("/a", text)
    with pytest.raises(InvalidRequest):
        mem.files.put("/new/b", text)
    with pytest.raises(InvalidRequest):
        mem.files.edit("/a", lambda _: text)
    assert [(file.path, file.size) for file in mem.files.iter()] == [("/a", 4)]
    assert stored_names(mem) == {b"a"}


def stored_names(mem: Opened) -> set[bytes]:
    other = database(mem)
    try:
        return {row[0] for row in other.view.rows("SELECT name FROM entries")}
    finally:
        other.close()


def test_the_longest_text_comes_back(mem: Opened) -> None:
    text = "😀" * 2_000_000
    assert mem.files.put("/a", text).size == 2_000_000
    assert mem.files.get("/a").text == text


def test_no_file_is_larger_than_files_may_be(mem: Opened, geniuz: Geniuz) -> None:
    assert geniuz.config.content_limit > 8_000_000
    object.__setattr__(geniuz.config, "content_limit", 100)
    mem.files.put("/a", "x" * 100)
    with pytest.raises(FileTooLarge):
        mem.files.put("/a", "x" * 101)
    assert mem.files.get("/a").size == 100


def test_given_labels_replace_none_keep_and_an_empty_one_clears(mem: Opened) -> None:
    mem.files.put("/a", "x", {"one": "1", "two": "2"})
    number = InodeNumber(int(mem.files.get("/a").source.id))
    other = database(mem)
    with other.txn() as txn:
        xattrs.put(txn, number, b"user.mine", b"kept", 1)
    mem.files.put("/a", "y")
    assert mem.files.get("/a").labels == {"one": "1", "two": "2"}
    assert mem.files.put("/a", "y", {"two": "3"}).source.labels == {"two": "3"}
    mem.files.edit("/a", str.upper)
    assert mem.files.get("/a").labels == {"two": "3"}
    mem.files.put("/a", "y", {})
    assert mem.files.get("/a").labels == {}
    assert xattrs.get(other.view, number, b"user.mine") == b"kept"
    other.close()
    with pytest.raises(InvalidRequest):
        mem.files.put("/a", "z", {f"key{n}": "v" for n in range(21)})
    assert mem.files.get("/a").text == "y"
    twenty = {f"key{n}": "v" for n in range(20)}
    mem.files.put("/a", "y", twenty)
    assert mem.files.get("/a").labels == twenty


def test_an_empty_file_teaches_nothing(mem: Opened) -> None:
    mem.files.put("/a", "Something that is learned.")
    assert mem.wait(30)
    assert mem.files.put("/a", "").size == 0
    assert mem.files.get("/a").text == ""
    assert mem.wait(30)
    assert mem.recall("something learned") == []


def test_only_changed_paragraphs_are_learned(mem: Opened, embedder: FakeEmbedder) -> None:
    paragraphs = [f"This is paragraph number {n} of them.\n" for n in range(10)]
    mem.files.put("/a.md", "\n".join(paragraphs))
    assert mem.wait(30)
    assert embedder.passages_embedded == 10
    paragraphs[4] = "And this one is another.\n"
    mem.files.put("/a.md", "\n".join(paragraphs))
    assert mem.wait(30)
    assert embedder.passages_embedded == 11


def test_what_is_not_there_is_not_found(mem: Opened) -> None:
    mem.files.put("/d/a", "x")
    for path in ("/b", "/d", "/d/a/b"):
        for call in (
            lambda path=path: mem.files.get(path),
            lambda path=path: mem.files.edit(path, str.upper),
            lambda path=path: mem.files.delete(path),
            lambda path=path: mem.files.move(path, "/new"),
        ):
            with pytest.raises(NotFoundError):
                call()
    with pytest.raises(NotFoundError):
        mem.files.move("/none/", "/new/")
    assert mem.files.delete_prefix("/none") == 0
    assert paths_of(mem) == ["/d/a"]


def test_a_directory_is_in_the_way_of_a_file_and_a_file_in_that_of_a_directory(
    mem: Opened,
) -> None:
    mem.files.put("/d/a", "x")
    mem.files.put("/b", "x")
    for call in (
        lambda: mem.files.put("/d", "y"),
        lambda: mem.files.put("/b/c", "y"),
        lambda: mem.files.put("/d/a/b/c", "y"),
        lambda: mem.files.move("/b", "/d"),
        lambda: mem.files.move("/b", "/d/a"),
        lambda: mem.files.move("/b", "/b"),
        lambda: mem.files.move("/b", "/b/c"),
        lambda: mem.files.move("/d/", "/b/"),
        lambda: mem.files.move("/d/", "/b/c/"),
        lambda: mem.files.move("/d/", "/d/"),
    ):
        with pytest.raises(ConflictError):
            call()
    assert [(file.path, file.size) for file in mem.files.iter()] == [("/b", 1), ("/d/a", 1)]


def test_links_and_pipes_are_neither_listed_nor_replaced(mem: Opened) -> None:
    other = database(mem)
    with other.txn() as txn:
        new = tree.New(stat.S_IFLNK | 0o777, 0, 0, target=b"/etc")
        tree.create(txn, ROOT, b"link", new, 1)
    other.close()
    assert mem.files.list().total == 0
    with pytest.raises(NotFoundError):
        mem.files.get("/link")
    for path in ("/link", "/link/passwd"):
        with pytest.raises(ConflictError):
            mem.files.put(path, "x")


# Versions


def test_a_version_names_the_bytes_and_nothing_else(mem: Opened) -> None:
    one = mem.files.put("/a", "one").version
    assert mem.files.put("/b", "one", {"k": "v"}).version == one
    assert mem.files.put("/a", "two").version != one
    assert mem.files.put("/a", "one").version == one
    mem.files.move("/a", "/c")
    assert mem.files.get("/c").version == one == mem.files.list().files[0].version
    assert len({mem.files.put("/a", text).version for text in ("", "0", "00")}) == 3


def test_a_version_of_a_file_with_a_hole_is_that_of_its_bytes(mem: Opened) -> None:
    raw(mem, b"/zeros", b"a\0\0")
    raw(mem, b"/hole", b"a", 3)
    raw(mem, b"/shorter", b"a")
    versions = [mem.files.get(path).version for path in ("/zeros", "/hole", "/shorter")]
    assert versions[0] == versions[1] != versions[2]
    assert mem.files.get("/hole").bytes == mem.files.get("/zeros").bytes == b"a\0\0"


def test_a_changed_file_is_a_conflict(mem: Opened) -> None:
    read = mem.files.put("/a", "one").version
    mem.files.put("/a", "another's")
    for call in (
        lambda: mem.files.put("/a", "mine", {"k": "v"}, if_version=read),
        lambda: mem.files.edit("/a", str.upper, if_version=read),
        lambda: mem.files.delete("/a", if_version=read),
        lambda: mem.files.put("/a", "mine", if_version=""),
        lambda: mem.files.put("/gone", "mine", if_version=read),
    ):
        with pytest.raises(ConflictError):
            call()
    assert [(file.path, file.labels) for file in mem.files.iter()] == [("/a", {})]
    now = mem.files.get("/a").version
    assert mem.files.put("/a", "mine", if_version=now).version != now
    assert mem.files.put("/new", "mine", if_version="").created
    assert mem.files.delete("/a", if_version=mem.files.get("/a").version) == 1
    not_one: Any = 5
    with pytest.raises(InvalidRequest):
        mem.files.put("/a", "mine", if_version=not_one)


def test_an_edit_that_fails_leaves_all_as_it_was(mem: Opened) -> None:
    mem.files.put("/a", "one", {"k": "v"})

    def fail(text: str) -> str:
        raise ZeroDivisionError(text)

    before = mem.files.get("/a")
    with pytest.raises(ZeroDivisionError):
        mem.files.edit("/a", fail)
    assert mem.files.get("/a") == before
    assert mem.files.edit("/a", lambda text: text + "\r\n").size == 5
    assert mem.files.get("/a").bytes == b"one\r\n"


# Lists


def test_a_list_is_in_the_order_of_the_paths_bytes(mem: Opened) -> None:
    names = ["/a b", "/a", "/a.md", "/B", "/ä", "/z/é", "/z/e", "/日本", "/😀", "/Z", "/a0/x"]
    for name in names:
        mem.files.put(name, name)
    page = mem.files.list()
    listed = [file.path for file in page.files]
    assert listed == sorted(names, key=str.encode) == paths_of(mem)
    assert (page.total, page.next, page.unlisted) == (len(names), None, 0)
    assert all(file == mem.files.list(file.path).files[0] for file in page.files)


def test_a_prefix_is_plain(mem: Opened) -> None:
    for path in ("/draft.md", "/drafts/a", "/drafts/b/c", "/Drafts/x", "/other/drafts"):
        mem.files.put(path, "x")
    assert paths_of(mem, "/draft") == ["/draft.md", "/drafts/a", "/drafts/b/c"]
    assert paths_of(mem, "/drafts") == ["/drafts/a", "/drafts/b/c"]
    assert paths_of(mem, "/drafts/") == ["/drafts/a", "/drafts/b/c"]
    assert paths_of(mem, "/drafts/b") == ["/drafts/b/c"]
    assert paths_of(mem, "/drafts/a") == ["/drafts/a"]
    for none in ("/drafts/a/", "/drafts/_", "/%", "/none/", "/DRAFTS"):
        assert paths_of(mem, none) == []


def test_pages_have_every_file_once_whatever_others_do(mem: Opened) -> None:
    for number in range(25):
        mem.files.put(f"/{number:02}", "x")
    seen: list[str] = []
    cursor = None
    while True:
        page = mem.files.list(limit=10, cursor=cursor)
        seen += [file.path for file in page.files]
        if page.next is None:
            break
        cursor = page.next
        mem.files.delete(seen[0 if len(seen) == 10 else -1])  # where the cursor stands, too
        mem.files.put(f"/00-{len(seen)}", "before the cursor")
        mem.files.put(f"/19-{len(seen)}", "behind it")
    stayed = {f"/{number:02}" for number in range(25)}
    assert seen == sorted(set(seen))
    assert set(seen) >= stayed
    assert len(seen) == 27


def test_a_page_has_up_to_200_files(mem: Opened) -> None:
    for number in range(205):
        mem.files.put(f"/d/{number}", "")
    assert len(mem.files.list().files) == 100
    page = mem.files.list("/d/", limit=200)
    assert (len(page.files), page.total) == (200, 205)
    rest = mem.files.list("/d/", limit=200, cursor=page.next)
    assert (len(rest.files), rest.total, rest.next) == (5, 205, None)
    assert mem.files.list("/d/", limit=200, cursor=rest.files[-1].path).files == ()
    for limit in (0, 201, -1):
        with pytest.raises(InvalidRequest):
            mem.files.list(limit=limit)


def test_files_that_can_not_be_asked_for_are_counted(mem: Opened) -> None:
    mem.files.put("/d/a", "x")
    for path in (b"/d/\xff", b"/d/a\\b", b"/d/" + b"x" * 254, b"/d/new\nline"):
        raw(mem, path, b"x")
    page = mem.files.list()
    assert ([file.path for file in page.files], page.total, page.unlisted) == (["/d/a"], 1, 4)
    assert mem.files.delete_prefix("/d/") == 1
    assert mem.files.list().unlisted == 4


def test_what_is_no_text_has_bytes(mem: Opened) -> None:
    data = b"\x89PNG\r\n\xff"
    raw(mem, b"/a.png", data)
    got = mem.files.get("/a.png")
    assert (got.bytes, got.size, mem.files.list().files[0].size) == (data, None, None)
    with pytest.raises(NotText, match=r"/a\.png is not text"):
        _ = got.text
    with pytest.raises(InvalidRequest):
        mem.files.edit("/a.png", str.upper)
    assert mem.files.get("/a.png").bytes == data
    mem.files.put("/a.png", "text now")
    assert mem.files.get("/a.png").text == "text now"


def test_a_file_that_is_one_large_hole_is_listed_and_not_made(mem: Opened) -> None:
    raw(mem, b"/hole", b"a", 2**50)
    assert mem.files.list().files[0].size is None
    with pytest.raises(FileTooLarge):
        _ = mem.files.get("/hole").bytes
    mem.files.put("/hole", "a")
    assert mem.files.get("/hole").text == "a"


# Moving and deleting


def test_a_file_is_moved_with_all_it_is(mem: Opened) -> None:
    put = mem.files.put("/d/a", "text", {"k": "v"})
    assert mem.files.move("/d/a", "/e/f/b") == 1
    moved = mem.files.get("/e/f/b")
    assert (moved.text, moved.labels, moved.version) == ("text", {"k": "v"}, put.version)
    assert (moved.updated_at, moved.source.id) == (put.updated_at, put.source.id)
    assert stored_names(mem) == {b"e", b"f", b"b"}


@pytest.mark.parametrize("taken", [False, True])
def test_everything_beneath_is_moved_or_nothing(mem: Opened, taken: bool) -> None:
    for path in ("/a/1", "/a/b/2", "/a/b/c/3", "/ab", "/to/0"):
        mem.files.put(path, path)
    if taken:
        mem.files.put("/to/b/c/3", "taken")
        before = paths_of(mem)
        with pytest.raises(ConflictError):
            mem.files.move("/a/", "/to/")
        assert paths_of(mem) == before
    else:
        assert mem.files.move("/a/", "/to/") == 3
        assert paths_of(mem) == ["/ab", "/to/0", "/to/1", "/to/b/2", "/to/b/c/3"]
        assert mem.files.move("/to/", "/x/y/") == 4
        assert paths_of(mem) == ["/ab", "/x/y/0", "/x/y/1", "/x/y/b/2", "/x/y/b/c/3"]
        assert mem.files.get("/x/y/b/2").text == "/a/b/2"


def test_a_directory_is_not_moved_beneath_itself(mem: Opened) -> None:
    mem.files.put("/a/b", "x")
    for target in ("/a/c/", "/a/b/"):
        with pytest.raises((InvalidRequest, ConflictError)):
            mem.files.move("/a/", target)
    for old, new in (("/a/", "/b"), ("/a/b", "/c/"), ("/", "/c/"), ("/a/", "/")):
        with pytest.raises(BadPath):
            mem.files.move(old, new)
    assert stored_names(mem) == {b"a", b"b"}


def test_a_directory_takes_the_place_of_the_one_above_it(mem: Opened) -> None:
    mem.files.put("/a/b/b/x", "x")
    mem.files.put("/a/b/y", "y")
    assert mem.files.move("/a/b/", "/a/") == 2
    assert paths_of(mem) == ["/a/b/x", "/a/y"]


def test_a_move_that_would_make_a_path_too_long_moves_nothing(mem: Opened) -> None:
    long = "/d/" + "x" * 200
    mem.files.put(long, "x")
    mem.files.put("/d/a", "x")
    with pytest.raises(BadPath):
        mem.files.move("/d/", "/" + "y" * 60 + "/")
    assert paths_of(mem) == ["/d/a", long]


def test_deleting_forgets_what_only_that_file_taught(mem: Opened) -> None:
    mem.files.put("/a.md", "The harbour is closed on Sundays.")
    mem.files.put("/b.md", "The harbour is closed on Sundays.\n\nThe museum is not.")
    assert mem.wait(30)
    assert mem.files.delete("/b.md") == 1
    assert [hit.path for hit in mem.recall("harbour museum", mode="words")] == ["/a.md"]
    assert mem.files.delete("/a.md") == 1
    assert mem.recall("harbour") == []
    other = database(mem)
    for table in ("inodes WHERE number > 1", "contents", "xattrs", "passages", "sources", "due"):
        assert other.view.row(f"SELECT count(*) FROM {table}") == (0,)
    other.close()


def test_what_is_deleted_is_gone_from_history_and_overwritten(mem: Opened) -> None:
    secrets = ("Xylographer Quillemont.", "Zanzibarian draft.", "Oberonian end.", "Removed before.")
    for text in secrets[:3]:
        mem.files.put("/secret/plan.md", text)
    other = database(mem)
    with other.txn() as txn:
        place = whole.at(txn, [b"secret"])
        assert place is not None
        tree.remove(txn, place.number, b"plan.md", 3, directory=False)  # as rm in a mount
    other.close()
    mem.files.put("/secret/plan.md", secrets[3])
    mem.files.put("/kept.md", "one")
    mem.files.put("/kept.md", "two")
    assert mem.files.delete("/secret/plan.md") == 1
    other = database(mem)
    view = other.view
    assert view.rows("SELECT name FROM lineages WHERE inode IS NULL") == []
    assert view.row("SELECT count(*) FROM versions") == (1,)
    assert view.row("SELECT count(*) FROM _meta WHERE key = 'forgetting'") == (0,)
    other.close()
    path = mem.folder.path
    mem.close()  # the last one copies the log into the file
    assert not path.with_name("memory.db-wal").exists()
    assert not [text for text in secrets if text.encode() in path.read_bytes()]


def test_a_file_that_is_deleted_with_its_history_kept_comes_back(mem: Opened) -> None:
    mem.files.put("/plan.md", "one")
    assert mem.files.delete("/plan.md", keeps_history=True) == 1
    assert mem.recall("one") == []
    mem.files.undo("/plan.md")
    mem.directories.remove("/plan.md")
    mem.files.undo("/plan.md")
    assert mem.files.get("/plan.md").text == "one"


def test_delete_prefix_takes_the_history_of_what_was_removed_there(mem: Opened) -> None:
    for path in ("/drafts/a", "/drafts/b", "/dra", "/kept"):
        mem.files.put(path, "text")
    other = database(mem)
    with other.txn() as txn:
        place = whole.at(txn, [b"drafts"])
        assert place is not None
        tree.remove(txn, place.number, b"a", 3, directory=False)
        for name in (b"dra", b"kept"):
            tree.remove(txn, ROOT, name, 3, directory=False)
    assert mem.files.delete_prefix("/dra") == 1
    assert other.view.rows("SELECT name FROM lineages") == [(b"kept",)]
    other.close()


def test_versions_are_listed_read_and_brought_back(mem: Opened) -> None:
    for text in ("one", "zwei ä", "three"):
        mem.files.put("/drafts/plan.md", text)
    with pytest.raises(NotFoundError):
        mem.files.versions("/nothing.md")
    first, second = mem.files.versions("/drafts/plan.md")
    assert (first.length, second.length, first.conflict) == (3, 7, False)
    assert first.name < second.name
    assert first.updated_at <= first.replaced_at == second.updated_at
    assert mem.files.earlier("/drafts/plan.md", second.name).decode() == "zwei ä"
    with pytest.raises(InvalidRequest):
        mem.files.earlier("/drafts/plan.md", "2")
    with pytest.raises(NotFoundError):
        mem.files.earlier("/drafts/plan.md", "1999")
    (undone,) = mem.files.undo("/drafts/plan.md")
    assert (undone.path, undone.version, undone.removed) == ("/drafts/plan.md", second.name, False)
    assert mem.files.get("/drafts/plan.md").text == "zwei ä"
    mem.files.undo("/drafts/plan.md", first.name)
    assert mem.files.get("/drafts/plan.md").text == "one"


def test_a_removed_file_has_versions_and_comes_back(mem: Opened) -> None:
    mem.files.put("/drafts/plan.md", "one")
    other = database(mem)
    with other.txn() as txn:
        place = whole.at(txn, [b"drafts"])
        assert place is not None
        tree.remove(txn, place.number, b"plan.md", 3, directory=False)
        tree.remove(txn, ROOT, b"drafts", 3, directory=True)
    other.close()
    (version,) = mem.files.versions("/drafts/plan.md")
    assert mem.files.earlier("/drafts/plan.md", version.name) == b"one"
    assert [one.removed for one in mem.files.undo("/drafts")] == [True]
    assert mem.files.get("/drafts/plan.md").text == "one"
    with pytest.raises(NotFoundError):
        mem.files.undo("/drafts")


def test_directories_that_a_deletion_empties_go_and_others_stay(mem: Opened) -> None:
    for path in ("/a/b/c/1", "/a/2", "/x/y/3", "/x/z/4"):
        mem.files.put(path, "")
    other = database(mem)
    with other.txn() as txn:
        make_directories(txn, [b"made by hand"], MAKER)
    other.close()
    assert mem.files.delete("/a/b/c/1") == 1
    assert stored_names(mem) == {b"a", b"2", b"x", b"y", b"3", b"z", b"4", b"made by hand"}
    assert mem.files.delete_prefix("/x/") == 2
    assert stored_names(mem) == {b"a", b"2", b"made by hand"}
    mem.files.delete("/a/2")
    assert mem.files.put("/a", "a file now").created


def test_delete_prefix_takes_what_list_lists(mem: Opened) -> None:
    for path in ("/draft", "/drafts/a", "/drafts/b/c", "/Drafts"):
        mem.files.put(path, "x")
    assert mem.files.delete_prefix("/drafts") == 2
    assert paths_of(mem) == ["/Drafts", "/draft"]
    assert mem.files.delete_prefix("/") == 2
    assert stored_names(mem) == set()


def test_new_files_are_the_owner_s_and_readable(mem: Opened, geniuz: Geniuz) -> None:
    object.__setattr__(geniuz.config, "owner", (1234, 5678))
    mem.files.put("/d/a", "x")
    other = database(mem)
    for path, mode in ((b"d", 0o40755), (b"d/a", 0o100644)):
        number = paths.find(other.view, path)
        assert number is not None
        found = tree.inode(other.view, number)
        assert found is not None
        assert (found.uid, found.gid, found.mode) == (1234, 5678, mode)
    other.close()
