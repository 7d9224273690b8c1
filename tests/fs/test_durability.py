"""fsync tells the truth: to all who wait, whoever is cancelled, and after a failure for ever."""

import fcntl
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import pytest
import trio
import trio.testing

from geniuzfs.errors import Stale, StoreFault
from geniuzfs.fs.durability import Durability
from geniuzfs.model import ROOT
from geniuzfs.store import content
from geniuzfs.store.connection import Database


class Disk:
    """os.fdatasync that ends only when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = 0
        self._gates: defaultdict[int, trio.Event] = defaultdict(trio.Event)
        self._begins: defaultdict[int, trio.Event] = defaultdict(trio.Event)
        self._free = False
        self._sync = os.fdatasync
        self._token = trio.lowlevel.current_trio_token()
        monkeypatch.setattr(os, "fdatasync", self._fdatasync)

    async def begins(self, number: int) -> None:
        """Return once so many syncs have begun."""
        await self._begins[number].wait()

    def end(self, number: int) -> None:
        self._gates[number].set()

    def end_all(self) -> None:
        """Hold up no sync any more, so that a test that has failed can end."""
        self._free = True
        for gate in self._gates.values():
            gate.set()

    def _fdatasync(self, descriptor: int) -> None:
        # By the token: else the thread would hear of a cancellation of who waits for it.
        trio.from_thread.run(self._wait, trio_token=self._token)
        self._sync(descriptor)

    async def _wait(self) -> None:
        self.begun += 1
        number = self.begun
        self._begins[number].set()
        if not self._free:
            await self._gates[number].wait()


class Callers:
    """Tasks that sync, by name: `done`, or `failed` with StoreFault."""

    def __init__(self, nursery: trio.Nursery, durability: Durability) -> None:
        self._nursery = nursery
        self._durability = durability
        self._scopes: dict[str, trio.CancelScope] = {}
        self._over: dict[str, trio.Event] = {}
        self.done: set[str] = set()
        self.failed: set[str] = set()

    async def come(self, *names: str, cancelled: bool = False) -> None:
        """Each calls sync; return when all wait."""
        for name in names:
            self._scopes[name] = trio.CancelScope()
            self._over[name] = trio.Event()
            self._nursery.start_soon(self._sync, name)
            if cancelled:
                self._scopes[name].cancel()
        await trio.testing.wait_all_tasks_blocked()

    async def over(self, *names: str) -> None:
        """Return when none of these waits any more."""
        for name in names:
            await self._over[name].wait()

    def cancel(self, name: str) -> None:
        self._scopes[name].cancel()

    async def _sync(self, name: str) -> None:
        try:
            with self._scopes[name]:
                await self._durability.sync()
                self.done.add(name)
        except StoreFault:
            self.failed.add(name)
        self._over[name].set()


Scenario = Callable[[Disk, Callers], Awaitable[None]]


@pytest.fixture
def play(durability: Durability, monkeypatch: pytest.MonkeyPatch) -> Callable[[Scenario], None]:
    """Run a scenario with a disk that waits and callers that sync."""

    async def main(scenario: Scenario) -> None:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                disk = Disk(monkeypatch)
                try:
                    await scenario(disk, Callers(nursery, durability))
                finally:
                    disk.end_all()

    return lambda scenario: trio.run(main, scenario)


def descriptor_of_syncs(database: Database) -> int:
    """The only one on the write-ahead log that can't write; SQLite's can."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}") == str(database.wal_path):
                found.append(int(name))
        except FileNotFoundError:
            pass
    [ours] = [fd for fd in found if not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE]
    return ours


@contextmanager
def broken(database: Database) -> Iterator[None]:
    """Syncs fail: their descriptor is a pipe, which fdatasync(2) refuses."""
    descriptor = descriptor_of_syncs(database)
    kept, (read, write) = os.dup(descriptor), os.pipe()
    os.dup2(write, descriptor)
    try:
        yield
    finally:
        os.dup2(kept, descriptor)
        for each in (kept, read, write):
            os.close(each)


