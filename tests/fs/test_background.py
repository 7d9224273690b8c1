"""Files that grow and stay open are saved in time, and all that is unsaved when the mount ends."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio
import trio.testing

from geniuzfs.errors import Busy
from geniuzfs.fs.background import KEEP_SECONDS, save_all, save_growing
from geniuzfs.fs.files import Files
from geniuzfs.fs.inodes import Node, Nodes
from geniuzfs.fs.volumes import Volume
from geniuzfs.model import ROOT, FolderId, Writer
from geniuzfs.processes import Process
from geniuzfs.store import check, content, tree, versions
from geniuzfs.store.connection import Database


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    """As a mount has it: nothing on the loop waits for a lock."""
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


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


@pytest.fixture
def files(nodes: Nodes) -> Files:
    return Files(nodes, now_ns=lambda: 5, content_limit=1 << 20)


@pytest.fixture
def opened(volume: Volume, nodes: Nodes, files: Files) -> Callable[[bytes], Node]:
    """Make a file of some bytes and open it."""

    def make(name: bytes) -> Node:
        with volume.database.txn() as txn:
            inode = tree.create(txn, ROOT, name, tree.New(0o100644, 0, 0), 2)
            content.save(txn, inode.number, content.Save(4, 3, 3, {0: b"old\n"}))
        found = tree.inode(volume.view, inode.number)
        assert found is not None
        nodes.remember(volume, found)
        node = nodes[volume.base | inode.number]
        files.open(node)
        return node

    return make


@pytest.fixture
def other(volume: Volume) -> Iterator[Database]:
    """The database as another process has it open."""
    database = Database.open(volume.database.path)
    yield database
    database.close()


def saved(node: Node) -> bytes:
    return content.read(node.volume.view, node.number)


def run(function: Callable[[], Awaitable[None]]) -> None:
    """Run on a clock that jumps ahead whenever everybody waits."""
    trio.run(function, clock=trio.testing.MockClock(autojump_threshold=0))


def run_beside_save_growing(files: Files, function: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(save_growing, files)
            await trio.testing.wait_all_tasks_blocked()
            await function()
            nursery.cancel_scope.cancel()

    run(main)


def test_a_file_that_grows_and_stays_open_is_saved_after_a_while(
    files: Files, opened: Callable[[bytes], Node]
) -> None:
    node = opened(b"log")

    async def main() -> None:
        expected = b"old\n"
        for line in (b"one\n", b"two\n", b"three\n"):
            files.write(node, len(expected), line)
            await trio.sleep(KEEP_SECONDS - 1)
            assert saved(node) == expected
            await trio.sleep(2)
            expected += line
            assert saved(node) == expected
            assert files.unsaved == {}

    run_beside_save_growing(files, main)


def test_a_file_that_grows_without_end_is_never_far_behind(
    files: Files, opened: Callable[[bytes], Node]
) -> None:
    node = opened(b"log")

    async def main() -> None:
        size, written = 4, {0.0: 4}
        for _ in range(int(5 * KEEP_SECONDS)):
            size += files.write(node, size, b"one more\n")
            written[trio.current_time()] = size
            await trio.sleep(1)
            old = trio.current_time() - 2 * KEEP_SECONDS
            must = max((size for time, size in written.items() if time <= old), default=0)
            assert len(saved(node)) >= must

    run_beside_save_growing(files, main)


@pytest.mark.parametrize("how", ["cut", "overwritten", "cut to nothing and written anew"])
def test_a_file_that_was_not_only_added_to_waits_for_its_writer(
    how: str, files: Files, opened: Callable[[bytes], Node]
) -> None:
    node, log = opened(b"plan.md"), opened(b"log")

    async def main() -> None:
        match how:
            case "cut":
                files.truncate(node, 2)
            case "overwritten":
                files.write(node, 0, b"new\n")
            case _:
                files.truncate(node, 0)
                files.write(node, 0, b"new text\n")
        files.write(log, 4, b"one\n")
        await trio.sleep(5 * KEEP_SECONDS)
        assert saved(node) == b"old\n"
        assert saved(log) == b"old\none\n"
        await files.save(node)
        assert saved(node) != b"old\n"
        files.write(node, node.buffer.size if node.buffer else 0, b"end\n")
        await trio.sleep(2 * KEEP_SECONDS)
        assert saved(node).endswith(b"end\n")

    run_beside_save_growing(files, main)


def test_a_file_that_could_not_be_saved_is_saved_later(
    files: Files,
    opened: Callable[[bytes], Node],
    other: Database,
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = opened(b"log")

    async def main() -> None:
        files.write(node, 4, b"one\n")
        with other.txn():
            await trio.sleep(KEEP_SECONDS + 1)
        assert saved(node) == b"old\n"
        await trio.sleep(KEEP_SECONDS)
        assert saved(node) == b"old\none\n"

    run_beside_save_growing(files, main)
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith("a growing file could not be saved yet")


def test_wait_unsaved_wakes_at_the_first_write_and_not_before(
    files: Files, opened: Callable[[bytes], Node]
) -> None:
    node = opened(b"log")

    async def main() -> None:
        with trio.move_on_after(1000) as scope:
            await files.wait_unsaved()
        assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:
            nursery.start_soon(files.wait_unsaved)
            await trio.testing.wait_all_tasks_blocked()
            files.write(node, 4, b"one\n")
        with trio.fail_after(1):
            await files.wait_unsaved()
        await files.save(node)
        with trio.move_on_after(1000) as scope:
            await files.wait_unsaved()
        assert scope.cancelled_caught

    run(main)


def test_save_all_saves_whatever_is_unsaved(files: Files, opened: Callable[[bytes], Node]) -> None:
    grown, cut, untouched = opened(b"grown"), opened(b"cut"), opened(b"untouched")

    async def main() -> None:
        files.write(grown, 4, b"one\n")
        files.truncate(cut, 2)
        await save_all(files)
        assert files.unsaved == {}
        assert [saved(node) for node in (grown, cut, untouched)] == [b"old\none\n", b"ol", b"old\n"]

    run(main)


def test_save_all_waits_for_another_process_to_give_up_the_lock(
    files: Files, opened: Callable[[bytes], Node], other: Database
) -> None:
    node = opened(b"log")

    async def main() -> None:
        files.write(node, 4, b"one\n")
        async with trio.open_nursery() as nursery:
            with other.txn():
                nursery.start_soon(save_all, files)
                await trio.sleep(5)
                assert saved(node) == b"old\n"
        assert saved(node) == b"old\none\n"

    run(main)


def test_save_all_gives_up_in_time_and_says_what_it_could_not_save(
    files: Files,
    opened: Callable[[bytes], Node],
    other: Database,
    caplog: pytest.LogCaptureFixture,
) -> None:
    some = [opened(b"log-%d" % number) for number in range(5)]

    async def main() -> None:
        for node in some:
            files.write(node, 4, b"one\n")
        begun = trio.current_time()
        with other.txn():
            await save_all(files)
        assert trio.current_time() - begun < 15

    run(main)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 5
    assert all("could not be saved at the end" in message for message in messages)
    assert all(saved(node) == b"old\n" for node in some)


def test_a_text_of_two_is_nobodys_alone_when_it_could_not_be_saved_at_first(
    files: Files, opened: Callable[[bytes], Node], other: Database
) -> None:
    node, view = opened(b"plan"), other.view
    one, two = (Process(Writer(name, pid, 1), ()) for name, pid in (("vim", 10), ("agent", 11)))

    async def write(offset: int, data: bytes, by: Process) -> None:
        await files.make_way(node, offset, offset + len(data), by)
        files.write(node, offset, data, by)

    async def main() -> None:
        for text in (b"A\n", b"B\n"):
            await write(0, text, two)
            await files.save(node)
        await write(4, b"of one\n", one)
        await write(11, b"of two\n", two)
        with other.txn(), pytest.raises(Busy):
            await files.save(node)
        await files.save(node)
        for text in (b"C\n", b"D\n"):
            await write(4, text, two)
            await files.save(node)
        lineage = versions.lineage_of(view, node.number)
        assert lineage is not None
        kept = [b"".join(versions.read(view, one)) for one in versions.of(view, lineage)]
        assert b"B\nd\nof one\nof two\n" in kept

    run(main)
