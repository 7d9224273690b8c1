"""A mount and a directory of the machine's own file system answer the same calls alike."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from tests.daemon import Daemon
from tests.mounted.calls import RENAME_EXCHANGE, RENAME_NOREPLACE, renameat2

EXAMPLES = int(os.environ.get("GENIUZ_TEST_EXAMPLES", "15"))

NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "e/a", "a", "d/a", "d", "e", "d/e", "d/e/a"])
OFFSETS = st.one_of(
    st.integers(0, 100), st.sampled_from([4095, 4096, 65_535, 65_536, 65_537, 131_072, 200_000])
)
BYTES = st.one_of(
    st.binary(min_size=1, max_size=20),
    st.builds(lambda byte, count: byte * count, st.binary(min_size=1, max_size=1), OFFSETS),
)
MODES = st.integers(0, 0o7777)
FLAGS = st.builds(
    lambda access, more: access | sum(more),
    st.sampled_from([os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR]),
    st.sets(st.sampled_from([os.O_CREAT, os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND])),
)
TIMES = st.integers(0, 4_000_000_000_000_000_000)
XATTRS = st.sampled_from(["user.one", "user.two", "user.", "unknown.x"])


class Seen(NamedTuple):
    """What is compared of a file. Times and directory sizes are each file system's own."""

    mode: int
    nlink: int
    uid: int
    gid: int
    size: int
    rdev: int


class Handle(NamedTuple):
    """One file, open on both sides."""

    native: int
    mounted: int


def seen(status: os.stat_result) -> Seen:
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return Seen(status.st_mode, status.st_nlink, status.st_uid, status.st_gid, size, status.st_rdev)


