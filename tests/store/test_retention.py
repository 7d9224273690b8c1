"""What is kept goes when its time is up, the oldest first, and takes nothing else along."""

import pytest

from geniuzfs.errors import UsageError
from geniuzfs.model import CHUNK, Writer
from geniuzfs.store import content, counts, forgetting, histories, meta, retention
from geniuzfs.store.connection import Database
from geniuzfs.store.retention import ROW_BYTES
from tests.store.files import DAY, Files


@pytest.fixture
def files(database: Database) -> Files:
    return Files(database)


def expire(files: Files) -> int:
    """Until nothing more goes; the number of transactions."""
    count, more = 0, True
    while more:
        with files.database.txn() as txn:
            more = retention.expire(txn, files.now_ns)
        count += 1
    return count


def keep(files: Files, days: float | None = None, bytes_: int | None = None) -> retention.Kept:
    with files.database.txn() as txn:
        return retention.keep(txn, days, bytes_)


def test_after_thirty_days_a_version_goes(files: Files) -> None:
    for text in (b"one", b"two", b"three"):
        files.save("note.md", text)
        files.now_ns += 20 * DAY
    files.save("note.md", b"four")
    assert files.kept("note.md") == [b"one", b"two", b"three"]
    expire(files)
    assert files.kept("note.md") == [b"two", b"three"]
    files.now_ns += 31 * DAY
    expire(files)
    assert files.kept("note.md") == []
    assert content.read(files.database.view, files.number("note.md")) == b"four"


def test_a_removed_file_is_forgotten_as_late(files: Files) -> None:
    files.save("note.md", b"one")
    files.remove("note.md")
    files.now_ns += 29 * DAY
    expire(files)
    assert files.kept("note.md") == [b"one"]
    files.now_ns += 2 * DAY
    expire(files)
    assert histories.summaries(files.database.view) == []
    assert files.database.view.row("SELECT count(*) FROM lineages") == (0,)


def test_a_folder_keeps_for_as_long_as_it_says(files: Files) -> None:
    assert keep(files, 2).days == 2
    assert keep(files, bytes_=7) == (2, 7)
    assert retention.kept(files.database.view) == (2, 7)
    with pytest.raises(UsageError):
        keep(files, -1)
    assert retention.kept(files.database.view) == (2, 7)


def test_what_is_no_number_is_not_said(files: Files) -> None:
    with files.database.txn() as txn:
        meta.put(txn, "history_days", "soon")
        meta.put(txn, "history_bytes", "nan")
    assert retention.kept(files.database.view) == (retention.DAYS, None)


def test_the_oldest_go_first_when_it_is_too_much(files: Files) -> None:
    for number in range(10):
        files.save(f"{number % 2}", b"%d" % number * CHUNK)
    keep(files, bytes_=3 * (CHUNK + ROW_BYTES))
    expire(files)
    assert [text[:1] for text in files.kept("0")] == [b"6"]
    assert [text[:1] for text in files.kept("1")] == [b"5", b"7"]
    assert counts.counts(files.database.view).version_bytes == 3 * CHUNK


def test_much_goes_in_small_transactions(files: Files) -> None:
    for number in range(200):
        files.save("note.md", b"%d" % number)
    files.now_ns += 31 * DAY
    assert expire(files) >= 200 // retention.AT_ONCE
    assert files.kept("note.md") == []


def test_turned_off_nothing_is_left(files: Files) -> None:
    files.save("note.md", b"one")
    files.save("note.md", b"two")
    files.save("other.md", b"one")
    files.remove("other.md")
    keep(files, 0)
    expire(files)
    assert files.database.view.row("SELECT count(*) FROM lineages") == (0,)
    assert files.database.view.row("SELECT count(*) FROM version_pieces") == (0,)
    keep(files, 30)
    files.save("note.md", b"three")
    assert files.kept("note.md") == [b"two"]


def test_what_is_left_reads_as_before(files: Files) -> None:
    """The pieces of the oldest are taken from those after it, never the other way round."""
    text = b"a" * CHUNK + b"b" * CHUNK
    for byte in (b"1", b"2", b"3"):
        files.save("large", byte + text[1:])
        files.now_ns += 16 * DAY
    files.save("large", b"4" + text[1:-1])
    before = files.kept("large")
    expire(files)
    assert files.kept("large") == before[1:]


def test_erase_takes_every_version_and_nothing_else(files: Files) -> None:
    files.mkdir("dir")
    for path in ("note.md", "dir/a", "dir/b"):
        files.save(path, b"one")
        files.save(path, b"two")
    files.remove("dir/b")
    with files.database.txn() as txn:
        (ended,) = histories.ended(txn, b"dir/")
        assert histories.ended(txn, b"dir/b/") == histories.ended(txn, b"") == [ended]
        assert histories.ended(txn, b"note.md/") == histories.ended(txn, b"dir/a/") == []
        retention.erase(txn, ended)
    assert files.kept("dir/b") == []
    assert (files.kept("dir/a"), files.kept("note.md")) == ([b"one"], [b"one"])
    with files.database.txn() as txn:
        retention.erase_of(txn, [files.number("dir/a"), files.number("note.md")])
    assert files.database.view.row("SELECT count(*) FROM version_pieces") == (0,)


def test_on_a_full_disk_the_oldest_go_however_young_they_are(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "SHED_LEAST", 2 * CHUNK)
    monkeypatch.setattr(retention, "AT_ONCE", 1)
    for number in range(10):
        files.save("note.md", b"%d" % number * CHUNK)
    view = files.database.view
    most = retention.to_shed(view)
    assert most == retention.held_bytes(view) // 2
    gone = 0
    while gone < most:
        with files.database.txn() as txn:
            gone += retention.shed(txn)
    assert [text[:1] for text in files.kept("note.md")] == [b"5", b"6", b"7", b"8"]


def test_history_does_not_grow_beyond_what_is_replaced(files: Files) -> None:
    """A text of 2 KiB that is saved 500 times by two programs in turn, and a log of 500 lines."""
    log = b""
    for number in range(500):
        files.save("note.md", b"%04d" % number * 512, Writer("p", 1 + number % 2, 1))
        log += b"line %04d\n" % number
        files.save("log.txt", log, Writer("p", 1 + number % 2, 1))
    counted = counts.counts(files.database.view)
    assert counted.versions == 998
    assert counted.version_bytes == 499 * 2048
    files.database.checkpoint(hold_writers=True)
    assert files.database.path.stat().st_size < 4_000_000


def test_what_is_forgotten_has_no_history(files: Files) -> None:
    files.mkdir("dir")
    for path in ("dir/there", "dir/gone", "other"):
        files.save(path, b"secret one")
        files.save(path, b"secret two")
    files.remove("dir/gone")
    with files.database.txn() as txn:
        forgetting.files(txn, forgetting.beneath(txn, b"dir"), files.now_ns)
        txn.run("DELETE FROM _meta WHERE key = 'forgetting'")
    assert [one.path for one in histories.summaries(files.database.view)] == [b"other"]
    assert files.database.view.row("SELECT count(*) FROM version_pieces") == (1,)
