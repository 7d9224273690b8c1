"""The write-ahead log stays short however much is saved, and large saves hold up nobody."""

import os
import resource
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import trio
import trio.testing

from geniuzfs.errors import Busy, StoreError
from geniuzfs.fs.durability import CHECKPOINT_PAGES, Durability
from geniuzfs.model import CHUNK, ROOT, InodeNumber
from geniuzfs.store import content, tree
from geniuzfs.store.connection import Database

PAGE = 4096


def put(database: Database, number: InodeNumber, body: bytes) -> None:
    with database.txn() as txn:
        content.save(txn, number, content.Save(len(body), 3, 3, {0: body}))


def large(pieces: int) -> content.Save:
    size = pieces * CHUNK
    return content.Save(size, 4, 4, {n: os.urandom(CHUNK) for n in range(pieces)})


class Saver:
    """Saves one file over and over as a mount does; notes how far the log has grown."""

    def __init__(self, database: Database, number: InodeNumber) -> None:
        self._database = database
        self._number = number
        self._count = 0
        self.slowest_seconds = 0.0
        self.most_pages = 0
        self.begun_anew = 0
        """How often the write-ahead log has been begun anew."""

    async def save(self) -> None:
        self._count += 1
        body = b"%08d" % self._count * 256
        begun, before = trio.current_time(), self._database.wal_pages
        while True:
            try:
                put(self._database, self._number, body)
                break
            except Busy:
                await trio.sleep(0.001)
        self.slowest_seconds = max(self.slowest_seconds, trio.current_time() - begun)
        self.most_pages = max(self.most_pages, self._database.wal_pages)
        self.begun_anew += self._database.wal_pages < before
        for _ in range(5):  # the requests that come with each save
            tree.child(self._database.view, ROOT, b"plan.md")
            content.piece(self._database.view, self._number, 0)
        await trio.lowlevel.checkpoint()


