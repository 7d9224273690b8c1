"""What is replaced is kept, once, and no more of it than is needed."""

import pytest

from geniuzfs.model import CHUNK, Exchange, Writer
from geniuzfs.store import content, counts, histories, retention, tree, xattrs
from geniuzfs.store.connection import Database
from geniuzfs.store.lineages import Replacing
from geniuzfs.store.versions import BURST_NS
from tests.store.files import START, Files

VIM, AGENT = Writer("vim", 100, 1), Writer("agent", 200, 2)


@pytest.fixture
def files(database: Database) -> Files:
    return Files(database)


def stored(files: Files) -> int:
    return counts.counts(files.database.view).version_bytes


def test_a_replaced_text_is_a_version_with_its_own_time_and_mode(files: Files) -> None:
    files.save("note.md", b"one")
    files.save("note.md", b"two", VIM)
    files.save("note.md", b"three", AGENT)
    assert files.kept("note.md") == [b"one", b"two"]
    first, second = histories.at(files.database.view, b"note.md")
    assert (first.mtime_ns, second.mtime_ns) == (START + 2e9, START + 3e9)
    assert (first.replaced_ns, second.replaced_ns) == (START + 3e9, START + 4e9)
    assert (first.mode, first.size, first.writer, second.writer) == (0o100644, 3, "", "vim (100)")


def test_who_wrote_the_first_text_is_known_where_the_saver_knows(files: Files) -> None:
    files.save("note.md", b"one", VIM)
    files.save("note.md", b"two", AGENT, VIM, blind=True)
    [version] = histories.at(files.database.view, b"note.md")
    assert (version.writer, bool(version.blind)) == ("vim (100)", True)
    assert counts.counts(files.database.view).conflicts == 1


def test_an_equal_save_makes_no_version(files: Files) -> None:
    files.save("note.md", b"one")
    files.save("note.md", b"one", VIM)
    assert files.kept("note.md") == []
    files.save("note.md", b"two", VIM)
    files.save("note.md", b"two", AGENT)
    assert files.kept("note.md") == [b"one"]


def test_a_new_file_and_an_empty_one_are_no_versions(files: Files) -> None:
    files.save("note.md", b"one")
    files.save("note.md", b"", VIM)
    files.save("note.md", b"two", AGENT)
    assert files.kept("note.md") == [b"one"]


def test_of_a_burst_the_text_before_the_first_and_the_last_stay(files: Files) -> None:
    files.save("note.md", b"before")
    for number in range(9):
        files.save("note.md", b"burst %d" % number, VIM)
    assert files.kept("note.md") == [b"before", b"burst 0"]
    files.save("note.md", b"after", AGENT)
    assert files.kept("note.md") == [b"before", b"burst 0", b"burst 8"]


def test_a_burst_ends_after_a_minute(files: Files) -> None:
    files.save("note.md", b"before")
    files.save("note.md", b"a", VIM)
    files.save("note.md", b"b", VIM)
    files.save("note.md", b"c", VIM)
    files.now_ns += BURST_NS
    files.save("note.md", b"d", VIM)
    assert files.kept("note.md") == [b"before", b"a", b"c"]


def test_saves_of_two_processes_are_no_burst(files: Files) -> None:
    files.save("note.md", b"before")
    for number in range(4):
        files.save("note.md", b"%d" % number, (VIM, AGENT)[number % 2])
    assert files.kept("note.md") == [b"before", b"0", b"1", b"2"]


def test_a_line_added_to_a_large_file_keeps_no_bytes(files: Files) -> None:
    log = b"line\n" * CHUNK
    files.save("log.txt", log)
    for number in range(3):
        log += b"more %d\n" % number
        files.save("log.txt", log, (VIM, AGENT)[number % 2])
    assert stored(files) == 0
    first, second, third = files.kept("log.txt")
    assert (first, second, third) == (log[:-21], log[:-14], log[:-7])


def test_only_pieces_that_change_are_kept(files: Files) -> None:
    text = b"a" * CHUNK + b"b" * CHUNK + b"c" * CHUNK
    files.save("large", text)
    files.save("large", text[: CHUNK + 5] + b"!" + text[CHUNK + 6 :], VIM)
    assert stored(files) == CHUNK
    assert files.kept("large") == [text]


