"""Many memories are kept from everywhere at once: none lost, none doubled, in one order."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from geniuzfs.model import ROOT
from geniuzfs.store import check, content, memories, tree
from geniuzfs.store.connection import Database
from tests.daemon import Daemon

KEEPERS = 4
EACH = int(os.environ.get("GENIUZ_TEST_KEEPS", "4000")) // KEEPERS
"""GENIUZ_TEST_KEEPS=10000 takes 26 s on two CPUs."""

BY_COMMAND = 6
"""Kept by each of the keepers' own `geniuzfs keep`, which takes some 0.1 s to start."""

KEEPER = """
import sys
from geniuzfs import runtime
geniuz, who, count = runtime.geniuz(), sys.argv[1], int(sys.argv[2])
for number in range(count):
    print(geniuz.keep(None, f'{who}: {number}').memory.id)
"""


@pytest.mark.timeout(300)
def test_memories_of_four_processes_beside_savers_are_all_kept_once(tmp_path: Path) -> None:
    with Daemon(tmp_path) as mount:
        environment = {**os.environ, "GENIUZ_HOME": str(mount.home)}
        outputs = [tmp_path / f"kept {keeper}" for keeper in range(KEEPERS)]
        keepers = []
        for keeper, path in enumerate(outputs):
            with path.open("wb") as out:
                words = [sys.executable, "-c", KEEPER, str(keeper), str(EACH)]
                keepers.append(subprocess.Popen(words, env=environment, stdout=out))
        saved, ended = 0, threading.Event()

        def save() -> None:
            nonlocal saved
            while not ended.is_set():
                (mount.root / f"note {saved}").write_text(str(saved))
                saved += 1

        saver = threading.Thread(target=save)
        saver.start()
        try:
            commands = [
                subprocess.run(
                    [sys.executable, "-m", "geniuzfs", "keep", f"command: {number}", "--json"],
                    env=environment,
                    stdout=subprocess.PIPE,
                    check=True,
                )
                for number in range(KEEPERS * BY_COMMAND)
            ]
            assert [keeper.wait(250) for keeper in keepers] == [0] * KEEPERS
        finally:
            ended.set()
            saver.join()
            for keeper_ in keepers:
                keeper_.kill()
                keeper_.wait()
        told = {str(keeper): path.read_text().split() for keeper, path in enumerate(outputs)}
        told["command"] = [json.loads(done.stdout)["uuid"] for done in commands]
        first, again = _listing(mount), _listing(mount)
        assert first == again
    _assert_whole(mount.database_path, told, saved)
    assert first == [id_[:8] for id_ in _ids(mount.database_path)]


def _ids(path: Path) -> list[str]:
    """The memories in the order of keeping."""
    database = Database.open(path)
    try:
        return [each.memory.id for each in memories.page(database.view, 0, 100_000)]
    finally:
        database.close()


def _listing(mount: Daemon) -> list[str]:
    """The IDs in the order of the directory."""
    names = [entry.name for entry in os.scandir(mount.root / ".memories")]
    return [name.rpartition("~")[2].removesuffix(".md") for name in names]


def _assert_whole(path: Path, told: dict[str, list[str]], saved: int) -> None:
    database = Database.open(path)
    try:
        with database.snapshot() as view:
            kept = [each.memory for each in memories.page(view, 0, 100_000)]
            assert len(kept) == KEEPERS * EACH + KEEPERS * BY_COMMAND
            for who, ids in told.items():  # each keeper's in the order of keeping
                own = [(one.id, one.content) for one in kept if one.content.startswith(f"{who}:")]
                assert own == [(id_, f"{who}: {n}") for n, id_ in enumerate(ids)]
            times = [one.created_at for one in kept]
            assert len(set(times)) < len(times) / 10  # so the order within a second was at stake
            for number in range(saved):
                found = tree.child(view, ROOT, f"note {number}".encode())
                assert found is not None
                assert content.read(view, found.number) == str(number).encode()
            assert list(check.problems(view)) == []
    finally:
        database.close()
