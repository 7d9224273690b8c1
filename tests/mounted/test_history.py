"""Earlier versions in a mount: `.history/`, who replaced what unread, and undo while it serves."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from errno import EPERM
from pathlib import Path
from typing import Any

import pytest

from geniuzfs.store import histories, versions
from geniuzfs.store.connection import Database
from tests.daemon import Daemon, wait_until
from tests.mounted.calls import errno_of
from tests.store.files import Files

WRITER = """
import os, sys
def save(path, text):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.write(descriptor, text.encode())
    os.close(descriptor)
for line in sys.stdin:
    what, path, *rest = line.rstrip("\\n").split("|")
    if what == "read":
        print(open(path).read().rstrip("\\n"), flush=True)
        continue
    if what == "save":
        save(path, rest[0])
    elif what == "add":
        with open(path, "a") as file:
            file.write(rest[0])
    elif what == "rename":
        save(path + ".tmp", rest[0])
        os.rename(path + ".tmp", path)
    elif what == "backup":
        os.rename(path, path + "~")
        save(path, rest[0])
        os.unlink(path + "~")
    elif what == "child":
        os.system("cat '%s' > /dev/null" % path)
    print("done", flush=True)
"""


class Program:
    """A process that reads and saves when it is told to."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, what: str, path: Path, text: str = "") -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}|{path}|{text}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().rstrip("\n")

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("history")) as daemon:
        yield daemon


@pytest.fixture
def here(shared: Daemon, request: pytest.FixtureRequest) -> Path:
    name: str = request.node.name
    directory = shared.root / name.translate({ord("["): "-", ord("]"): None})
    directory.mkdir()
    return directory


@pytest.fixture
def programs() -> Iterator[list[Program]]:
    """Two, that run all the time."""
    running = [Program(), Program()]
    yield running
    for one in running:
        one.end()


def past(daemon: Daemon, path: Path) -> Path:
    """Where the versions of a file are."""
    return daemon.root / ".history" / path.relative_to(daemon.root)


def kept(daemon: Daemon, path: Path) -> dict[str, bytes]:
    """The versions of a file by name, the oldest first."""
    directory = past(daemon, path)
    if not directory.exists():
        return {}
    return {name: (directory / name).read_bytes() for name in sorted(os.listdir(directory))}


def conflicts(daemon: Daemon, path: Path) -> list[bytes]:
    return [text for name, text in kept(daemon, path).items() if "~conflict" in name]


def run(daemon: Daemon, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "geniuzfs", *arguments],
        env={**os.environ, "GENIUZ_HOME": str(daemon.home)},
        capture_output=True,
        text=True,
        check=False,
    )


def status(daemon: Daemon) -> dict[str, Any]:
    (folder,) = json.loads(run(daemon, "status", "--json").stdout)["folders"]
    assert isinstance(folder, dict)
    return folder


# `.history/`


def test_a_replaced_text_is_a_read_only_file_with_its_own_time_and_size(
    shared: Daemon, here: Path
) -> None:
    note = here / "note.md"
    note.write_bytes(b"one")
    os.utime(note, ns=(5, 1_700_000_000_123_456_789))
    note.chmod(0o640)
    note.write_bytes(b"second")
    [name] = kept(shared, note)
    version = past(shared, note) / name
    found = version.stat()
    assert (found.st_size, found.st_mtime_ns) == (3, 1_700_000_000_123_456_789)
    assert (found.st_mode, name[-3:]) == (0o100440, ".md")
    assert past(shared, note).stat().st_mode == 0o40500
    assert found.st_ino == version.stat().st_ino < 2**53
    shutil.copyfile(version, note)
    assert note.read_bytes() == b"one"
    assert b"second" in kept(shared, note).values()


def test_removed_files_and_directories_stay_in_history(shared: Daemon, here: Path) -> None:
    deep = here / "deep" / "er"
    deep.mkdir(parents=True)
    (deep / "note.md").write_bytes(b"gone")
    shutil.rmtree(here / "deep")
    assert list(kept(shared, deep / "note.md").values()) == [b"gone"]
    assert os.listdir(past(shared, here / "deep")) == ["er"]


def test_history_is_in_a_folders_top_alone_and_can_be_walked(shared: Daemon, here: Path) -> None:
    (here / "note.md").write_bytes(b"needle one")
    (here / "note.md").write_bytes(b"needle two")
    assert not (here / ".history").exists()
    walked = subprocess.run(["grep", "-r", "needle"], cwd=shared.root, capture_output=True)
    assert walked.stdout == f"{here.name}/note.md:needle two\n".encode()
    assert ".history" not in os.listdir(shared.root)  # and is there all the same
    for command in (["find", "."], ["du", "-a", "."], ["grep", "-rl", "needle", "."]):
        done = subprocess.run(
            command, cwd=shared.root / ".history", capture_output=True, check=True, text=True
        )
        assert f"{here.name}/note.md/2" in done.stdout


