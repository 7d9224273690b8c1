"""kill -9 of the daemon while programs save: what close has returned for is there, whole."""

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from geniuzfs.folders.mounts import mount_at, mounts
from geniuzfs.model import ROOT
from geniuzfs.store import tree
from geniuzfs.store.connection import Database
from tests.crash import savers
from tests.crash.driving import all_savers, serve_until, stored, version_found
from tests.daemon import Daemon, listed, wait_until

KILLS = 34
"""For each of the seeds, so 204 in all."""


@contextmanager
def ended(daemon: Daemon) -> Iterator[None]:
    """Whatever happens, nothing is left running or mounted."""
    daemon.root.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        if daemon.process is not None:
            daemon.process.kill()
            # By force: a thread that waits in the kernel would keep the process from ending.
            if mount_at(daemon.root) is not None:
                subprocess.run(["umount", "--force", "--lazy", daemon.root], check=True)
            daemon.kill()


def kill(daemon: Daemon) -> subprocess.Popen[bytes]:
    """kill -9, and leave everything else as that leaves it."""
    assert daemon.process is not None
    daemon.process.kill()
    return daemon.process


def mounted(daemon: Daemon) -> dict[str, bytes]:
    """What a new daemon shows; the database must be sound beneath it."""
    daemon.start()
    shown = {name: (daemon.root / name).read_bytes() for name in listed(daemon.root)}
    daemon.check()
    return shown


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(6))
def test_a_killed_daemon_leaves_whole_versions_none_older_than_the_last_saved(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    daemon = Daemon(tmp_path)
    begun_and_kept = begun_and_undone = 0
    with all_savers() as running, ended(daemon):
        daemon.start()
        versions = dict.fromkeys(savers.METHODS, 0)
        for _ in range(KILLS):
            for saver in running:
                saver.go(daemon.root, versions[saver.method])
            count = dice.randint(1, 100)
            serve_until(running, count)
            killed = kill(daemon)
            for saver in running:
                while not saver.stopped:
                    saver.listen()
            killed.wait()
            # By turns: recovered by the next daemon, which finds the dead one's mount, or by
            # another program first.
            remount = dice.random() < 0.5
            files = mounted(daemon) if remount else stored(daemon.database_path)
            versions = {saver.method: version_found(saver, files, saver.saved) for saver in running}
            for saver in running:
                begun_and_kept += versions[saver.method] - saver.saved
                begun_and_undone += versions[saver.method] == saver.saved
            if not remount:
                daemon.start()
        assert daemon.log() == ""
    # It would prove nothing if the daemon had always died between two saves.
    assert begun_and_kept
    assert begun_and_undone


def test_a_rename_of_an_open_file_keeps_its_bytes_when_the_daemon_is_killed(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    with ended(daemon):
        daemon.start()
        (daemon.root / "note").write_bytes(b"old\n")
        new = os.open(daemon.root / "note.new", os.O_WRONLY | os.O_CREAT)
        os.write(new, b"new\n")
        os.rename(daemon.root / "note.new", daemon.root / "note")
        daemon.kill()
        with pytest.raises(OSError):
            os.close(new)
        assert stored(daemon.database_path) == {"note": b"new\n"}


def test_the_next_start_clears_a_dead_mount_whose_attributes_the_kernel_knows(
    tmp_path: Path,
) -> None:
    daemon = Daemon(tmp_path)
    with ended(daemon):
        daemon.start()
        (daemon.root / "note").write_bytes(b"text")
        daemon.root.stat()
        kill(daemon).wait()
        daemon.start()
        assert (daemon.root / "note").read_bytes() == b"text"
        assert [mount.target for mount in mounts()].count(daemon.root) == 1


def test_the_next_start_frees_what_a_daemon_killed_in_an_invalidation_holds_up(
    tmp_path: Path,
) -> None:
    """The kernel can't end a thread that waits for a directory which a request has locked, and
    gives the request no answer before that thread has ended.
    """
    daemon = Daemon(tmp_path)
    with ended(daemon):
        daemon.start()
        other = Database.open(daemon.database_path)
        other.txn().__enter__()
        client = subprocess.Popen(["mkdir", daemon.root / "asked"], stderr=subprocess.DEVNULL)
        wait_until(lambda: waits_in(client.pid, "request_wait_answer"))
        # A name comes, and before the request for the other gets its turn, the lock is taken again.
        tree.create(other.txn(), ROOT, b"given", tree.New(0o100644, 0, 0), 1)
        other.txn().__exit__(None, None, None)
        other.txn().__enter__()
        assert daemon.process is not None
        pid = daemon.process.pid
        wait_until(lambda: waits_in(pid, "fuse_reverse_inval_entry"))
        killed = kill(daemon)
        other.close()
        assert client.poll() is None, "the mkdir ended by itself: nothing to be freed"
        daemon.start()
        killed.wait()
        assert client.wait() == 1
        assert listed(daemon.root) == ["given"]


def waits_in(pid: int, function: str) -> bool:
    """Whether a thread of the process waits in `function` of the kernel."""
    return any(task.read_text() == function for task in Path(f"/proc/{pid}/task").glob("*/wchan"))