def test_a_sync_with_nothing_new_is_made_all_the_same(play: Callable[[Scenario], None]) -> None:
    async def scenario(disk: Disk, callers: Callers) -> None:
        for number, name in enumerate("abc", start=1):
            await callers.come(name)
            await disk.begins(number)
            assert name not in callers.done
            disk.end(number)
            await callers.over(name)
        assert callers.done == {"a", "b", "c"}

    play(scenario)


def test_callers_share_only_a_sync_that_begins_after_they_came(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(disk: Disk, callers: Callers) -> None:
        await callers.come("a")
        await disk.begins(1)
        await callers.come("b", "c")
        disk.end(1)
        await disk.begins(2)
        assert callers.done == {"a"}
        await callers.come("d")
        disk.end(2)
        await disk.begins(3)
        await callers.over("b", "c")
        assert callers.done == {"a", "b", "c"}
        disk.end(3)
        await callers.over("d")
        assert callers.done == {"a", "b", "c", "d"}
        assert disk.begun == 3

    play(scenario)


def test_a_failed_sync_fails_for_all_who_wait_and_for_ever(
    database: Database, play: Callable[[Scenario], None], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(disk: Disk, callers: Callers) -> None:
        await callers.come("a")
        await disk.begins(1)
        await callers.come("b", "c")
        with broken(database):
            disk.end(1)
            await callers.over("a", "b", "c")
        await callers.come("d")
        await callers.over("d")
        assert callers.failed == {"a", "b", "c", "d"}
        assert disk.begun == 1

    play(scenario)
    assert [record.getMessage() for record in caplog.records] == [
        "syncing the write-ahead log failed: [Errno 22] Invalid argument"
    ]


def test_a_failure_leaves_alone_what_was_synced_before(
    database: Database, play: Callable[[Scenario], None]
) -> None:
    async def scenario(disk: Disk, callers: Callers) -> None:
        await callers.come("a")
        await disk.begins(1)
        await callers.come("b")
        disk.end(1)
        await disk.begins(2)
        with broken(database):
            disk.end(2)
            await callers.over("a", "b")
        assert (callers.done, callers.failed) == ({"a"}, {"b"})

    play(scenario)


def test_a_waiter_that_is_cancelled_hurts_no_other(play: Callable[[Scenario], None]) -> None:
    async def scenario(disk: Disk, callers: Callers) -> None:
        await callers.come("a")
        await disk.begins(1)
        await callers.come("b", "c", "d")
        callers.cancel("c")
        await callers.over("c")
        disk.end(1)
        await disk.begins(2)
        disk.end(2)
        await callers.over("b", "d")
        assert callers.done == {"a", "b", "d"}
        assert disk.begun == 2

    play(scenario)


def test_a_sync_whose_caller_is_cancelled_still_counts_for_those_who_share_it(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(disk: Disk, callers: Callers) -> None:
        await callers.come("a")
        await disk.begins(1)
        await callers.come("b", "c")
        disk.end(1)
        await disk.begins(2)
        callers.cancel("b")
        callers.cancel("c")
        await callers.come("d")
        disk.end(2)
        await disk.begins(3)
        disk.end(3)
        await callers.over("b", "c", "d")
        assert "d" in callers.done
        assert disk.begun == 3

    play(scenario)


def test_a_caller_that_is_cancelled_before_its_sync_begins_spoils_nothing(
    play: Callable[[Scenario], None],
) -> None:
    async def scenario(disk: Disk, callers: Callers) -> None:
        await callers.come("a", cancelled=True)
        assert disk.begun == 0
        await callers.come("b")
        await disk.begins(1)
        assert callers.done == set()
        disk.end(1)
        await callers.over("b")
        assert callers.done == {"b"}

    play(scenario)


def test_an_end_waits_for_the_sync_that_runs_and_refuses_those_that_come_later(
    play: Callable[[Scenario], None], durability: Durability
) -> None:
    async def scenario(disk: Disk, callers: Callers) -> None:
        await callers.come("a")
        await disk.begins(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(durability.end, Stale("the folder is gone"))
            await trio.testing.wait_all_tasks_blocked()
            disk.end(1)
        await callers.over("a")
        assert callers.done == {"a"}
        for refused in (durability.sync(), durability.save(ROOT, content.Save(0, 0, 0, {}))):
            with pytest.raises(Stale):
                await refused

    play(scenario)
