"""What a request is answered when its handler raises."""

import errno
import itertools
import logging
import os
from collections.abc import Awaitable, Callable, Iterable

import pyfuse3
import pytest
import trio
import trio.testing

from geniuzfs.errors import Busy, DirectoryNotEmpty, GeniuzError, NotFound, Stale, StoreFull
from geniuzfs.fs.faults import BUSY_SECONDS, handler, is_news

Request = Callable[[], Awaitable[str]]


def run(function: Callable[[], Awaitable[None]]) -> None:
    """Run on a clock that jumps ahead whenever everybody waits."""
    trio.run(function, clock=trio.testing.MockClock(autojump_threshold=0))


def raising(errors: Iterable[Exception]) -> Request:
    """A handler that raises these, one a call, and then answers."""
    coming = iter(errors)

    @handler
    async def rename() -> str:
        for error in coming:
            raise error
        return "answer"

    return rename


async def refused(request: Request) -> int:
    """The errno that the kernel is told."""
    with pytest.raises(pyfuse3.FUSEError) as raised:
        await request()
    return raised.value.errno


def busy(times: int) -> list[Exception]:
    return [Busy("locked") for _ in range(times)]


def test_an_answer_passes_and_so_do_its_arguments() -> None:
    @handler
    async def lookup(inode: int, *, name: bytes) -> tuple[int, bytes]:
        return inode, name

    async def main() -> None:
        assert await lookup(7, name=b"plan.md") == (7, b"plan.md")

    run(main)


@pytest.mark.parametrize("times", [0, 3], ids=["at once", "after Busy"])
def test_a_fuse_error_passes_unchanged(times: int, caplog: pytest.LogCaptureFixture) -> None:
    error = pyfuse3.FUSEError(errno.ENODATA)

    async def main() -> None:
        with pytest.raises(pyfuse3.FUSEError) as raised:
            await raising([*busy(times), error])()
        assert raised.value is error

    run(main)
    assert caplog.records == []


@pytest.mark.parametrize("times", [0, 3], ids=["at once", "after Busy"])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (NotFound("gone"), errno.ENOENT),
        (DirectoryNotEmpty("full"), errno.ENOTEMPTY),
        (Stale("gone"), errno.ESTALE),
        (StoreFull("full"), errno.ENOSPC),
        (GeniuzError("no"), errno.EIO),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_of_ours_becomes_its_errno(
    error: GeniuzError, expected: int, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        assert await refused(raising([*busy(times), error])) == expected

    run(main)
    assert caplog.records == []


@pytest.mark.parametrize("times", [0, 3], ids=["at once", "after Busy"])
@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("oops"),
        OSError(errno.ENOENT, "not of the file system"),
        ExceptionGroup("two", [ValueError("oops"), KeyError("oops")]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_anything_unforeseen_is_logged_and_eio(
    error: Exception, times: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        assert await refused(raising([*busy(times), error])) == errno.EIO

    run(main)
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "rename failed"
    assert record.exc_info is not None
    assert record.exc_info[1] is error


def test_a_busy_request_is_run_again_until_it_works(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        begun = trio.current_time()
        assert await raising(busy(100))() == "answer"
        assert 1 < trio.current_time() - begun < 3

    run(main)
    assert caplog.records == []


def test_a_busy_request_holds_up_no_other() -> None:
    async def main() -> None:
        waiting = True

        async def wait() -> None:
            nonlocal waiting
            await raising(busy(100))()
            waiting = False

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
            assert await raising([])() == "answer"
            assert waiting

    run(main)


def test_a_request_that_stays_busy_is_ebusy_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        begun = trio.current_time()
        forever = (Busy("locked") for _ in itertools.count())
        assert await refused(raising(forever)) == errno.EBUSY
        assert BUSY_SECONDS <= trio.current_time() - begun < BUSY_SECONDS + 0.1

    run(main)
    assert [record.getMessage() for record in caplog.records] == [
        "rename: another process has held the write lock for too long"
    ]


class Host:
    """What the handlers are methods of: `room` is what making room comes to."""

    def __init__(self, errors: Iterable[Exception], room: bool | Exception) -> None:
        self._coming = iter(errors)
        self._room = room
        self.asked = 0

    async def make_room(self) -> bool:
        self.asked += 1
        if isinstance(self._room, Exception):
            raise self._room
        return self._room

    @handler
    async def flush(self) -> str:
        for error in self._coming:
            raise error
        return "answer"


def test_a_request_that_found_the_disk_full_is_run_again_once_there_is_room() -> None:
    async def main() -> None:
        host = Host([StoreFull("full"), Busy("locked")], room=True)
        assert await host.flush() == "answer"
        assert host.asked == 1

    run(main)


def test_room_is_made_once_a_request() -> None:
    async def main() -> None:
        host = Host([StoreFull("full"), StoreFull("full again")], room=True)
        assert await refused(host.flush) == errno.ENOSPC
        assert host.asked == 1

    run(main)


def test_a_full_disk_is_enospc_where_no_room_can_be_made(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        assert await refused(Host([StoreFull("full")], room=False).flush) == errno.ENOSPC
        assert caplog.records == []
        assert await refused(Host([StoreFull("full")], room=ValueError()).flush) == errno.ENOSPC

    run(main)
    assert [record.getMessage() for record in caplog.records] == ["making room failed"]


@pytest.mark.parametrize(
    ("message", "argument", "expected"),
    [
        ("fuse_write(): fuse_reply_* failed with %s", os.strerror(errno.ENOENT), False),
        ("fuse_write(): fuse_reply_* failed with %s", os.strerror(errno.EINVAL), True),
        ("something else: %s", os.strerror(errno.ENOENT), True),
    ],
)
def test_an_answer_that_nobody_waits_for_any_more_is_no_news(
    message: str, argument: str, expected: bool
) -> None:
    record = logging.LogRecord("pyfuse3", logging.ERROR, "", 0, message, (argument,), None)
    assert is_news(record) == expected


@pytest.mark.parametrize("times", [0, 1], ids=["at once", "after Busy"])
def test_cancellation_passes(times: int, caplog: pytest.LogCaptureFixture) -> None:
    failures = iter(busy(times))

    @handler
    async def read() -> None:
        for error in failures:
            raise error
        await trio.sleep_forever()

    async def main() -> None:
        with trio.move_on_after(5) as scope:
            await read()
        assert scope.cancelled_caught

    run(main)
    assert caplog.records == []


def test_cancellation_ends_the_wait_for_a_lock() -> None:
    async def main() -> None:
        begun = trio.current_time()
        with trio.move_on_after(5) as scope:
            await raising(Busy("locked") for _ in itertools.count())()
        assert scope.cancelled_caught
        assert trio.current_time() - begun < BUSY_SECONDS

    run(main)