def run_beside_checkpoints(durability: Durability, function: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(durability.checkpoints)
                await function()
                nursery.cancel_scope.cancel()

    trio.run(main)


def test_the_log_is_begun_anew_under_constant_saving(
    database: Database, durability: Durability, file: InodeNumber
) -> None:
    saver = Saver(database, file)

    async def main() -> None:
        while saver.begun_anew < 4:
            await saver.save()

    run_beside_checkpoints(durability, main)
    # About 5,000 pages: what is saved while a checkpoint copies comes on top.
    assert saver.most_pages < 10 * CHECKPOINT_PAGES
    assert database.wal_path.stat().st_size < 11 * CHECKPOINT_PAGES * PAGE


def test_a_saver_that_never_pauses_lets_the_log_begin_anew(
    database: Database, durability: Durability, file: InodeNumber
) -> None:
    """It takes the lock again before a checkpoint that polls for it looks once more."""
    most = anew = 0

    async def main() -> None:
        nonlocal most, anew
        count = 0
        while anew < 12:
            before = database.wal_pages
            try:
                put(database, file, b"%08d" % count * 1024)
            except Busy:
                await trio.sleep(0.001)
                continue
            count += 1
            most, anew = max(most, database.wal_pages), anew + (database.wal_pages < before)
            await trio.lowlevel.checkpoint()

    run_beside_checkpoints(durability, main)
    assert most < 10 * CHECKPOINT_PAGES  # 1.3 times; without holding the saver 7 and more


def test_nobody_here_saves_while_a_checkpoint_holds_the_savers(
    database: Database, durability: Durability, file: InodeNumber
) -> None:
    """Seen from the loop: held is set for as long as the second pass takes, and not longer."""
    held: list[bool] = []

    async def main() -> None:
        while True not in held or held[-1]:
            held.append(database.held)
            if database.held:
                with pytest.raises(Busy):
                    put(database, file, b"refused")
            else:
                with suppress(Busy):  # old changes are pruned, after the first checkpoint
                    put(database, file, os.urandom(CHUNK))
            await trio.lowlevel.checkpoint()

    run_beside_checkpoints(durability, main)


def test_a_reader_of_an_old_state_holds_up_no_saver(
    database: Database, durability: Durability, file: InodeNumber
) -> None:
    saver, reader = Saver(database, file), Database.open(database.path)

    async def main() -> None:
        with reader.snapshot() as view:
            before = content.read(view, file)
            while database.wal_pages < 4 * CHECKPOINT_PAGES:
                await saver.save()
            assert content.read(view, file) == before
        assert saver.begun_anew == 0
        while not saver.begun_anew:
            await saver.save()

    try:
        run_beside_checkpoints(durability, main)
    finally:
        reader.close()
    assert saver.slowest_seconds < 0.3  # 0.1, where a checkpoint waits for the reader


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Writing beyond `size` fails (EFBIG), in every file of this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_checkpoint_that_fails_is_told_once_and_not_tried_at_every_commit(
    database: Database, file: InodeNumber, caplog: pytest.LogCaptureFixture
) -> None:
    limit = 2 * CHECKPOINT_PAGES * PAGE
    with database.txn() as txn:
        content.save(txn, file, large(limit // CHUNK + 1))
        other = tree.create(txn, ROOT, b"other", tree.New(0o100644, 0, 0), 2).number
    database.checkpoint(hold_writers=True)
    assert database.path.stat().st_size > limit
    saver = Saver(database, other)  # its pages come where the database may not be written
    durability = Durability(database)

    async def main() -> None:
        while not 1.5 * CHECKPOINT_PAGES < database.wal_pages < 1.9 * CHECKPOINT_PAGES:
            await saver.save()

    try:
        with files_of_at_most(limit):
            run_beside_checkpoints(durability, main)
    finally:
        durability.close()
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith("a checkpoint failed, the write-ahead log keeps growing")


def test_a_database_that_was_moved_away_ends_no_mount(
    database: Database,
    durability: Durability,
    file: InodeNumber,
    caplog: pytest.LogCaptureFixture,
) -> None:
    saver, away = Saver(database, file), database.path.with_name("away.db")

    async def main() -> None:
        while database.wal_pages < 1.5 * CHECKPOINT_PAGES:
            await saver.save()

    database.path.rename(away)
    try:
        run_beside_checkpoints(durability, main)
    finally:
        away.rename(database.path)
    assert caplog.records == []  # fs.following looks for where it is now


# Large saves


def test_a_large_save_is_seen_and_is_no_news_to_the_mount(
    database: Database, durability: Durability, file: InodeNumber
) -> None:
    database.news()
    new = large(20)
    trio.run(durability.save, file, new)
    assert content.read(database.view, file) == b"".join(new.pieces[n] for n in range(20))
    assert tree.inode(database.view, file) is not None
    own = durability.take_own_changes()
    news = database.news()
    assert news
    assert {change.seq for change in news} == {seq for seqs in own for seq in seqs}
    assert durability.take_own_changes() == []
    assert database.news() == []


def test_a_large_save_waits_for_a_foreign_lock_and_holds_up_nobody(
    database: Database, durability: Durability, file: InodeNumber
) -> None:
    other = Database.open(database.path)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            with other.txn() as txn:
                nursery.start_soon(durability.save, file, large(20))
                tree.create(txn, ROOT, b"theirs", tree.New(0o100644, 0, 0), 5)
                await trio.testing.wait_all_tasks_blocked(0.02)
                assert content.read(database.view, file) == b""
        assert len(content.read(database.view, file)) == 20 * CHUNK
        assert tree.child(database.view, ROOT, b"theirs") is not None

    try:
        trio.run(main)
    finally:
        other.close()


def test_a_large_save_that_fails_is_undone_and_reported(
    database: Database, durability: Durability, file: InodeNumber
) -> None:
    put(database, file, b"old")
    with files_of_at_most(10 * CHUNK), pytest.raises(StoreError):
        trio.run(durability.save, file, large(20))
    assert content.read(database.view, file) == b"old"
    assert durability.take_own_changes() == []
    trio.run(durability.save, file, large(20))
    assert len(content.read(database.view, file)) == 20 * CHUNK


def test_a_large_save_starts_a_checkpoint_where_the_log_has_grown(
    database: Database, durability: Durability, file: InodeNumber
) -> None:
    async def main() -> None:
        before = database.path.stat().st_size
        await durability.save(file, large(CHECKPOINT_PAGES * PAGE // CHUNK))
        # Nothing tells of a checkpoint.
        while database.path.stat().st_size - before < CHECKPOINT_PAGES * PAGE:  # noqa: ASYNC110
            await trio.sleep(0.001)

    run_beside_checkpoints(durability, main)
