"""geniuzfs doctor: every fault that can be made here is named, with a command that mends it."""

import json
import os
import shlex
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.embed import cards, models
from geniuzfs.embed.client import Helper
from geniuzfs.fs import machine
from geniuzfs.model import Finding
from geniuzfs.store import tree
from geniuzfs.store.connection import Database
from tests.clocks import Clock
from tests.crash.disks import Ext4
from tests.daemon import Daemon
from tests.embed.conftest import end
from tests.embed.fake import FakeEmbedder, tiny_model
from tests.mounted.calls import NOBODY

NOW_NS = 1_800_000_000 * 10**9


@pytest.fixture
def well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Config]:
    """A data directory in order, and the environment that means it."""
    (tmp_path / "run").mkdir(mode=0o700)
    environment = {
        "GENIUZ_HOME": str(tmp_path / "home"),
        "GENIUZ_MOUNT": str(tmp_path / "mount"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "GENIUZ_CONTENT_LIMIT": "65536",
    }
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    config = Config.from_environment()
    Geniuz(config, Clock(NOW_NS), FakeEmbedder()).begin()
    models.use(config.home, tiny_model(tmp_path / "tiny"))
    yield config
    helper = Helper(config)
    end(helper)
    helper.close()


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "geniuzfs", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def wrong() -> dict[str, tuple[str, str]]:
    """What is wrong: part → its detail and the command that mends it."""
    done = run("doctor", "--json")
    found = json.loads(done.stdout)
    faults = {one["part"]: (one["detail"], one["mend"]) for one in found["findings"] if one["mend"]}
    assert done.returncode == (8 if faults else 0)
    assert found["ok"] is not bool(faults)
    return faults


def findings(config: Config, now_ns: int = NOW_NS, away: str | None = None) -> dict[str, Finding]:
    """Those about the data, at another time or with a model that is `away`."""
    embedder = FakeEmbedder(cards.DEFAULT.id)
    embedder.away = away
    geniuz = Geniuz(config, Clock(now_ns), embedder)
    return {one.part: one for one in geniuz.health().findings()}


def test_all_is_well(well: Config) -> None:
    done = run("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert all(line.startswith("ok    ") for line in lines), lines
    parts = {line[6:].partition(":")[0] for line in lines}
    assert parts >= {"kernel", "FUSE", "fusermount3", "user_allow_other", "data", "disk"}
    assert parts >= {"My memory", "clock", "runtime directory", "model", "helper", "systemd"}


def test_before_the_first_mount_nothing_is_wrong_and_nothing_is_made(
    well: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENIUZ_HOME", str(tmp_path / "none"))
    monkeypatch.setenv("GENIUZ_EMBED_URL", "http://127.0.0.1:1#none")
    assert set(wrong()) == {"model"}
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(("page", "count"), [(1, 8), (4, 2)])
def test_a_database_that_is_damaged(well: Config, page: int, count: int) -> None:
    with open(well.home / "memory.db", "r+b") as file:
        file.seek(4096 * page)
        file.write(b"\xff" * 4096 * count)
    ((part, (detail, mend)),) = wrong().items()
    assert len(detail.splitlines()) == 1
    assert part in ("My memory", "folders")
    assert mend.startswith("geniuzfs check")


def test_a_file_that_is_no_database_is_named(well: Config) -> None:
    (well.home / "Work").mkdir()
    (well.home / "Work" / "memory.db").write_bytes(b"no database" * 1000)
    detail, mend = wrong()["folders"]
    assert str(well.home / "Work" / "memory.db") in detail
    assert mend == "geniuzfs check --repair --in Work"


def test_what_mends_is_taken_by_a_shell_as_it_is_meant(
    well: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "Anna's 50 %"
    monkeypatch.setenv("GENIUZ_HOME", str(home))
    config = Config.from_environment()
    geniuz = Geniuz(config, Clock(NOW_NS), FakeEmbedder())
    geniuz.begin()
    (home / "folders.json").write_text("{")
    mend = findings(config)["folders"].mend
    assert subprocess.run(["sh", "-c", mend], check=False).returncode == 0
    assert (home / "folders.json.bad").read_text() == "{"
    folder = geniuz.arranging.new("Anna's")
    with folder.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 4)
    found = findings(config)
    (mend,) = {one.mend for one in found.values() if "memory.db" in one.detail and one.mend}
    assert mend.startswith("geniuzfs check --repair")
    assert shlex.split(mend)[3:] == ["--in", "Anna's"]


@pytest.mark.parametrize("how", ["twice", "one name", "a backup"])
def test_what_is_said_to_mend_what_is_not_listed_does(
    well: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = well.home / "Anna's" / "memory.db"
    path.parent.mkdir()
    if how == "a backup":
        assert run("backup", str(path)).returncode == 0
    else:
        shutil.copyfile(well.home / "memory.db", path)
    if how == "one name":
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE _meta SET value = 'ANOTHER' WHERE key = 'uuid'")
    mend = wrong()["folders"][1].replace("geniuzfs ", f"{sys.executable} -m geniuzfs ")
    assert subprocess.run(["sh", "-c", mend], check=False).returncode == 0
    assert path.exists() is (how == "one name")
    assert (tmp_path / "Anna's" / "memory.db").exists() is (how != "one name")
    assert "folders" not in wrong()


def test_a_database_of_a_newer_version(well: Config) -> None:
    with closing(sqlite3.connect(well.home / "memory.db")) as connection, connection:
        connection.execute("INSERT INTO migrations (number, name) VALUES (9999, 'later')")
    assert "newer geniuzfs" in wrong()["folders"][0]


def test_a_disk_without_room_for_the_largest_file(
    well: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GENIUZ_CONTENT_LIMIT", str(10**18))
    detail, mend = wrong()["disk"]
    assert "2000000000 GB" in detail
    assert mend.startswith("du ")


def test_a_runtime_directory_that_others_may_enter(well: Config) -> None:
    well.embedding.runtime.mkdir(exist_ok=True)
    well.embedding.runtime.chmod(0o755)
    assert wrong()["runtime directory"][1] == f"chmod 700 {well.embedding.runtime}"


def test_a_model_whose_weights_are_not_what_its_card_says(well: Config, tmp_path: Path) -> None:
    (weights,) = (tmp_path / "tiny").glob("*.onnx")
    with open(weights, "ab") as file:
        file.write(b"more")
    detail, mend = wrong()["model"]
    assert "sha256 differs" in detail
    assert mend == "geniuzfs model use default"


def test_a_model_that_gives_no_vectors(well: Config) -> None:
    (well.home / "models" / "chosen.json").unlink()
    assert findings(well)["model"].mend == ""
    assert "gone away" in findings(well, away="gone away")["model"].detail


@pytest.mark.parametrize(
    ("now_ns", "said"),
    [
        (0, "1970-01-01 00:00 UTC can't be"),
        (NOW_NS - 10**15, "is before the newest change, of 2027"),
    ],
)
def test_a_clock_that_was_set_back(well: Config, now_ns: int, said: str) -> None:
    with closing(Database.open(well.home / "memory.db")) as database, database.txn() as txn:
        tree.make_root(txn, tree.New(stat.S_IFDIR | 0o755, 0, 0), NOW_NS)
    assert findings(well)["clock"].mend == ""
    found = findings(well, now_ns)["clock"]
    assert said in found.detail
    assert found.mend == "sudo timedatectl set-ntp true"


def test_a_dead_mount_and_the_command_that_clears_it(well: Config, tmp_path: Path) -> None:
    environment = {"GENIUZ_HOME": str(well.home)}
    with Daemon(tmp_path, environment=environment) as daemon:
        assert wrong() == {}
        assert daemon.process is not None
        daemon.process.kill()
        daemon.process.wait()
        detail, mend = wrong()["mount"]
        assert str(daemon.root) in detail
        assert mend.split()[0] == "geniuzfs"
        assert run(*mend.split()[1:]).returncode == 0
        assert wrong() == {}
        daemon.start()
        assert run(*mend.split()[1:]).returncode == 0
        assert os.listdir(daemon.root)  # a live one is not touched


def test_data_on_a_disk_that_became_read_only(well: Config, tmp_path: Path) -> None:
    with Ext4(tmp_path, tmp_path / "disk") as disk:
        config = Config.from_environment({"GENIUZ_HOME": str(tmp_path / "disk" / "home")})
        Geniuz(config, Clock(NOW_NS), FakeEmbedder()).begin()
        disk.fail()
        found = findings(config)
        assert found["data"].mend == f"sudo mount -o remount,rw {tmp_path / 'disk'}"
        assert "Read-only file system" in found["folders"].detail


# The machine


def test_a_device_that_is_missing_or_none(tmp_path: Path) -> None:
    assert machine.device(tmp_path / "fuse").mend == "sudo modprobe fuse"
    (tmp_path / "fuse").touch()
    assert "no device" in machine.device(tmp_path / "fuse").detail
    assert machine.device(Path("/dev/null")).mend == ""


def test_fusermount3_that_is_missing_or_has_lost_its_setuid_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machine.fusermount(None).mend == "sudo apt-get install -y fuse3"
    program = tmp_path / "fusermount3"
    program.touch(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    assert machine.fusermount(str(program)).mend == f"sudo chmod u+s {program}"


@pytest.mark.parametrize(
    ("text", "word"), [("user_allow_other\n", "set in"), ("#user_allow_other\n", "not set in")]
)
def test_who_may_let_other_users_in(tmp_path: Path, text: str, word: str) -> None:
    (tmp_path / "fuse.conf").write_text(text)
    found = machine.other_users(tmp_path / "fuse.conf")
    assert (found.detail.startswith(word), found.mend) == (True, "")


def test_the_version_of_libfuse_is_known() -> None:
    assert "libfuse 3." in machine.kernel().detail