def test_what_a_burst_changes_is_kept_of_the_text_before_it(files: Files) -> None:
    """The burst itself makes no version, and changes a piece that the last version shares."""
    text = b"a" * CHUNK + b"b" * CHUNK
    files.save("large", text)
    files.save("large", b"A" + text[1:], VIM)
    files.save("large", b"B" + text[1:], VIM)
    files.save("large", b"B" + text[1:-1] + b"!", VIM)
    assert files.kept("large") == [text, b"A" + text[1:]]


def test_a_text_that_another_has_added_to_is_kept_though_a_burst_follows(files: Files) -> None:
    files.save("note.md", b"mine\n", AGENT)
    files.save("note.md", b"mine\nyours\n", VIM)
    files.save("note.md", b"other\n", VIM)
    files.save("note.md", b"another\n", VIM)
    assert files.kept("note.md") == [b"mine\n", b"mine\nyours\n"]


def test_versions_do_not_go_back_in_time_with_the_clock(files: Files) -> None:
    files.save("note.md", b"one")
    files.save("note.md", b"two", VIM)
    files.now_ns -= 3_600 * 10**9
    files.save("note.md", b"three", AGENT)
    first, second = histories.named(files.database.view, b"note.md")
    assert first < second
    assert files.kept("note.md") == [b"one", b"two"]


def test_a_version_is_called_by_the_time_it_was_replaced(files: Files) -> None:
    files.save("note.tar.gz", b"one")
    files.save("note.tar.gz", b"two", blind=True)
    files.save("Makefile", b"one")
    files.save("Makefile", b"two")
    view = files.database.view
    [name], [plain] = histories.named(view, b"note.tar.gz"), histories.named(view, b"Makefile")
    assert name.endswith(b"~conflict.gz")
    assert len(plain) == len("2026-11-29T14.03.22.123")


# Where a history goes on


def test_a_rename_and_a_move_keep_the_history_with_the_file(files: Files) -> None:
    files.save("note.md", b"one")
    files.save("note.md", b"two")
    files.mkdir("dir")
    files.rename("note.md", "dir/other.md")
    assert files.kept("dir/other.md") == [b"one"]
    files.rename("dir", "moved")
    assert files.kept("moved/other.md") == [b"one"]
    assert files.kept("note.md") == files.kept("dir/other.md") == []


def test_a_save_by_rename_keeps_the_history_with_the_name(files: Files) -> None:
    files.save("note.md", b"one")
    for text in (b"two", b"three"):
        files.save(".goutputstream-A1B2C3", text)
        files.rename(".goutputstream-A1B2C3", "note.md")
    assert files.kept("note.md") == [b"one", b"two"]


def test_a_burst_of_saves_by_rename_is_thinned_too(files: Files) -> None:
    files.save("note.md", b"before")
    for number in range(5):
        files.save("note.md.tmp", b"%d" % number, VIM)
        files.rename("note.md.tmp", "note.md", Replacing(VIM))
    assert files.kept("note.md") == [b"before", b"0"]
    files.save("note.md", b"after", AGENT)
    assert files.kept("note.md") == [b"before", b"0", b"4"]


def test_an_equal_file_renamed_over_makes_no_version(files: Files) -> None:
    files.save("note.md", b"one")
    files.save("note.md.tmp", b"one")
    files.rename("note.md.tmp", "note.md")
    assert files.kept("note.md") == []


def test_vims_dance_keeps_the_history_with_the_name(files: Files) -> None:
    files.save("note.md", b"one")
    for text in (b"two", b"three"):
        files.rename("note.md", "note.md~")
        files.save("note.md", text)
        files.remove("note.md~")
    assert files.kept("note.md") == [b"one", b"two"]
    assert files.kept("note.md~") == []


def test_vims_dance_without_a_change_makes_no_version(files: Files) -> None:
    files.save("note.md", b"one")
    files.rename("note.md", "note.md~")
    files.save("note.md", b"one")
    assert files.kept("note.md") == []