def test_nothing_in_history_can_be_changed(shared: Daemon, here: Path) -> None:
    note = here / "note.md"
    note.write_bytes(b"one")
    note.write_bytes(b"two")
    directory = past(shared, note)
    version = next(directory.iterdir())
    for call in (
        lambda: version.unlink(),
        lambda: version.write_bytes(b"x"),
        lambda: version.chmod(0o600),
        lambda: os.utime(version),
        lambda: os.truncate(version, 0),
        lambda: os.setxattr(version, "user.x", b"y"),
        lambda: version.rename(here / "taken"),
        lambda: note.rename(directory / "new"),
        lambda: (directory / "new").write_bytes(b"x"),
        lambda: (directory / "new").mkdir(),
        lambda: (directory / "new").symlink_to("x"),
        lambda: directory.rmdir(),
        lambda: (shared.root / ".history").rmdir(),
        lambda: (shared.root / ".history").rename(shared.root / "h"),
        lambda: note.rename(here / ".history"),
        lambda: (here / ".history").mkdir(),
    ):
        assert errno_of(call) == EPERM
    assert list(kept(shared, note).values()) == [b"one"]


def test_a_version_that_is_open_when_its_time_is_up_reads_on_or_is_stale(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        note = daemon.root / "note.md"
        note.write_bytes(b"a" * 1_000_000)
        note.write_bytes(b"two")
        [name] = kept(daemon, note)
        with open(past(daemon, note) / name, "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            assert run(daemon, "history", "--keep-days", "0").returncode == 0
            try:
                assert set(file.read()) <= set(b"a")
            except OSError as error:
                assert error.errno == 116  # noqa: PT017 - either is right
        wait_until(lambda: kept(daemon, note) == {})
        assert note.read_bytes() == b"two"


# Who has read what


def test_a_save_over_what_its_writer_has_not_read_is_a_conflict(
    shared: Daemon, here: Path, programs: list[Program]
) -> None:
    note, (one, two) = here / "note.md", programs
    before = status(shared)["conflicts"]
    one.do("save", note, "text of one")
    two.do("save", note, "text of two")
    assert conflicts(shared, note) == [b"text of one"]
    assert status(shared)["conflicts"] == before + 1
    assert "in conflict" in (shared.root / ".status").read_text()
    two.do("save", note, "another of two")
    assert len(conflicts(shared, note)) == 1


def test_an_editor_that_read_before_the_others_save_is_blind_to_it(
    shared: Daemon, here: Path, programs: list[Program]
) -> None:
    note, (one, two) = here / "note.md", programs
    one.do("save", note, "first")
    assert two.do("read", note) == "first"
    one.do("save", note, "second")
    two.do("save", note, "from the first")
    assert conflicts(shared, note) == [b"second"]


@pytest.mark.parametrize("how", ["save", "rename", "backup"])
def test_who_has_read_it_may_replace_it(
    shared: Daemon, here: Path, programs: list[Program], how: str
) -> None:
    note, (one, two) = here / "note.md", programs
    for number in range(3):
        one.do("save", note, f"one {number}")
        two.do("read", note)
        two.do(how, note, f"two {number}")
        one.do("read", note)
    assert conflicts(shared, note) == []
    assert len(kept(shared, note)) >= 5


@pytest.mark.parametrize("how", ["rename", "backup"])
def test_a_save_by_rename_may_be_blind_as_well(
    shared: Daemon, here: Path, programs: list[Program], how: str
) -> None:
    note, (one, two) = here / "note.md", programs
    one.do("save", note, "text of one")
    two.do(how, note, "text of two")
    assert conflicts(shared, note) == [b"text of one"]
    one.do(how, note, "once more")
    assert conflicts(shared, note) == [b"text of one", b"text of two"]


def test_a_child_reads_for_its_parent(shared: Daemon, here: Path, programs: list[Program]) -> None:
    note, (one, two) = here / "note.md", programs
    one.do("save", note, "text of one")
    two.do("child", note)
    two.do("save", note, "text of two")
    assert conflicts(shared, note) == []


def test_commands_that_follow_one_another_are_one_writer(shared: Daemon, here: Path) -> None:
    """An agent, or a script: each command is a process of its own and has ended before the next."""
    note = here / "note.md"
    for number in range(3):
        subprocess.run(["cp", "/dev/stdin", note], input=b"%d" % number, check=True)
    assert conflicts(shared, note) == []
    assert list(kept(shared, note).values()) == [b"0", b"1"]


def test_what_is_added_is_no_conflict(shared: Daemon, here: Path, programs: list[Program]) -> None:
    note, (one, two) = here / "note.md", programs
    one.do("save", note, "text\\n")
    two.do("add", note, "line\\n")
    one.do("add", note, "line\\n")
    two.do("save", note, "text\\nline\\nline\\nand more\\n")
    assert conflicts(shared, note) == []


def test_a_text_that_another_has_not_saved_yet_is_saved_before_it_is_cut(
    shared: Daemon, here: Path, programs: list[Program]
) -> None:
    note = here / "note.md"
    descriptor = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(descriptor, b"not saved yet\n")
        programs[0].do("save", note, "another")
        os.write(descriptor, b" line\n")
    finally:
        os.close(descriptor)
    assert note.read_bytes() == b"another line\n"
    assert b"not saved yet\n" in kept(shared, note).values()


EDITOR = """
import os, sys
path, name = sys.argv[1:]
for number in range(40):
    descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
    for part in range(3):
        os.write(descriptor, b"%s %d %d\\n" % (name.encode(), number, part))
    os.close(descriptor)
"""

APPENDER = """
import os, sys
path, name = sys.argv[1:]
for number in range(1000):
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, b"%s line %d\\n" % (name.encode(), number))
    os.close(descriptor)
"""


def test_of_two_editors_and_two_appenders_every_text_and_line_can_be_had_back(
    tmp_path: Path,
) -> None:
    with Daemon(tmp_path) as daemon:
        note = daemon.root / "note.md"
        note.write_bytes(b"before\n")
        roles = [(EDITOR, "ann"), (EDITOR, "bob"), (APPENDER, "log"), (APPENDER, "job")]
        running = [
            subprocess.Popen([sys.executable, "-c", program, note, name]) for program, name in roles
        ]
        assert [one.wait() for one in running] == [0] * 4
        texts = [*kept(daemon, note).values(), note.read_bytes()]
        held = b"\0".join(texts)
        lines = [b"%s line %d\n" % (name, n) for name in (b"log", b"job") for n in range(1000)]
        assert [line for line in lines if line not in held] == []
        for name in (b"ann", b"bob"):
            for number in range(40):
                parts = [b"%s %d %d\n" % (name, number, part) for part in range(3)]
                # A text that was finished and is held is held whole. Where the same editor saved
                # thrice in a row it is not, but maybe how far it was when another saved amid it.
                finished = parts[-1] in held or number == 39
                assert not finished or [part for part in parts if part not in held] == []
        assert texts[0] == b"before\n"


def test_two_editors_that_take_turns_are_in_conflict_once_each_time(
    shared: Daemon, here: Path, programs: list[Program]
) -> None:
    note, log = here / "note.md", here / "log.md"
    log.write_bytes(b"")
    before = status(shared)["conflicts"]
    for number in range(10):
        programs[0].do("save", note, f"ann {number}")
        programs[1].do("save", note, f"bob {number}")
        programs[0].do("add", log, f"ann {number} ")
        programs[1].do("add", log, f"bob {number} ")
    texts = [f"{name} {n}".encode() for n in range(10) for name in ("ann", "bob")]
    assert list(kept(shared, note).values()) == texts[:-1]
    assert conflicts(shared, note) == texts[:-1]
    assert status(shared)["conflicts"] == before + 19
    assert log.read_bytes().split() == b" ".join(texts).split()


def test_two_appenders_that_keep_the_file_open_lose_nothing(shared: Daemon, here: Path) -> None:
    log = here / "log"
    log.write_bytes(b"")
    program = (
        "import os,sys\nd=os.open(sys.argv[1],os.O_WRONLY|os.O_APPEND)\n"
        "for n in range(1000): os.write(d,b'%s %d\\n'%(sys.argv[2].encode(),n))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, log, name]) for name in ("ann", "bob")
    ]
    assert [one.wait() for one in running] == [0, 0]
    lines = log.read_bytes().splitlines()
    for name in (b"ann", b"bob"):
        assert [line for line in lines if line.startswith(name)] == [
            b"%s %d" % (name, n) for n in range(1000)
        ]
    assert conflicts(shared, log) == []


# Undo


def test_undo_of_the_last_save_shows_in_the_mount(shared: Daemon, here: Path) -> None:
    note = here / "note.md"
    note.write_bytes(b"one")
    note.write_bytes(b"two")
    assert note.read_bytes() == b"two"
    done = run(shared, "undo", str(note))
    assert (done.returncode, done.stderr) == (0, "")
    wait_until(lambda: note.read_bytes() == b"one")
    run(shared, "undo", str(note))
    wait_until(lambda: note.read_bytes() == b"two")


def test_a_save_over_an_undo_that_its_writer_has_not_seen_is_a_conflict(
    shared: Daemon, here: Path, programs: list[Program]
) -> None:
    note, (one, _) = here / "note.md", programs
    one.do("save", note, "first")
    one.do("save", note, "second!")
    run(shared, "undo", str(note))
    wait_until(lambda: note.stat().st_size == len("first"))
    one.do("save", note, "third")
    assert conflicts(shared, note) == [b"first"]


def test_undo_of_rm_r_brings_back_500_files(shared: Daemon, here: Path) -> None:
    directory = here / "project"
    texts = {f"{n % 7}/{n}.md": b"text %d\n" % n * (n % 40) for n in range(500)}
    for name, text in texts.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(text)
    (directory / "0" / "0.md").chmod(0o755)
    subprocess.run(["rm", "-r", directory], check=True)
    assert not directory.exists()
    done = run(shared, "undo", str(directory))
    assert done.stdout.count("is there again") == 500
    wait_until(lambda: (directory / "6").exists())
    found = {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }
    assert found == texts
    assert (directory / "0" / "0.md").stat().st_mode == 0o100755


@pytest.mark.parametrize("editor", ["vim", "emacs", "sed"])
def test_undo_of_an_editors_save(shared: Daemon, here: Path, editor: str) -> None:
    if shutil.which(editor) is None:
        pytest.skip(f"{editor} is not installed")
    note = here / "note.md"
    note.write_bytes(b"one\n")
    os.setxattr(note, "user.geniuz.label.channel", b"claude")
    for _ in range(2):
        edit(editor, note)
    assert next(iter(kept(shared, note).values())) == b"one\n"
    assert os.getxattr(note, "user.geniuz.label.channel") == b"claude"
    last = list(kept(shared, note).values())[-1]
    now = note.read_bytes()
    assert now not in (last, b"one\n")
    assert run(shared, "undo", str(note)).returncode == 0
    wait_until(lambda: note.read_bytes() == last)
    assert list(kept(shared, note).values())[-1] == now
    assert [name for name in os.listdir(past(shared, here)) if name != "note.md"] == []


def edit(editor: str, note: Path) -> None:
    """Put a word before the text."""
    commands = {
        "vim": ["vim", "-Nu", "NONE", "-es", "--cmd", "set backup", "-c", "normal Ix ", "-c", "wq"],
        "emacs": ["emacs", "-Q", "--batch"],
        "sed": ["sed", "-i", "s/^/x /"],
    }
    command = commands[editor]
    if editor == "emacs":
        command += [str(note), "--eval", '(progn (insert "x ") (save-buffer))']
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    else:
        subprocess.run([*command, str(note)], check=True, capture_output=True, timeout=60)


# What a crash leaves


def test_a_killed_daemon_leaves_content_and_versions_that_agree(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    daemon.root.mkdir(parents=True)
    program = (
        "import os,sys\n"
        "n=0\n"
        "while True:\n"
        "  d=os.open(sys.argv[1],os.O_WRONLY|os.O_CREAT|os.O_TRUNC)\n"
        "  os.write(d,b'%s %08d\\n'%(sys.argv[2].encode(),n)*900); os.close(d); n+=1\n"
    )
    try:
        for _ in range(4):
            daemon.start()
            note = daemon.root / "note.md"
            running = [
                subprocess.Popen(
                    [sys.executable, "-c", program, note, name], stderr=subprocess.DEVNULL
                )
                for name in ("ann", "bob")
            ]
            wait_until(lambda: versions_listed(daemon) > 20)
            assert daemon.process is not None
            daemon.process.send_signal(signal.SIGKILL)
            for one in running:
                one.wait()
            daemon.kill()
            daemon.check()
        database = Database.open(daemon.database_path)
        try:
            files, view = Files(database), database.view
            assert len(files.kept("note.md")) > 20
            for version in histories.at(view, b"note.md"):
                read = b"".join(versions.read(view, version))
                assert len(read) == version.size
        finally:
            database.close()
    finally:
        daemon.unmount()


def versions_listed(daemon: Daemon) -> int:
    directory = past(daemon, daemon.root / "note.md")
    return len(os.listdir(directory)) if directory.exists() else 0


def test_commands_find_the_folder_of_a_path_in_a_mount(tmp_path: Path) -> None:
    with Daemon(tmp_path, alone=None) as daemon:
        (daemon.root / "Work").mkdir()
        note = daemon.root / "Work" / "note.md"
        note.write_bytes(b"one\n")
        note.write_bytes(b"two\n")
        (daemon.root / "My memory" / "note.md").write_bytes(b"another\n")
        assert ".history" not in os.listdir(daemon.root)
        assert len(list((daemon.root / "Work" / ".history" / "note.md").iterdir())) == 1
        assert run(daemon, "history", str(note)).stdout.count("\n") == 1
        assert "-one" in run(daemon, "diff", str(note)).stdout
        assert run(daemon, "undo", str(note)).returncode == 0
        assert run(daemon, "history", "/note.md").returncode == 1
        assert run(daemon, "history", "--in", "Work", "note.md").stdout.count("\n") == 2
        wait_until(lambda: note.read_bytes() == b"one\n")
