"""An example of every command, and of every exit code: who adds a command adds a line here.

`{name}` stands for what `world` has made. Each example runs in a world of its own.
"""

import resource
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.embed import download, models
from tests.embed.fake import tiny_model
from tests.store.files import Files

SUCCEEDS = {
    "backup": "backup {empty}",
    "capture": "capture {big} --in Work",
    "check": "check",
    "completion": "completion bash",
    "diff": "diff /plan.md --in Work",
    "doctor": "doctor",
    "export": "export {empty} --in Work",
    "folder add": "folder add {elsewhere}",
    "folder archive": "folder archive Work",
    "folder describe": "folder describe 'All of it' --in Work",
    "folder list": "folder list",
    "folder move": "folder move Work {empty}",
    "folder new": "folder new Plans",
    "folder pin": "folder pin Work",
    "folder rename": "folder rename Work Office",
    "folder restore": "folder restore Old",
    "folder use": "folder use Work",
    "forget": "forget --memory {memory} --yes",
    "history": "history /plan.md --in Work",
    "import": "import {archive} --as Plans",
    "keep": "keep Tea at four. -p {memory}",
    "learn": "learn --in Work",
    "mcp install": "mcp install --client codex",
    "mcp serve": "mcp serve",
    "mcp status": "mcp status",
    "mcp uninstall": "mcp uninstall --client codex",
    "model download": "model download paraphrase-multilingual-MiniLM-L12-v2",
    "model list": "model list",
    "model use": "model use {model}",
    "mount": "mount {mount}",
    "recall": "recall --keyword tea",
    "restore": "restore {backup}",
    "service install": "service install {mount}",
    "service logs": "service logs",
    "service status": "service status",
    "service uninstall": "service uninstall",
    "status": "status",
    "umount": "umount {mount}",
    "undo": "undo /plan.md --in Work",
}
"""Command → how it is called, and does what it is for. (`mount` and `umount` are one test.)"""


class Failure(NamedTuple):
    """What goes wrong, by which call, after what was done to the world, and within what."""

    call: str
    before: Callable[["World"], object] = lambda world: None
    within: Callable[["World"], AbstractContextManager[None]] = lambda world: nullcontext()


class World(NamedTuple):
    """A data directory with some folders, and what else the examples name."""

    directory: Path
    geniuz: Geniuz
    names: dict[str, str]

    @property
    def home(self) -> Path:
        return self.geniuz.config.home

    @property
    def variables(self) -> dict[str, str]:
        return {
            "GENIUZ_HOME": str(self.home),
            # So that there is no helper, and no systemd of whoever runs the tests.
            "XDG_RUNTIME_DIR": str(self.directory / "no runtime"),
            "DBUS_SESSION_BUS_ADDRESS": "",
            "XDG_CONFIG_HOME": str(self.directory / "config"),
            "CODEX_HOME": str(self.directory / "codex"),  # an agent's, where nobody has one
        }

    def words(self, call: str) -> list[str]:
        return [word.format(**self.names) for word in shlex.split(call)]


def world(directory: Path) -> World:
    """ "My memory" with a memory, Work with a plan, Old (archived), Afar (not added), models and
    empty places.
    """
    home, elsewhere, empty = (directory / name for name in ("home", "elsewhere", "empty"))
    (directory / "no runtime").touch()
    geniuz = runtime.geniuz(Config.from_environment({"GENIUZ_HOME": str(home)}))
    held = geniuz.keep(None, "We have tea at four.")
    for name in ("Work", "Old"):
        geniuz.arranging.new(name)
    geniuz.arranging.archive(geniuz.folder("Old"))
    with closing(geniuz.open(geniuz.folder("Work"), wait=5)) as database:
        files = Files(database)
        files.save("plan.md", b"Tea at three.")
        files.save("plan.md", b"Tea at four.")
    for place in (elsewhere / "Afar", empty, home / models.DIRECTORY):
        place.mkdir(parents=True)
    other = runtime.geniuz(Config.from_environment({"GENIUZ_HOME": str(directory / "other")}))
    other.begin()
    shutil.move(other.arranging.new("Afar").path, elsewhere / "Afar" / "memory.db")
    (offered,) = download.OFFERS
    tiny_model(home / models.DIRECTORY / offered)
    names = {
        "memory": held.address,
        "elsewhere": str(elsewhere),
        "empty": str(empty),
        "model": str(tiny_model(directory / "tiny")),
        "mount": str(directory / "mount"),
        "backup": str(_backed_up(geniuz, directory / "work.geniuz")),
        "archive": str(_exported(geniuz, directory / "work.tar")),
        "big": str(_of_size(directory / "big.md", 1_900_000)),
    }
    return World(directory, geniuz, names)


def _backed_up(geniuz: Geniuz, path: Path) -> Path:
    (made,) = geniuz.copies.backups().backup(
        path, "Work", lambda _: nullcontext(lambda done, of: None)
    )
    return made.path


def _exported(geniuz: Geniuz, path: Path) -> Path:
    work = geniuz.folder("Work")
    geniuz.copies.exchange().export(work, path, lambda done, of: None, packed=False)
    return path


def _of_size(path: Path, size: int) -> Path:
    path.write_text("tea " * (size // 4))
    return path


def _changed(world: World, statement: str) -> None:
    with closing(sqlite3.connect(world.home / "memory.db", isolation_level=None)) as database:
        database.execute(statement)


def _damaged(path: Path) -> None:
    for beside in path.parent.glob(path.name + "-*"):
        beside.unlink()
    path.write_bytes(b"no database " * 1_000)


@contextmanager
def _locked(world: "World") -> Iterator[None]:
    """Another process's write lock."""
    program = (
        "import sqlite3, sys; held = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "held.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(world.home / "Work" / "memory.db")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"locked\n"
        yield
        other.communicate()


@contextmanager
def _small_files(_: "World") -> Iterator[None]:
    """No file of this process may grow beyond a megabyte."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


FAILS = {
    1: Failure("recall DEADBEEF:DEADBEEF"),
    2: Failure("keep ''"),
    3: Failure("folder new Work"),
    4: Failure("folder rename Work Office", within=_locked),
    5: Failure("keep -c @{big}", within=_small_files),
    6: Failure("keep tea", lambda world: _damaged(world.home / "memory.db")),
    7: Failure("umount {mount}"),
    8: Failure("check", lambda world: _changed(world, "UPDATE inodes SET nlink = 9")),
    9: Failure("model list", lambda world: (world.home / "models/chosen.json").write_text("?")),
    10: Failure(
        "keep tea --in Work",
        lambda world: shutil.copytree(world.home / "Work", world.home / "Copy"),
    ),
}
"""Exit code → the failure that gives it."""