def test_a_backup_that_is_renamed_back_is_the_file_again(files: Files) -> None:
    files.save("note.md", b"zero")
    files.save("note.md", b"one")
    files.rename("note.md", "note.md~")
    assert files.kept("note.md") == [b"zero", b"one"]
    files.rename("note.md~", "note.md")
    assert files.kept("note.md") == [b"zero"]


def test_a_backup_over_the_backup_before_it(files: Files) -> None:
    files.save("note.md", b"one")
    for text in (b"two", b"three"):
        files.rename("note.md", "note.md~")
        files.save("note.md", text)
    assert files.kept("note.md") == [b"one", b"two"]


def test_a_file_moved_over_another_leaves_its_own_history_where_it_was(files: Files) -> None:
    for text in (b"a1", b"a2"):
        files.save("a", text)
    for text in (b"b1", b"b2"):
        files.save("b", text)
    files.rename("a", "b")
    assert files.kept("b") == [b"b1", b"b2"]
    assert files.kept("a") == [b"a1", b"a2"]
    assert content.read(files.database.view, files.number("b")) == b"a2"


def test_a_removed_file_keeps_its_last_text_and_goes_on_when_it_comes_back(files: Files) -> None:
    files.save("note.md", b"one")
    files.save("note.md", b"two")
    files.remove("note.md")
    assert files.kept("note.md") == [b"one", b"two"]
    files.save("note.md", b"three")
    files.save("note.md", b"four")
    assert files.kept("note.md") == [b"one", b"two", b"three"]
    assert len(histories.summaries(files.database.view)) == 1


def test_a_removed_directory_is_remembered_by_its_path(files: Files) -> None:
    files.mkdir("a")
    files.mkdir("a/b")
    files.save("a/b/note.md", b"one")
    files.save("a/b/empty", b"")
    files.remove("a/b/note.md")
    files.remove("a/b/empty")
    files.rmdir("a/b")
    files.rmdir("a")
    view = files.database.view
    assert files.kept("a/b/note.md") == [b"one"]
    assert files.kept("a/b/empty") == [b""]
    assert histories.directories(view) == {b"", b"a", b"a/b"}
    assert histories.names(view, b"a/b") == {b"note.md", b"empty"}
    files.mkdir("a")
    files.mkdir("a/b")
    files.save("a/b/note.md", b"two")
    files.save("a/b/note.md", b"three")
    assert files.kept("a/b/note.md") == [b"one", b"two"]


@pytest.mark.parametrize("name", ["note.md~", ".note.md.swp", "a.tmp", "#note.md#", ".#x"])
def test_what_is_passing_by_has_no_history(files: Files, name: str) -> None:
    files.save(name, b"one")
    files.save(name, b"two")
    files.remove(name)
    assert files.kept(name) == []
    assert histories.summaries(files.database.view) == []


def test_a_repository_keeps_its_own_history(files: Files) -> None:
    files.mkdir(".git")
    files.save(".git/index", b"one")
    files.save(".git/index", b"two")
    files.remove(".git/index")
    assert histories.summaries(files.database.view) == []


def test_a_file_with_two_names_has_one_history(files: Files) -> None:
    number = files.save("one", b"1")
    with files.database.txn() as txn:
        tree.link(txn, number, *files.place("two"), files.tick())
    files.save("two", b"2")
    assert files.kept("one") == files.kept("two") == [b"1"]
    files.remove("one")
    assert files.kept("two") == [b"1"]
    assert files.kept("one") == []


def test_a_save_by_swapping_keeps_the_history_with_the_name(files: Files) -> None:
    """As renameat2(2) with RENAME_EXCHANGE does, of which what is left over is then removed."""
    for number, text in enumerate((b"one", b"two", b"three")):
        files.save("note.md.tmp" if number else "note.md", text)
        if number:
            places = ("note.md.tmp", "note.md") if number == 1 else ("note.md", "note.md.tmp")
            files.swap(*places)
            files.remove("note.md.tmp")
    assert files.kept("note.md") == [b"one", b"two"]
    assert files.kept("note.md.tmp") == []


def test_of_two_files_that_are_swapped_each_keeps_its_history(files: Files) -> None:
    for name in ("one", "two"):
        files.save(name, name.encode())
        files.save(name, b"later")
    files.swap("one", "two")
    assert (files.kept("one"), files.kept("two")) == ([b"two"], [b"one"])


