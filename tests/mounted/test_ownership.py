"""Users, groups, permissions and the bits above them. The kernel checks; the mount keeps."""

import os
import socket
import stat
from errno import EACCES, ENXIO, EPERM
from pathlib import Path

import pytest

from tests.daemon import Daemon
from tests.mounted.calls import NOBODY, as_user, errno_as_user, errno_of

GROUP = 12_345

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as other users")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_what_a_user_makes_is_the_users(here: Path) -> None:
    def make() -> None:
        Path("file").write_bytes(b"mine")
        os.mkdir("directory")
        os.symlink("file", "symlink")
        os.mkfifo("fifo")

    as_user(here, make)
    for path in here.iterdir():
        status = os.lstat(path)
        assert (status.st_uid, status.st_gid) == (NOBODY, NOBODY), path


def test_modes_are_in_force_for_others(here: Path) -> None:
    secret = here / "secret"
    secret.write_bytes(b"for root")
    secret.chmod(0o600)
    (here / "closed").mkdir(mode=0o700)
    (here / "closed" / "file").write_bytes(b"")
    assert errno_as_user(here, lambda: open("secret").close()) == EACCES
    assert errno_as_user(here, lambda: os.truncate("secret", 0)) == EACCES
    assert errno_as_user(here, lambda: os.stat("closed/file")) == EACCES
    assert errno_as_user(here, lambda: os.listdir("closed")) == EACCES
    assert errno_as_user(here, lambda: os.chmod("secret", 0o666)) == EPERM
    assert errno_as_user(here, lambda: os.chown("secret", NOBODY, NOBODY)) == EPERM
    assert not as_user(here, lambda: os.access("secret", os.R_OK))
    secret.chmod(0o604)
    assert as_user(here, lambda: os.access("secret", os.R_OK))
    assert not as_user(here, lambda: os.access("secret", os.W_OK))
    assert as_user(here, lambda: Path("secret").read_bytes()) == b"for root"


def test_in_a_sticky_directory_only_owners_remove(here: Path) -> None:
    here.chmod(0o1777)
    (here / "root's").write_bytes(b"")
    as_user(here, lambda: Path("theirs").write_bytes(b""))
    assert errno_as_user(here, lambda: os.unlink("root's")) == EPERM
    assert errno_as_user(here, lambda: os.rename("root's", "taken")) == EPERM
    assert errno_as_user(here, lambda: os.rename("theirs", "root's")) == EPERM
    assert errno_as_user(here, lambda: os.unlink("theirs"), uid=NOBODY - 1) == EPERM
    assert errno_as_user(here, lambda: os.unlink("theirs")) == 0
    assert os.listdir(here) == ["root's"]


def test_a_setgid_directory_hands_its_group_down(here: Path) -> None:
    os.chown(here, 0, GROUP)
    here.chmod(0o2777)

    def make() -> None:
        Path("file").write_bytes(b"")
        os.mkdir("directory")
        os.symlink("file", "symlink")

    as_user(here, make)
    assert {os.lstat(path).st_gid for path in here.iterdir()} == {GROUP}
    assert os.stat(here / "directory").st_mode & stat.S_ISGID
    assert not os.stat(here / "file").st_mode & stat.S_ISGID


def test_a_write_clears_setuid_and_setgid(here: Path) -> None:
    program = here / "program"
    program.write_bytes(b"#!")
    os.chown(program, NOBODY, NOBODY)
    program.chmod(0o6755)

    def write() -> None:
        with open("program", "ab") as file:
            file.write(b"/bin/sh\n")

    as_user(here, write)
    assert mode_of(program) == 0o755
    program.chmod(0o6755)
    as_user(here, lambda: os.truncate("program", 2))
    assert mode_of(program) == 0o755


def test_a_chown_clears_setuid_and_setgid(here: Path) -> None:
    program = here / "program"
    program.write_bytes(b"")
    program.chmod(0o6755)
    os.chown(program, NOBODY, -1)
    assert mode_of(program) == 0o755
    program.chmod(0o6755)
    as_user(here, lambda: os.chown("program", -1, NOBODY))
    assert mode_of(program) == 0o755


def test_a_setuid_program_runs_as_its_owner(here: Path) -> None:
    program = here / "id"
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    os.chown(program, 4242, 4242)
    program.chmod(0o4755)

    def effective() -> bytes:
        read, write = os.pipe()
        child = os.posix_spawn(
            "./id", ["id", "-u"], {}, file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)]
        )
        os.waitpid(child, 0)
        return os.read(read, 100)

    assert as_user(here, effective) == b"4242\n"


def test_device_nodes_work(shared: Daemon, here: Path) -> None:
    os.mknod(here / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(here / "loop", stat.S_IFBLK | 0o600, os.makedev(7, 4095))
    (here / "null").write_bytes(b"away")
    assert (here / "null").read_bytes() == b""
    assert errno_as_user(here, lambda: os.mknod("mine", stat.S_IFCHR, os.makedev(1, 3))) == EPERM
    shared.stop()
    shared.start()
    assert stat.S_ISCHR(os.stat(here / "null").st_mode)
    assert os.stat(here / "null").st_rdev == os.makedev(1, 3)
    assert os.stat(here / "loop").st_rdev == os.makedev(7, 4095)


def test_a_fifo_connects_two_processes(here: Path) -> None:
    os.mkfifo(here / "fifo")
    assert errno_of(lambda: os.open(here / "fifo", os.O_WRONLY | os.O_NONBLOCK)) == ENXIO
    child = os.fork()
    if child == 0:
        os._exit(0 if (here / "fifo").write_bytes(b"through") == 7 else 1)
    assert (here / "fifo").read_bytes() == b"through"
    assert os.waitpid(child, 0)[1] == 0


def test_a_socket_accepts(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("socket")
        assert stat.S_ISSOCK(os.stat("socket").st_mode)
        server.listen()
        client.connect("socket")
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"heard")
            assert accepted.recv(10) == b"heard"


# Extended attributes


def test_xattrs_last_over_a_remount(shared: Daemon, here: Path) -> None:
    path = here / "file"
    path.write_bytes(b"")
    values = {
        "user.empty": b"",
        "user.note": bytes(range(256)),
        "user.large": b"x" * 65_536,
        "trusted.key": b"secret",
        "security.mark": b"sealed",
    }
    for name, value in values.items():
        os.setxattr(path, name, value)
    shared.stop()
    shared.start()
    assert {name: os.getxattr(path, name) for name in os.listxattr(path)} == values
    for name in values:
        os.removexattr(path, name)
    assert os.listxattr(path) == []


def test_an_ordinary_user_sees_no_trusted_xattrs(here: Path) -> None:
    path = here / "file"
    path.write_bytes(b"")
    path.chmod(0o666)
    os.setxattr(path, "trusted.key", b"secret")
    os.setxattr(path, "user.note", b"open")
    assert as_user(here, lambda: os.listxattr("file")) == ["user.note"]
    assert errno_as_user(here, lambda: os.getxattr("file", "trusted.key")) != 0
    assert errno_as_user(here, lambda: os.setxattr("file", "trusted.key", b"")) == EPERM
    assert errno_as_user(here, lambda: os.setxattr("file", "security.mark", b"")) == EPERM
    assert errno_as_user(here, lambda: os.setxattr("file", "user.note", b"changed")) == 0
    assert os.getxattr(path, "user.note") == b"changed"
