"""A mount has what is kept no longer go, by the clock it was given."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from geniuzfs.fs.retention import expire_versions
from geniuzfs.fs.volumes import Volume, Volumes
from geniuzfs.model import FolderId
from geniuzfs.store import check, retention, tree
from geniuzfs.store.connection import Database
from tests.store.files import DAY, Files


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    database = Database.open(tmp_path / "memory.db", create=True, wait=0)
    with database.txn() as txn:
        tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
    made = Volume(b"My memory", 0, database, FolderId("A"))
    try:
        yield made
        with database.snapshot() as view:
            assert list(check.problems(view)) == []
    finally:
        made.close()


def test_versions_go_when_their_time_is_up(volume: Volume) -> None:
    files, volumes = Files(volume.database), Volumes()
    volumes.show(volume)
    files.save("note.md", b"one")
    files.save("note.md", b"two")
    files.save("gone.md", b"gone")
    files.remove("gone.md")
    clock = trio.testing.MockClock()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(expire_versions, volumes, lambda: files.now_ns)
            await trio.testing.wait_all_tasks_blocked()
            clock.jump(retention.CHECK_SECONDS)
            await until_idle()
            assert files.kept("note.md") == [b"one"]
            files.now_ns += 31 * DAY
            clock.jump(retention.CHECK_SECONDS)
            await until_idle()
            assert files.kept("note.md") == files.kept("gone.md") == []
            nursery.cancel_scope.cancel()

    async def until_idle() -> None:
        """Threads are no tasks: wait for the connection that they have in turn."""
        for _ in range(3):
            await trio.testing.wait_all_tasks_blocked()
            await volume.durability.change(lambda _txn: None)

    trio.run(main, clock=clock)
