"""fsync returns only after the log is on the disk, and never claims what the disk refused."""

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.tracing import FSYNC, FSYNCDIR, Call, Request, Trace, requests
from tests.daemon import Daemon

CLIENTS, ROUNDS = 8, 15


class Log:
    """The calls of a trace that matter here."""

    def __init__(self, calls: list[Call]) -> None:
        wal = [call for call in calls if call.path.endswith("/memory.db-wal")]
        self.writes = [call for call in wal if call.name == "pwrite64"]
        self.syncs = [call for call in wal if call.name == "fdatasync"]
        self.fsyncs = requests(calls, FSYNC)
        self.fsyncdirs = requests(calls, FSYNCDIR)
        self._fuse = [call for call in calls if call.path == "/dev/fuse"]

    def commit_of(self, request: Request) -> list[Call]:
        """The writes that saving for `request` took: its handler's, until it waits."""
        came, thread = request.came.ended, request.came.thread
        next_ = (call.began for call in self._fuse if call.began > came and call.thread == thread)
        until = next(next_)
        return [call for call in self.writes if call.thread == thread and came < call.began < until]

    def syncs_for(self, request: Request) -> list[Call]:
        """The syncs that make `request`'s answer true: begun after all that was written before
        it and for it, and over before the answer.
        """
        came = request.came.began
        written = [call.ended for call in self.writes if call.ended < came]
        written += [call.ended for call in self.commit_of(request)]
        return [
            call
            for call in self.syncs
            if call.result == 0
            and call.began > max(written, default=0)
            and call.ended < request.reply.began
        ]


def traced(mount: Daemon, directory: Path, work: Callable[[], None]) -> Log:
    assert mount.process is not None
    with Trace(directory, mount.process.pid) as trace:
        work()
    return Log(trace.calls())


def sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def test_the_commit_then_the_sync_then_the_answer(mount: Daemon, tmp_path: Path) -> None:
    def work() -> None:
        with open(mount.root / "note", "wb", buffering=0) as file:
            file.write(b"text" * 1000)
            os.fsync(file.fileno())

    log = traced(mount, tmp_path, work)
    (request,) = log.fsyncs
    assert request.error == 0
    assert log.commit_of(request), "the save is in the trace"
    assert log.syncs_for(request)


def test_a_large_save_in_a_thread_is_synced_before_the_answer(
    mount: Daemon, tmp_path: Path
) -> None:
    def work() -> None:
        with open(mount.root / "note", "wb", buffering=0) as file:
            file.write(b"text" * 750_000)
            os.fsync(file.fileno())

    log = traced(mount, tmp_path, work)
    (request,) = log.fsyncs
    assert request.error == 0
    writes = [call for call in log.writes if call.began > request.came.ended]
    writes = [call for call in writes if call.ended < request.reply.began]
    assert any(call.thread != request.came.thread for call in writes), "a thread saved"
    syncs = log.syncs
    assert any(call.began > writes[-1].ended and call.ended < request.reply.began for call in syncs)


@pytest.mark.parametrize("sync", [os.fsync, os.fdatasync])
def test_a_second_sync_with_nothing_new_is_a_sync_too(
    mount: Daemon, tmp_path: Path, sync: Callable[[int], None]
) -> None:
    def work() -> None:
        with open(mount.root / "note", "wb", buffering=0) as file:
            file.write(b"text")
            sync(file.fileno())
            sync(file.fileno())

    log = traced(mount, tmp_path, work)
    first, second = log.fsyncs
    assert (first.error, second.error) == (0, 0)
    assert not log.commit_of(second)
    assert [call for call in log.syncs_for(second) if call.began > second.came.ended]


def test_bytes_that_a_close_has_saved_are_synced_by_a_later_fsync(
    mount: Daemon, tmp_path: Path
) -> None:
    (mount.root / "note").write_bytes(b"text")

    log = traced(mount, tmp_path, lambda: sync_directory(mount.root / "note"))
    (request,) = log.fsyncs
    assert request.error == 0
    assert not log.commit_of(request)
    assert [call for call in log.syncs_for(request) if call.began > request.came.ended]


def test_an_fsync_of_a_directory_syncs_its_names(mount: Daemon, tmp_path: Path) -> None:
    def work() -> None:
        (mount.root / "notes").mkdir()
        (mount.root / "notes").rename(mount.root / "drafts")
        sync_directory(mount.root)

    log = traced(mount, tmp_path, work)
    (request,) = log.fsyncdirs
    assert request.error == 0
    assert [call for call in log.writes if call.ended < request.came.began]
    assert [call for call in log.syncs_for(request) if call.began > request.came.ended]


def test_clients_that_sync_at_once_share_syncs_and_each_waits_for_its_own(
    mount: Daemon, tmp_path: Path
) -> None:
    together = threading.Barrier(CLIENTS)

    def client(number: int) -> None:
        with open(mount.root / f"note {number}", "wb", buffering=0) as file:
            for turn in range(ROUNDS):
                file.write(b"%d %d\n" % (number, turn))
                together.wait()
                os.fsync(file.fileno())

    log = traced(mount, tmp_path, lambda: at_once(client))
    answered = log.fsyncs
    assert len(answered) == CLIENTS * ROUNDS
    for request in answered:
        assert request.error == 0
        assert log.commit_of(request), "each had something new"
        assert log.syncs_for(request)
    assert len(log.syncs) < len(answered)


def at_once(client: Callable[[int], None]) -> None:
    """Run CLIENTS clients beside each other; what one raises is raised here."""
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            client(number)
        except BaseException as error:  # noqa: BLE001  # a thread's failure is the test's
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_a_sync_that_fails_fails_for_all_who_wait_and_for_all_who_come_after(
    tmp_path: Path,
) -> None:
    daemon = Daemon(tmp_path, expected_log="syncing the write-ahead log failed")
    with daemon as mount:
        files = [
            os.open(mount.root / f"note {number}", os.O_RDWR | os.O_CREAT)
            for number in range(CLIENTS)
        ]
        results = [0] * CLIENTS

        def client(number: int) -> None:
            os.write(files[number], b"text")
            results[number] = sync_error(files[number])

        assert mount.process is not None
        # Slow as well, so that all of them wait while the first sync runs.
        fault = "fdatasync:error=EIO:delay_enter=500000"
        with Trace(tmp_path, mount.process.pid, inject=fault) as trace:
            at_once(client)
        log = Log(trace.calls())
        assert [request.error for request in log.fsyncs] == [errno.EIO] * CLIENTS
        assert results == [errno.EIO] * CLIENTS
        assert len(log.syncs) == 1, "nobody tries again what may be lost"

        # The disk says it is well again; the pages it has dropped it will not speak of.
        assert sync_error(files[0]) == errno.EIO
        with pytest.raises(OSError) as refused:
            sync_directory(mount.root)
        assert refused.value.errno == errno.EIO
        # Reading and saving go on.
        assert os.pread(files[0], 10, 0) == b"text"
        os.write(files[0], b" and more")
        for file in files:
            os.close(file)
        assert (mount.root / "note 0").read_bytes() == b"text and more"
        mount.stop()
        mount.start()
        sync_directory(mount.root)
        assert (mount.root / "note 0").read_bytes() == b"text and more"


def sync_error(descriptor: int) -> int:
    try:
        os.fsync(descriptor)
    except OSError as error:
        return error.errno or -1
    return 0