def test_what_was_swapped_to_a_backups_name_ends_when_the_next_comes(files: Files) -> None:
    files.save("note.md", b"one")
    files.link("note.md", "other.md")
    files.save("note.md", b"two")
    files.save("x~", b"none")
    files.swap("note.md", "x~")
    files.remove("other.md")
    files.save("y~", b"none")
    files.rename("y~", "x~")
    kept = [files.kept(path) for path in ("note.md", "other.md", "x~")]
    assert [b"one", b"two"] in kept


def test_backups_made_by_link_keep_the_history_with_the_name(files: Files) -> None:
    """As `rsync --backup` does."""
    files.save("note.md", b"one")
    for text in (b"two", b"three"):
        if files.is_there("note.md~"):
            files.remove("note.md~")
        files.link("note.md", "note.md~")
        files.save("note.md.tmp", text)
        files.rename("note.md.tmp", "note.md")
    assert files.kept("note.md") == [b"one", b"two"]
    assert files.kept("note.md~") == []


def test_a_file_that_is_left_as_a_backup_alone_is_kept(files: Files) -> None:
    files.save("note.md", b"one")
    files.link("note.md", "note.md~")
    files.remove("note.md")
    files.save("note.md", b"two")
    files.remove("note.md~")
    assert files.kept("note.md") == [b"one"]


def test_a_backup_over_one_that_was_made_by_link(files: Files) -> None:
    files.save("old.md", b"old")
    files.link("old.md", "note.md~")
    files.save("note.md", b"one")
    files.rename("note.md", "note.md~")
    files.save("note.md", b"two")
    files.remove("note.md~")
    assert files.kept("note.md") == [b"one"]


@pytest.mark.parametrize("exchange", [Exchange.REPLACE, Exchange.SWAP])
def test_a_backup_in_the_place_of_a_link(files: Files, exchange: Exchange) -> None:
    files.save("note.md", b"one")
    with files.database.txn() as txn:
        tree.create(txn, *files.place("note.md~"), tree.New(0o120777, 0, 0, target=b"x"), 1)
        places = files.place("note.md"), files.place("note.md~")
        tree.rename(txn, *places, exchange, files.tick())
    files.remove("note.md~")
    assert files.kept("note.md") == [b"one"]


def test_a_file_that_had_a_passing_name_first_has_a_history(files: Files) -> None:
    files.save("note.md.tmp", b"one")
    files.link("note.md.tmp", "note.md")
    files.save("note.md", b"two")
    files.remove("note.md")
    files.remove("note.md.tmp")
    assert files.kept("note.md") == [b"one", b"two"]


def test_labels_go_with_the_name(files: Files) -> None:
    number, label = files.save("note.md", b"one"), b"user.geniuz.label.channel"
    with files.database.txn() as txn:
        xattrs.put(txn, number, label, b"claude", files.tick())
        xattrs.put(txn, number, b"user.other", b"stays", files.tick())
    files.save("note.md.tmp", b"two")
    files.rename("note.md.tmp", "note.md")
    assert xattrs.names(files.database.view, files.number("note.md")) == [label]
    files.rename("note.md", "note.md~")
    files.save("note.md", b"three")
    assert xattrs.get(files.database.view, files.number("note.md"), label) == b"claude"


def test_labels_that_the_new_file_has_stay(files: Files) -> None:
    label = b"user.geniuz.label.channel"
    old, new = files.save("note.md", b"one"), files.save("new.md", b"two")
    with files.database.txn() as txn:
        xattrs.put(txn, old, label, b"old", files.tick())
        xattrs.put(txn, new, label, b"new", files.tick())
    files.rename("new.md", "note.md")
    assert xattrs.get(files.database.view, new, label) == b"new"


# For how long


def test_a_folder_without_history_keeps_nothing(files: Files) -> None:
    with files.database.txn() as txn:
        retention.keep(txn, 0, None)
    files.save("note.md", b"one")
    files.save("note.md", b"two")
    files.remove("note.md")
    assert files.kept("note.md") == []
