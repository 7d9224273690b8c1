"""Damaged databases: what each command says, that nothing is made worse, what a repair saves."""

import fcntl
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from geniuzfs import runtime
from geniuzfs.cli import cli
from geniuzfs.config import DEFAULT_CONTENT_LIMIT, Config
from geniuzfs.errors import Busy, GeniuzError
from geniuzfs.model import ROOT
from geniuzfs.store import aside, check, content, memories, paths
from geniuzfs.store.connection import Database
from tests.daemon import Daemon
from tests.damage import HARMLESS, REFUSED, SAVED, Damage, flips
from tests.embed.fake import FakeEmbedder
from tests.folders.killing import killed_at
from tests.notes import learn, write

FLIPPED = {f"flipped bytes {seed}": flips(seed) for seed in range(6)}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with "My memory" and "Work", which has notes, memories, vectors, free pages
    and a file that overflows.
    """
    base = tmp_path_factory.mktemp("good")
    home = base / "home"
    geniuz = runtime.geniuz(
        Config(home, base / "mount", DEFAULT_CONTENT_LIMIT, False, (0, 0), learns=False)
    )
    geniuz.begin()
    geniuz.open(geniuz.folder("My memory"), wait=1).close()
    geniuz.arranging.new("Work")
    for number in range(40):
        geniuz.keep("Work", f"Memory {number} of the work folder. " * 8)
    first = Database.open(home / "memory.db")
    write(first, "first.md", "The first folder goes on.\n")
    learn(first)
    first.close()
    work = Database.open(home / "Work" / "memory.db")
    for number in range(120):
        write(work, f"dir{number % 4}/note {number}.md", text(number))
    write(work, "large.bin", b"OVERFLOWS" * 7_000)
    learn(work, FakeEmbedder())
    with work.txn() as txn:
        txn.run("DELETE FROM learnings WHERE seq % 2")
    work.close()
    return home


def text(number: int) -> str:
    return f"Note {number} says something of subject{number}.\n\n" * (number % 30 + 1)


@pytest.fixture
def home(good: Path, tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(good, tmp_path / "home")
    yield tmp_path / "home"
    first = Database.open(tmp_path / "home" / "memory.db")
    with first.snapshot() as view:
        assert list(check.problems(view)) == []
    first.close()


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(home: Path, *arguments: str) -> Done:
    """A command, in this process: some 200 of them would take minutes to start."""
    result = CliRunner(env={"GENIUZ_HOME": str(home)}).invoke(cli, arguments, prog_name="geniuzfs")
    error = result.exception
    if isinstance(error, GeniuzError):
        return Done(error.exit_code, result.stdout, f"{result.stderr}geniuzfs: {error}\n")
    if error is not None and not isinstance(error, SystemExit):
        raise error
    return Done(result.exit_code, result.stdout, result.stderr)


def checked(home: Path, *options: str) -> tuple[int, dict[str, Any]]:
    done = run(home, "check", "--json", *options)
    folders = {one["folder"]: one for one in json.loads(done.stdout)["folders"]}
    assert folders["My memory"]["left"] == []
    return done.returncode, folders.get("Work", {})


def hashed(path: Path) -> dict[str, str]:
    """Of the database and its log, as far as there is something in them."""
    files = [each for each in path.parent.glob(f"{path.name}*") if each.is_file()]
    held = {each.name: each.read_bytes() for each in files if not each.name.endswith("-shm")}
    return {name: hashlib.sha256(bytes_).hexdigest() for name, bytes_ in held.items() if bytes_}


def held(path: Path) -> dict[str, bytes]:
    """Every file of a sound database, by path, those that lost their place among them."""
    database = Database.open(path)
    try:
        with database.snapshot() as view:
            assert list(check.problems(view)) == []
            numbers = paths.files_beneath(view, ROOT)
            return {
                (paths.path(view, number) or b"").decode(): content.read(view, number)
                for number in numbers
            }
    finally:
        database.close()


@pytest.mark.parametrize("damage", [*SAVED.values(), *FLIPPED.values()], ids=[*SAVED, *FLIPPED])
def test_a_look_makes_nothing_worse_and_a_repair_saves_what_can_be_read(
    home: Path, damage: Damage
) -> None:
    work = home / "Work" / "memory.db"
    damage(work)
    before = hashed(work)
    status, recalled = (
        run(home, "status"),
        run(home, "recall", "--keyword", "subject3", "--in", "Work"),
    )
    code, found = checked(home)
    first = run(home, "recall", "--keyword", "folder goes on", "--in", "My memory")
    assert hashed(work) == before
    assert status.returncode == 0
    assert recalled.returncode in (0, 6)
    assert recalled.stderr.count("\n") <= 2  # the log and the error
    assert "The first folder goes on." in first.stdout
    code, repaired = checked(home, "--repair")
    left = repaired["left"]
    assert code == (8 if repaired["lost"] or left else 0)
    for one in left:  # a flipped byte in a memory's JSON: it can be forgotten, and not changed
        assert damage in FLIPPED.values()
        assert one["rule"] == "memories_can_be_read"
        gone = run(home, "forget", "--yes", "--in", "Work", "--memory", one["detail"].split()[1])
        assert gone.returncode == 0
    if not found["problems"]:  # bytes within texts: no checksum tells of them
        assert hashed(work) == before
    files, known = held(work), {f"dir{n % 4}/note {n}.md": text(n).encode() for n in range(120)}
    if repaired["kept"] is not None:
        kept = Path(repaired["kept"])
        assert hashed(kept) == {
            name.replace("memory.db", kept.name): hash_ for name, hash_ in before.items()
        }
    told = "\n".join(repaired["lost"])
    if damage not in FLIPPED.values():
        for path, bytes_ in known.items():
            assert (
                files.get(path) == bytes_ or path in told or "entries" in told or "inodes" in told
            )
    assert checked(home)[0] == 0


def reason(status: str) -> str:
    return next(line for line in status.splitlines() if " is left out: " in line).split(": ", 1)[1]


@pytest.mark.parametrize("damage", REFUSED.values(), ids=REFUSED)
def test_what_can_not_be_saved_is_left_as_it_is_and_said(home: Path, damage: Damage) -> None:
    work = home / "Work" / "memory.db"
    damage(work)
    before = hashed(work)
    status = run(home, "status")
    assert (status.returncode, f"{work} is left out: " in status.stdout) == (0, True)
    recalled = run(home, "recall", "--keyword", "subject3", "--in", "Work")
    assert recalled.returncode == 6
    assert recalled.stderr.splitlines()[-1].startswith(f"geniuzfs: {work} can't be used: ")
    for options in ((), ("--repair",)):
        code, found = checked(home, *options)
        assert (code, bool(found)) == (8, True) if work.is_file() else (0, False)
        assert hashed(work) == before
    assert "The first folder" in run(home, "recall", "--keyword", "folder goes on").stdout


def test_a_question_to_all_folders_is_answered_by_those_that_are_sound(home: Path) -> None:
    SAVED["what was learned is missing"](home / "Work" / "memory.db")
    done = run(home, "recall", "--keyword", "folder goes on")
    assert done.returncode == 0
    assert "The first folder goes on." in done.stdout
    assert "Work left out: no such table: " in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("name", ["a text", "newer"])
def test_a_mount_of_it_alone_says_why_not(home: Path, name: str) -> None:
    work = home / "Work" / "memory.db"
    REFUSED[name](work)
    status = run(home, "status")
    mounted = subprocess.run(
        [sys.executable, "-m", "geniuzfs", "mount", "--in", "Work", home.parent / "alone"],
        env={**os.environ, "GENIUZ_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    assert mounted.returncode == 6, mounted
    assert mounted.stderr.endswith(f"{work} can't be used: {reason(status.stdout)}\n")


@pytest.mark.parametrize("damage", HARMLESS.values(), ids=HARMLESS)
def test_what_lacks_nothing_but_its_log_is_sound(home: Path, damage: Damage) -> None:
    damage(home / "Work" / "memory.db")
    assert checked(home)[0] == 0
    assert len(held(home / "Work" / "memory.db")) == 121


def test_a_memory_that_is_lost_is_named_and_the_others_are_as_they_were(home: Path) -> None:
    work = home / "Work" / "memory.db"
    before = kept(work)
    SAVED["noise among the memories"](work)
    code, repaired = checked(home, "--repair")
    after = kept(work)
    lost = {id_ for id_ in before if id_ not in after}
    assert lost
    assert code == 8
    assert {f"memory {id_}" for id_ in lost} <= set(repaired["lost"])
    assert all(after[id_] == before[id_] for id_ in after)


def kept(path: Path) -> dict[str, tuple[int, str]]:
    database = Database.open(path)
    found = memories.page(database.view, 0, 1_000)
    database.close()
    return {one.memory.id: (one.number, one.memory.content) for one in found}


def test_a_mount_shows_what_can_be_read_and_the_other_folders(home: Path) -> None:
    work = home / "Work" / "memory.db"
    SAVED["noise among the bytes"](work)
    (home / "Text").mkdir()
    (home / "Text" / "memory.db").write_bytes(b"no database" * 999)
    daemon = Daemon(home.parent, alone=None, expected_log="")
    daemon.root.mkdir()
    daemon.start()
    try:
        assert sorted(os.listdir(daemon.root))[-2:] == ["My memory", "Work"]
        assert (daemon.root / "My memory" / "first.md").read_text() == "The first folder goes on.\n"
        outcomes = set()
        for number in range(120):
            try:
                found = (daemon.root / f"Work/dir{number % 4}/note {number}.md").read_text()
                assert found == text(number)
                outcomes.add("read")
            except OSError as error:
                outcomes.add(os.strerror(error.errno or 0))
        assert outcomes == {"read", "Input/output error"}
        refused = run(home, "check", "--repair", "--in", "Work")
        assert refused.returncode == 8
        assert "is open in another process" in refused.stdout
    finally:
        daemon.stop()
        daemon.unmount()
    assert checked(home, "--repair")[0] == 8
    assert len(held(work)) == 121


def test_a_repair_that_is_killed_leaves_the_damaged_folder_or_the_new_one(home: Path) -> None:
    work = home / "Work" / "memory.db"
    SAVED["noise among the bytes"](work)
    shutil.copytree(home, home.parent / "before")
    hash_, ends = hashed(work)["memory.db"], set()
    for step in itertools.count(1, 3):
        shutil.rmtree(home)
        shutil.copytree(home.parent / "before", home)
        if not killed_at(step, lambda: run(home, "check", "--repair"), {aside.__file__}):
            break
        swapped = hashed(work)["memory.db"] != hash_
        ends.add(swapped)
        if not swapped:
            assert checked(home)[0] == 8
        assert checked(home, "--repair")[1]["left"] == []
        assert len(held(work)) == 121
        kept = [one for one in work.parent.glob("*.damaged-*") if one.name[-4] != "-"]
        assert len({one.stat().st_ino for one in kept}) == len(kept) == 1
    assert ends == {True, False}


@pytest.mark.parametrize("writes", [False, True])
def test_a_log_that_a_killed_repair_has_moved_comes_back_unless_it_is_older(
    home: Path, writes: bool
) -> None:
    path = home / "Work" / "memory.db"
    kept = path.with_name("memory.db.damaged-1")
    database = Database.open(path)
    with database.txn() as txn:
        txn.run("INSERT INTO _meta VALUES ('in', 'the log')")
    log = database.wal_path.read_bytes()
    database.close()
    kept.hardlink_to(path)
    kept.with_name(f"{kept.name}-wal").write_bytes(log)
    if writes:
        database = Database.open(path)
        write(database, "since.md", "since")
        database.close()
    with aside.alone(path):
        back = path.with_name(f"{path.name}-wal")
        assert (back.read_bytes() if back.exists() else None) == (None if writes else log)
    assert kept.with_name(f"{kept.name}-wal").exists() == writes
    assert not kept.exists()


def test_what_another_repair_has_just_made_is_not_put_aside(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / "Work" / "memory.db"
    lockf = fcntl.lockf

    def amid(*arguments: Any) -> None:
        """Between the opening of the damaged file and its lock."""
        path.rename(path.with_name("memory.db.damaged-before"))
        shutil.copyfile(home / "memory.db", path)
        lockf(*arguments)

    monkeypatch.setattr(fcntl, "lockf", amid)
    with pytest.raises(Busy, match="another process"), aside.alone(path):
        pass
    assert sorted(os.listdir(path.parent)) == ["memory.db", "memory.db.damaged-before"]


def test_rebuilding_the_index_learns_all_anew_and_keeps_the_vectors_that_are_sound(
    home: Path,
) -> None:
    work = home / "Work" / "memory.db"
    database = Database.open(work)
    with database.txn() as txn:
        txn.run(
            "UPDATE passages SET text = 'not what it was'"
            " WHERE id = (SELECT max(id) FROM passages WHERE context = 0)"
        )
        txn.run("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE id = 1")
        txn.run("UPDATE postings SET terms = zeroblob(8)")
    vectors = database.view.row("SELECT count(*) FROM vectors")[0]
    database.close()
    assert run(home, "check", "--rebuild-index").returncode == 0
    database = Database.open(work)
    embedder = FakeEmbedder()
    learn(database, embedder)
    assert database.view.row("SELECT count(*) FROM vectors")[0] == vectors
    assert 1 <= embedder.passages_embedded <= 40
    assert database.view.rows("SELECT 1 FROM passages WHERE text = 'not what it was'") == []
    with database.snapshot() as view:
        assert list(check.problems(view)) == []
    database.close()
    assert (
        "Note 7 says something"
        in run(home, "recall", "--keyword", "subject7", "--in", "Work").stdout
    )


def test_on_a_disk_that_is_read_only_it_is_said_and_nothing_breaks(home: Path) -> None:
    place = str(home)
    done = subprocess.run(["mount", "--bind", place, place], capture_output=True)
    if done.returncode:
        pytest.skip("only root may mount")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        for command in (["status"], ["check"], ["recall", "--keyword", "folder"], ["keep", "text"]):
            done_ = run(home, *command)
            assert done_.returncode in (0, 5, 8), (command, done_)
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
