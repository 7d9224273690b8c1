"""Folders are backed up, exported and imported while they are mounted and written to."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from geniuzfs import runtime
from geniuzfs.api import Folder, Geniuz
from geniuzfs.config import Config
from geniuzfs.errors import UnsafePlace
from geniuzfs.store import content, paths
from geniuzfs.store.connection import Database
from geniuzfs.store.copying import Told
from tests.daemon import Daemon, listed, wait_until
from tests.mounted.comparing import differences

BALLAST = 20 * 1024 * 1024
"""Bytes: more than two steps of copying."""


def _program(home: Path) -> Geniuz:
    return runtime.geniuz(
        Config.from_environment({"GENIUZ_HOME": str(home), "XDG_RUNTIME_DIR": str(home)})
    )


def _quietly(_folder: Folder) -> AbstractContextManager[Told]:
    return nullcontext(lambda done, of: None)


class Saver:
    """Saves a new file a hundred times a second; `acknowledged`: how many closes have returned."""

    def __init__(self, directory: Path) -> None:
        self.acknowledged = 0
        self._directory = directory
        self._ends = threading.Event()

    @contextmanager
    def saving(self) -> Iterator[None]:
        thread = threading.Thread(target=self._save)
        thread.start()
        try:
            yield
        finally:
            self._ends.set()
            thread.join()

    def _save(self) -> None:
        while not self._ends.wait(0.01):
            number = self.acknowledged + 1
            (self._directory / f"{number}.md").write_text(f"save {number}")
            self.acknowledged = number


def test_a_backup_holds_each_save_acknowledged_before_it_and_ends_beside_savers(
    mount: Daemon, tmp_path: Path
) -> None:
    (mount.root / "ballast").write_bytes(os.urandom(BALLAST))
    geniuz = _program(mount.home)
    saver = Saver(mount.root)
    words = 0

    def told(_folder: Folder) -> AbstractContextManager[Told]:
        def one(_done: int, _of: int) -> None:
            nonlocal words
            words += 1
            then = saver.acknowledged
            wait_until(lambda: saver.acknowledged >= then + 5)  # they go on meanwhile

        return nullcontext(one)

    with saver.saving():
        wait_until(lambda: saver.acknowledged >= 50)
        before = saver.acknowledged
        (made,) = geniuz.copies.backups().backup(tmp_path / "x", None, told)
        after = saver.acknowledged
    assert words > 1
    assert after > before
    other = _program(tmp_path / "other")
    restored = other.copies.backups().restore(made.path, None, None)
    assert restored.folder.identity == geniuz.folder("My memory").identity
    database = Database.open(restored.folder.path)
    try:
        for number in range(1, before + 1):
            found = paths.find(database.view, b"%d.md" % number)
            assert found is not None
            assert content.read(database.view, found) == b"save %d" % number
        assert paths.find(database.view, b"%d.md" % after) is None  # it is of one moment
    finally:
        database.close()
    assert [one.left for one in other.check(None, repair=False)] == [[]]
    assert len(listed(mount.root)) == saver.acknowledged + 1


def test_nothing_is_written_into_a_mount_of_the_folders(mount: Daemon) -> None:
    geniuz = _program(mount.home)
    nowhere = mount.root / "copies"
    nowhere.mkdir()
    with pytest.raises(UnsafePlace):
        list(geniuz.copies.backups().backup(nowhere, None, _quietly))
    folder = geniuz.folder("My memory")
    with pytest.raises(UnsafePlace):
        geniuz.copies.exchange().export(folder, nowhere / "x", lambda done, of: None, packed=False)
    assert os.listdir(nowhere) == []


def _tree(root: Path) -> None:
    """Of everything that a file system holds, one."""
    (root / "d" / "empty").mkdir(parents=True)
    (root / "a.txt").write_bytes(b"text\n")
    os.link(root / "a.txt", root / "d" / "hard")
    os.symlink("../a.txt\udcff", root / "d" / "soft")
    os.link(root / "d" / "soft", root / "d" / "soft too", follow_symlinks=False)
    with (root / "hole").open("wb") as file:
        file.write(b"begin")
        file.seek(1_000_000)
        file.write(b"end")
        file.truncate(3_000_000)
    (root / "nothing but a hole").touch()
    os.truncate(root / "nothing but a hole", 70_000)
    (root / ("long " * 40)).mkdir()
    (root / ("long " * 40) / ("name " * 40)).write_bytes(os.urandom(200_000))
    (root / "bad\udcff \n%=").write_bytes(b"")
    os.mkfifo(root / "fifo")
    if os.geteuid() == 0:
        os.mknod(root / "device", 0o60600, os.makedev(300, 70_000))
        os.chown(root / "d" / "hard", 1234, 5_000_000)
    for name, value in {"user.geniuz.label.channel": b"claude", "user.a=%b": b"\x00\xff\n"}.items():
        os.setxattr(root / "a.txt", name, value)
        os.setxattr(root / "d" / "empty", name, value)
    (root / "a.txt").chmod(0o4750)
    (root / "d" / "empty").chmod(0o1700)
    for path, ns in (("a.txt", 1), ("hole", -1_500_000_000), ("d/empty", 10**18 + 1)):
        os.utime(root / path, ns=(ns, ns))
    os.utime(root / "d" / "soft", ns=(5, 123_456_789), follow_symlinks=False)
    os.utime(root / "d", ns=(5, 987_654_321_123_456_789))


def _run(home: Path, *words: str | Path, **streams: int | bytes | None) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "geniuzfs", *words],
        env={**os.environ, "GENIUZ_HOME": str(home)},
        capture_output=True,
        check=True,
        **streams,  # type: ignore[call-overload]
    )
    assert done.stderr == b""
    out: bytes = done.stdout
    return out


def _without_ours(lines: list[str]) -> list[str]:
    """Without what an archive holds beside the folder's files, and what a mount generates."""
    generated = (".geniuz", ".recall", ".find", ".memories", ".status", ".history")
    return [line for line in lines if not line.startswith(tuple(f"'{one}" for one in generated))]