def answer(call: Callable[[], Any]) -> Any:
    """What a call returns, or the name of its errno."""
    try:
        return call()
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def everything(root: Path, *, times: bool = False) -> dict[str, Any]:
    """All that can be known of a tree by looking: name → attributes, xattrs, content, twins."""
    found: dict[str, Any] = {}
    twins: dict[int, str] = {}
    for path in sorted(root.rglob("*")):
        status, name = os.lstat(path), str(path.relative_to(root))
        content: Any = None
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(status.st_mode):
            content = os.readlink(path)
        xattrs = {
            attribute: os.getxattr(path, attribute, follow_symlinks=False)
            for attribute in os.listxattr(path, follow_symlinks=False)
        }
        own = (status.st_atime_ns, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        found[name] = (
            seen(status),
            content,
            xattrs,
            twins.setdefault(status.st_ino, name),
            own if times else None,
        )
    return found


class Differential(RuleBasedStateMachine):
    """Every rule makes one call on both sides. The subclass names the places."""

    native_root: Path
    daemon: Daemon
    runs = 0

    def __init__(self) -> None:
        super().__init__()
        cls = type(self)
        cls.runs += 1
        # One level down: a link to `..` stays within what is this run's own.
        self.native = self.native_root / str(cls.runs) / "top"
        self.mounted = self.daemon.root / str(cls.runs) / "top"
        for root in (self.native, self.mounted):
            root.mkdir(parents=True)
            for name in ("d", "e", "d/e"):
                (root / name).mkdir()
            (root / "a").write_bytes(b"large" * 20_000)
            (root / "d" / "a").write_bytes(b"small")
            os.link(root / "a", root / "e" / "a")
        self.handles: list[Handle] = []
        for name, flags in (("a", os.O_RDWR), ("d/a", os.O_RDWR | os.O_APPEND)):
            self.open_both(name, flags, 0)

    def same(self, call: Callable[[Path], Any]) -> Any:
        """Make a call below both roots; its answer, which must be one."""
        native, mounted = answer(lambda: call(self.native)), answer(lambda: call(self.mounted))
        assert mounted == native
        return native

    def same_by_handle(self, which: int, call: Callable[[int], Any]) -> Any:
        handle = self.handles[which % len(self.handles)]
        native, mounted = answer(lambda: call(handle.native)), answer(lambda: call(handle.mounted))
        assert mounted == native
        return native

    def open_both(self, name: str, flags: int, mode: int) -> None:
        def call(root: Path) -> int:
            return os.open(root / name, flags | os.O_NONBLOCK, mode)

        native, mounted = answer(lambda: call(self.native)), answer(lambda: call(self.mounted))
        if isinstance(native, int) and isinstance(mounted, int):
            self.handles.append(Handle(native, mounted))
        else:
            assert mounted == native

    def has_open(self) -> bool:
        return bool(self.handles)

    # Opening and closing

    @rule(name=NAMES, flags=FLAGS, mode=MODES)
    def open(self, name: str, flags: int, mode: int) -> None:
        if len(self.handles) > 5:
            self.close(0)
        self.open_both(name, flags, mode)

    @precondition(has_open)
    @rule(which=st.integers(0, 5))
    def close(self, which: int) -> None:
        handle = self.handles.pop(which % len(self.handles))
        os.close(handle.native)
        os.close(handle.mounted)

    # By handle

    @precondition(has_open)
    @rule(which=st.integers(0, 5), data=BYTES)
    def write(self, which: int, data: bytes) -> None:
        self.same_by_handle(which, lambda handle: os.write(handle, data))

    @precondition(has_open)
    @rule(which=st.integers(0, 5), data=BYTES, offset=OFFSETS)
    def pwrite(self, which: int, data: bytes, offset: int) -> None:
        self.same_by_handle(which, lambda handle: os.pwrite(handle, data, offset))

    @precondition(has_open)
    @rule(which=st.integers(0, 5), length=OFFSETS)
    def read(self, which: int, length: int) -> None:
        self.same_by_handle(which, lambda handle: os.read(handle, length))

    @precondition(has_open)
    @rule(which=st.integers(0, 5), length=OFFSETS, offset=OFFSETS)
    def pread(self, which: int, length: int, offset: int) -> None:
        self.same_by_handle(which, lambda handle: os.pread(handle, length, offset))

    @precondition(has_open)
    @rule(
        which=st.integers(0, 5),
        offset=OFFSETS,
        whence=st.sampled_from([os.SEEK_SET, os.SEEK_CUR, os.SEEK_END]),
    )
    def seek(self, which: int, offset: int, whence: int) -> None:
        def call(handle: int) -> int | None:
            # A directory's positions are each file system's own.
            is_directory = stat.S_ISDIR(os.fstat(handle).st_mode)
            return None if is_directory else os.lseek(handle, offset, whence)

        self.same_by_handle(which, call)

    @precondition(has_open)
    @rule(which=st.integers(0, 5), size=OFFSETS)
    def ftruncate(self, which: int, size: int) -> None:
        self.same_by_handle(which, lambda handle: os.ftruncate(handle, size))

    @precondition(has_open)
    @rule(which=st.integers(0, 5))
    def fsync(self, which: int) -> None:
        self.same_by_handle(which, os.fsync)

    @precondition(has_open)
    @rule(which=st.integers(0, 5))
    def fstat(self, which: int) -> None:
        self.same_by_handle(which, lambda handle: seen(os.fstat(handle)))

    @precondition(has_open)
    @rule(which=st.integers(0, 5), mode=MODES)
    def fchmod(self, which: int, mode: int) -> None:
        self.same_by_handle(which, lambda handle: os.fchmod(handle, mode))

    @precondition(has_open)
    @rule(which=st.integers(0, 5), atime_ns=TIMES, mtime_ns=TIMES)
    def futimens(self, which: int, atime_ns: int, mtime_ns: int) -> None:
        def call(handle: int) -> tuple[int, int]:
            os.utime(handle, ns=(atime_ns, mtime_ns))
            status = os.fstat(handle)
            return status.st_atime_ns, status.st_mtime_ns

        self.same_by_handle(which, call)

    @precondition(has_open)
    @rule(which=st.integers(0, 5), name=XATTRS, value=st.binary(max_size=10))
    def fsetxattr(self, which: int, name: str, value: bytes) -> None:
        self.same_by_handle(which, lambda handle: os.setxattr(handle, name, value))

    @precondition(has_open)
    @rule(which=st.integers(0, 5))
    def flistxattr(self, which: int) -> None:
        def call(handle: int) -> dict[str, bytes]:
            return {name: os.getxattr(handle, name) for name in os.listxattr(handle)}

        self.same_by_handle(which, call)

    # By name

    @rule(name=NAMES, size=OFFSETS)
    def truncate(self, name: str, size: int) -> None:
        self.same(lambda root: os.truncate(root / name, size))

    @rule(name=NAMES, data=BYTES)
    def append(self, name: str, data: bytes) -> None:
        def call(root: Path) -> int:
            handle = os.open(root / name, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
            try:
                return os.write(handle, data)
            finally:
                os.close(handle)

        self.same(call)

    @rule(name=NAMES)
    def read_all(self, name: str) -> None:
        def call(root: Path) -> bytes:
            handle = os.open(root / name, os.O_RDONLY | os.O_NONBLOCK)
            try:
                return os.read(handle, 1_000_000)
            finally:
                os.close(handle)

        self.same(call)

    @rule(name=NAMES, new=NAMES, flags=st.sampled_from([0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE]))
    def rename(self, name: str, new: str, flags: int) -> None:
        self.same(lambda root: renameat2(root / name, root / new, flags))

    @rule(name=NAMES, new=NAMES)
    def link(self, name: str, new: str) -> None:
        self.same(lambda root: os.link(root / name, root / new, follow_symlinks=False))

    @rule(name=NAMES, to=st.sampled_from(["a", "../b", "d", "nowhere", "d/e/a", "e", "../d"]))
    def symlink(self, name: str, to: str) -> None:
        self.same(lambda root: os.symlink(to, root / name))

    @rule(name=NAMES)
    def readlink(self, name: str) -> None:
        self.same(lambda root: os.readlink(root / name))

    @rule(name=NAMES)
    def unlink(self, name: str) -> None:
        self.same(lambda root: os.unlink(root / name))

    @rule(name=NAMES, mode=MODES)
    def mkdir(self, name: str, mode: int) -> None:
        self.same(lambda root: os.mkdir(root / name, mode))

    @rule(name=NAMES)
    def rmdir(self, name: str) -> None:
        self.same(lambda root: os.rmdir(root / name))

    @rule(name=NAMES, mode=MODES)
    def mkfifo(self, name: str, mode: int) -> None:
        self.same(lambda root: os.mkfifo(root / name, mode))

    @rule(name=NAMES, mode=MODES)
    def chmod(self, name: str, mode: int) -> None:
        self.same(lambda root: os.chmod(root / name, mode))

    @rule(name=NAMES, uid=st.integers(0, 3), gid=st.integers(0, 3))
    def chown(self, name: str, uid: int, gid: int) -> None:
        self.same(lambda root: os.chown(root / name, uid, gid, follow_symlinks=False))

    @rule(name=NAMES, atime_ns=TIMES, mtime_ns=TIMES)
    def utime(self, name: str, atime_ns: int, mtime_ns: int) -> None:
        def call(root: Path) -> tuple[int, int]:
            os.utime(root / name, ns=(atime_ns, mtime_ns), follow_symlinks=False)
            status = os.lstat(root / name)
            return status.st_atime_ns, status.st_mtime_ns

        self.same(call)

    @rule(name=st.one_of(NAMES, st.just(".")))
    def listdir(self, name: str) -> None:
        self.same(lambda root: sorted(os.listdir(root / name)))

    @rule(name=NAMES)
    def stat(self, name: str) -> None:
        self.same(lambda root: seen(os.lstat(root / name)))
        self.same(lambda root: seen(os.stat(root / name)))

    @rule(
        name=NAMES,
        attribute=XATTRS,
        value=st.binary(max_size=10),
        flags=st.sampled_from([0, 0, os.XATTR_CREATE, os.XATTR_REPLACE]),
    )
    def setxattr(self, name: str, attribute: str, value: bytes, flags: int) -> None:
        self.same(
            lambda root: os.setxattr(root / name, attribute, value, flags, follow_symlinks=False)
        )

    @rule(name=NAMES, attribute=XATTRS)
    def getxattr(self, name: str, attribute: str) -> None:
        self.same(lambda root: os.getxattr(root / name, attribute, follow_symlinks=False))

    @rule(name=NAMES, attribute=XATTRS)
    def removexattr(self, name: str, attribute: str) -> None:
        self.same(lambda root: os.removexattr(root / name, attribute, follow_symlinks=False))

    @rule(name=NAMES)
    def listxattr(self, name: str) -> None:
        self.same(lambda root: sorted(os.listxattr(root / name, follow_symlinks=False)))

    def teardown(self) -> None:
        try:
            assert everything(self.mounted.parent) == everything(self.native.parent)
        finally:
            while self.handles:
                self.close(0)
        expected = everything(self.native.parent)
        before = everything(self.mounted.parent, times=True)
        assert self.daemon.stop() == 0
        self.daemon.start()
        assert everything(self.mounted.parent) == expected
        assert everything(self.mounted.parent, times=True) == before


@pytest.mark.timeout(300)
def test_a_mount_answers_like_a_native_directory(tmp_path: Path) -> None:
    native_root = tmp_path / "native"
    native_root.mkdir()
    try:
        os.setxattr(native_root, "user.probe", b"")
    except OSError:
        pytest.skip(f"the file system of {tmp_path} knows no user xattrs to compare with")
    with Daemon(tmp_path) as daemon:
        places = {"native_root": native_root, "daemon": daemon, "runs": 0}
        run_state_machine_as_test(
            type("Places", (Differential,), places),
            settings=settings(
                derandomize=True,
                database=None,
                deadline=None,
                max_examples=EXAMPLES,
                stateful_step_count=60,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.generate,),  # to shrink a failure takes minutes of remounts
            ),
        )
