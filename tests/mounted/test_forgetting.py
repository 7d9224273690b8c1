"""`geniuzfs forget` beneath a live mount that learns, with others who write."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests import terminals
from tests.daemon import Daemon, listed, wait_until
from tests.mounted.learned import Learned, files

SECRET = "Xylographer Quillemont pays the ransom in Vaduz."
SHARED = "The meeting was on a rainy Thursday."

WRITER = """
import sys, os
number = 0
print("begun", flush=True)
while not os.path.exists(sys.argv[2]):
    number += 1
    with open(sys.argv[1], "w") as file:
        file.write(f"Version {number} of the writer.\\n" * 50)
print(number, flush=True)
"""


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learned]:
    with Learned(tmp_path_factory.mktemp("forgetting")) as mount:
        files(mount.root / "filler", 40, 3)
        mount.wait_learned()
        yield mount


def raw(mount: Daemon) -> bytes:
    return b"\n".join(each.read_bytes() for each in sorted(mount.home.glob("memory.db*")))


def test_what_is_forgotten_is_gone_at_once_everywhere_while_others_write_and_learn(
    mount: Learned, tmp_path: Path
) -> None:
    note = mount.root / "quillemont-plan.md"
    note.write_text(f"# Ransomware\n\n{SECRET}\n\n{SHARED}\n\nZanzibarian end.\n")
    os.setxattr(note, "user.geniuz.label.who", b"quillemontlabel")
    note.write_text(f"# Ransomware\n\n{SECRET}\n\n{SHARED}\n")
    (mount.root / "other.md").write_text(f"{SHARED}\n")
    mount.wait_learned()
    assert mount.cited("Quillemont ransom")[0][2] == SECRET
    words = (b"Quillemont", b"quillemont", b"Ransomware", b"Zanzibarian")
    assert all(word in raw(mount) for word in words)
    stop = tmp_path / "stop"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, mount.root / "written.md", stop],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "begun\n"
    said = mount.cli("forget", str(note), "--yes")
    stop.touch()
    written = int(writer.communicate()[0])
    assert said.startswith("erased: quillemont-plan.md (1 file, 1 passage of it alone)\n")
    assert not note.exists()
    assert "quillemont-plan.md" not in listed(mount.root)
    assert SECRET not in [hit[2] for hit in mount.cited("Quillemont ransom")]
    assert mount.cited("rainy Thursday meeting")[0][2] == SHARED
    assert (mount.root / "written.md").read_text() == f"Version {written} of the writer.\n" * 50
    mount.wait_learned()
    assert not [word for word in words if word in raw(mount)]
    backup = tmp_path / "backup.db"
    plain, copy = sqlite3.connect(mount.database_path), sqlite3.connect(backup)
    with closing(plain), closing(copy):
        plain.backup(copy)
    assert not [word for word in words if word in backup.read_bytes()]


def test_a_removed_file_is_forgotten_with_its_history(mount: Learned) -> None:
    plans = mount.root / "quillemont-plans"
    plans.mkdir()
    for text in (f"{SECRET}\n", "Later.\n"):
        (plans / "ransom.md").write_text(text)
    (plans / "ransom.md").unlink()
    plans.rmdir()
    assert b"quillemont-plans" in raw(mount)
    past = mount.root / ".history" / "quillemont-plans" / "ransom.md"
    assert len(listed(past)) == 2
    said = mount.cli("forget", str(plans), "--yes")
    assert said.startswith("erased: quillemont-plans (1 file removed before, 0 passages of it")
    words = (b"Xylographer", b"quillemont-plans", b"ransom.md")
    assert not [word for word in words if word in raw(mount)]
    wait_until(lambda: not past.exists(), 2)


def test_an_open_file_keeps_its_bytes_and_saving_it_brings_nothing_back(mount: Learned) -> None:
    note = mount.root / "open.md"
    note.write_text("Oberonian drafts.\n")
    with open(note, "r+", encoding="utf-8") as held:
        assert held.read() == "Oberonian drafts.\n"
        mount.cli("forget", str(note), "--yes")
        held.write("Oberonian again.\n")
        held.flush()  # as to any file that was removed while it was open
        os.fsync(held.fileno())
        held.seek(0)
        assert held.read() == "Oberonian drafts.\nOberonian again.\n"
    assert not note.exists()
    assert b"Oberonian" not in raw(mount)


def test_a_memory_is_gone_from_its_listing_within_a_second_and_can_not_be_opened(
    mount: Learned,
) -> None:
    kept = mount.cli("keep", "Wolfgangus keeps the ledger.").split()[1]
    (name,) = listed(mount.root / ".memories")
    file = mount.root / ".memories" / name
    assert file.read_text() == "Wolfgangus keeps the ledger.\n"
    wait_until(lambda: mount.rows("SELECT count(*) FROM due_memories") == [(0,)])
    mount.wait_learned()
    said = mount.cli("forget", "--memory", kept, "--yes")
    assert said.startswith(f"erased: {kept} (1 memory, 1 passage of it alone)\n")
    assert listed(mount.root / ".memories") == []
    with pytest.raises(FileNotFoundError):
        (mount.root / ".recall" / kept).read_text()
    wait_until(lambda: not file.exists(), 2)
    assert b"Wolfgangus" not in raw(mount)


def test_without_a_terminal_and_without_yes_nothing_is_forgotten(mount: Learned) -> None:
    (mount.root / "asked.md").write_text("Asked.\n")
    process = mount.started("forget", "asked.md", stdin=subprocess.DEVNULL)
    _, error = process.communicate()
    assert (process.returncode, (mount.root / "asked.md").exists()) == (2, True)
    assert error == "geniuzfs: this can't be undone: say --yes where nobody can be asked\n"
    for arguments in (("nothing.md", "--yes"), (str(mount.root / "nothing.md"), "--yes")):
        process = mount.started("forget", *arguments)
        _, error = process.communicate()
        assert (process.returncode, error.count("\n")) == (1, 1)


def test_a_path_in_a_mount_of_all_folders_names_its_folder(tmp_path: Path) -> None:
    with Daemon(tmp_path, alone=None) as mount:
        (mount.root / "Lumen").mkdir()
        (mount.root / "Lumen" / "a note").write_text("Quillemont.\n")
        (mount.root / "My memory" / "a note").write_text("kept\n")
        done = subprocess.run(
            [sys.executable, "-m", "geniuzfs", "forget", "../Lumen/a note", "--yes", "--json"],
            env={**os.environ, "GENIUZ_HOME": str(mount.home)},
            cwd=mount.root / "My memory",
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert '"folder": "Lumen", "forgotten": "a note", "files": 1' in done.stdout
        assert listed(mount.root / "Lumen") == []
        assert (mount.root / "My memory" / "a note").read_text() == "kept\n"


def test_on_a_terminal_it_asks_first(mount: Learned) -> None:
    note = mount.root / "asked too.md"
    note.write_text("Asked.\n")
    for answer, is_there in ((b"n\n", True), (b"y\n", False)):
        ours, theirs = terminals.opened()
        process = mount.started("forget", str(note), stdin=theirs)
        os.write(ours, answer)
        _, error = process.communicate()
        assert error.startswith("Erase asked too.md of 'My memory' (1 file) for good? [y/N]:")
        assert note.exists() == is_there
        os.close(ours)
        os.close(theirs)