def test_an_archive_is_the_same_tree_for_tar_and_when_it_is_imported(tmp_path: Path) -> None:
    options = ["--allow-other", "-o", "dev,suid"] if os.geteuid() == 0 else []
    with Daemon(tmp_path / "one", *options) as one:
        _tree(one.root)
        (one.root / ".memories" / "tea").write_text("Tea at four.")
        os.utime(one.root, ns=(7, 7_000_000_007))
        archive = tmp_path / "x.tar"
        archive.write_bytes(_run(one.home, "export", "-"))
        plain = tmp_path / "plain"
        plain.mkdir()
        try:
            os.setxattr(plain, "user.a", b"")
        except OSError:
            pytest.skip("the disk of the tests has no extended attributes")
        os.removexattr(plain, "user.a")
        extract = ["tar", "--xattrs", "--xattrs-include=*", "-xpf", str(archive)]
        done = subprocess.run(
            extract, cwd=plain, capture_output=True, errors="replace", check=False
        )
        said = [line for line in done.stderr.splitlines() if "implausibly old" not in line]
        assert said == []
        times = [line for line in _without_ours(differences(one.root, plain)) if "'.':" not in line]
        assert times == []
        assert (plain / "hole").stat().st_blocks < 100
        (plain / ".geniuz" / "folder.json").unlink()
        (plain / ".geniuz" / "memories.jsonl").unlink()
        (plain / ".geniuz").rmdir()
        other = tmp_path / "two" / "home"
        _run(other, "import", "-", input=archive.read_bytes())
        with Daemon(tmp_path / "two", *options) as two:
            assert _without_ours(differences(one.root, two.root)) == []
            kept = [name for name in os.listdir(two.root / ".memories") if name.endswith(".md")]
            assert kept == [
                name for name in os.listdir(one.root / ".memories") if name.endswith(".md")
            ]
