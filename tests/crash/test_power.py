"""Loss of power: what fsync has returned for is there, and the database is sound.

Two disks that forget. One is an ext4 whose power is cut while programs save: of what was not
synced, it keeps what it happens to have written. The other is a copy of the files, whose log ends
somewhere after what was synced, with whatever was on the disk before behind it.
"""

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.crash.disks import Ext4
from tests.crash.driving import all_savers, serve_until, stored, version_found
from tests.crash.savers import METHODS, SYNCED, content, save_in_place, save_patch
from tests.daemon import Daemon

CUTS = 12


@pytest.mark.parametrize("seed", range(2))
def test_when_the_power_is_cut_whole_versions_are_there_none_older_than_the_last_synced(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    daemon = Daemon(tmp_path)
    daemon.root.mkdir()
    lost = synced = 0
    with all_savers() as running, Ext4(tmp_path, daemon.home) as disk:
        versions = dict.fromkeys(METHODS, 0)
        try:
            for _ in range(CUTS):
                daemon.start()
                for saver in running:
                    saver.go(daemon.root, versions[saver.method])
                serve_until(running, dice.randint(1, 150))
                # Only what was told before the cut: a sync that is under way when this disk is
                # cut off may return as if it were done (with plain files too: 9 times in 40).
                told = {saver: saver.saved - saver.saved % SYNCED for saver in running}
                disk.cut_power()
                for saver in running:
                    while not saver.stopped:
                        saver.listen()
                daemon.kill()
                disk.power_up()
                files = stored(daemon.database_path)
                for saver in running:
                    last = max(versions[saver.method], told[saver])
                    synced += last > versions[saver.method]
                    versions[saver.method] = version_found(saver, files, last)
                    lost += versions[saver.method] < saver.saved
        finally:
            daemon.kill()
    # It would prove nothing if nothing had been lost, or nothing been synced.
    assert lost
    assert synced


def test_a_new_data_directory_survives_with_its_first_synced_file(tmp_path: Path) -> None:
    home = tmp_path / "disk" / "home"
    daemon = Daemon(tmp_path, environment={"GENIUZ_HOME": str(home)})
    daemon.root.mkdir()
    with Ext4(tmp_path, home.parent) as disk:
        try:
            daemon.start()
            with open(daemon.root / "first", "wb", buffering=0) as file:
                file.write(b"text")
                os.fsync(file.fileno())
            disk.cut_power()
            daemon.kill()
            disk.power_up()
            assert stored(home / "memory.db") == {"first": b"text"}
        finally:
            daemon.kill()


def test_a_copy_of_the_files_taken_when_fsync_returned_has_every_synced_byte(
    mount: Daemon, tmp_path: Path
) -> None:
    for version in range(1, 30):
        for method, save in (("place", save_in_place), ("patch", save_patch)):
            save(mount.root / method, version, sync=True)
            copy = copied(mount, tmp_path / "copy")
            assert stored(copy)[method] == content(method, version)


def test_a_log_that_ends_anywhere_after_the_sync_or_in_garbage_loses_nothing_synced(
    mount: Daemon, tmp_path: Path
) -> None:
    dice = random.Random(0)
    log = mount.database_path.with_name("memory.db-wal")
    for synced in range(1, 60, 6):
        save_patch(mount.root / "patch", synced, sync=True)
        safe = log.stat().st_size
        for version in range(synced + 1, synced + 6):
            save_patch(mount.root / "patch", version, sync=False)
        full = log.stat().st_size
        for end in (safe, full, *(dice.randint(safe, full) for _ in range(4))):
            for rest in (b"", bytes(full - end), dice.randbytes(full - end)):
                copy = copied(mount, tmp_path / "copy")
                with open(copy.with_name("memory.db-wal"), "r+b") as cut:
                    cut.truncate(end)
                    cut.seek(end)
                    cut.write(rest)
                whole = [content("patch", version) for version in range(synced, synced + 6)]
                assert stored(copy)["patch"] in whole


def copied(mount: Daemon, place: Path) -> Path:
    """The database and its log as they lie on the disk now; nobody is saving meanwhile."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in ("memory.db", "memory.db-wal"):
        shutil.copyfile(mount.home / name, place / name)
    return place / "memory.db"
