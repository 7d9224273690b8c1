"""Whether the data, the model and the clock are as they should be: what `geniuzfs doctor` asks.

Promises: each look takes seconds at most, whatever size the folders have, and changes nothing that
opening a folder would not. Every line that says what is wrong says the one command that mends it.
"""

import errno
import shlex
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from geniuzfs import durable
from geniuzfs.api.arranging import Arranging
from geniuzfs.config import Config
from geniuzfs.embed import models, place
from geniuzfs.errors import (
    AlreadyExists,
    FolderError,
    GeniuzError,
    StoreDamaged,
    StoreFault,
    TooNew,
)
from geniuzfs.folders import mounts, places
from geniuzfs.folders.registry import Folder, LeftOut, Seen
from geniuzfs.model import Finding
from geniuzfs.ports import Clock, Embedder
from geniuzfs.store import counts, schema
from geniuzfs.store.connection import Database

CHECK_SECONDS = 2.0
"""For SQLite's look at one folder's pages: some 500 MB."""

MODEL_SECONDS = 60.0
"""For a helper that has to start on a busy machine."""

_WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)
"""This program was not there before."""

_TIMES_STORED = 2  # as fs.volumes: what is saved goes into the log, then into the database


class Health:
    """Looks at the data directory that `config` names, and at what learning needs."""

    def __init__(
        self, config: Config, arranging: Arranging, clock: Clock, embedder: Embedder
    ) -> None:
        self._config = config
        self._arranging = arranging
        self._clock = clock
        self._embedder = embedder

    def findings(self) -> Iterator[Finding]:
        """One after the other, as they are found."""
        yield self._data()
        yield self._disk()
        if self._config.home.is_dir():
            yield from self._folders()
        yield self._clock_runs()
        yield self._runtime()
        yield from self._model()

    def _data(self) -> Finding:
        home = self._config.home
        holding = mounts.beneath(home.resolve(), mounts.mounts())
        kind = "" if holding is None else f" on {holding.type}"
        try:
            mounts.check_safe(home.resolve())
        except GeniuzError as error:
            return Finding("data", str(error), "export GENIUZ_HOME=/a/directory/on/a/local/disk")
        if not home.exists():
            return Finding("data", f"{home}{kind}: not there yet, the first mount makes it")
        try:
            durable.try_writing(home)
        except GeniuzError as error:
            cause = error.__cause__
            read_only = isinstance(cause, OSError) and cause.errno == errno.EROFS
            remount = _command(
                "sudo mount -o remount,rw", "/" if holding is None else holding.target
            )
            rights = _command("chmod u+rwx", home)
            return Finding("data", str(error), remount if read_only else rights)
        return Finding("data", f"{home}{kind}")

    def _disk(self) -> Finding:
        home = next(
            path for path in (self._config.home, *self._config.home.parents) if path.exists()
        )
        room, needed = shutil.disk_usage(home), _TIMES_STORED * self._config.content_limit
        said = f"{_size(room.free)} free of {_size(room.total)} ({room.free * 100 // room.total} %)"
        if room.free >= needed:
            return Finding("disk", said)
        wanted = f"{said}; a file of the largest size takes {_size(needed)}"
        largest = _command("du -xh --max-depth=2", Path.home())
        return Finding("disk", wanted, f"{largest} | sort -h | tail")

    def _folders(self) -> Iterator[Finding]:
        try:
            seen = self._arranging.seen()
        except GeniuzError as error:
            listed = self._config.home / places.FILE
            yield Finding("folders", str(error), _command("mv", listed, f"{listed}.bad"))
            return
        for folder in seen.folders:
            yield self._folder(folder)
        yield from _not_listed(seen, self._config.home)

    def _folder(self, folder: Folder) -> Finding:
        try:
            database = Database.open(folder.path)
            try:
                trouble = database.quick_check(CHECK_SECONDS)
            finally:
                database.close()
        except GeniuzError as error:
            return Finding(
                folder.name, str(error), _command("geniuzfs check --repair --in", folder.name)
            )
        if trouble:
            mend = _command("geniuzfs check --repair --in", folder.name)
            said = " ".join(trouble.split())  # SQLite's lines
            return Finding(folder.name, f"{folder.path} is damaged: {said}", mend)
        looked = (
            "sound" if trouble == "" else f"sound as far as {CHECK_SECONDS:g} s of looking went"
        )
        return Finding(folder.name, f"schema {schema.schema_files()[-1].number}, {looked}")

    def _clock_runs(self) -> Finding:
        now_ns, mend = self._clock.now_ns(), "sudo timedatectl set-ntp true"
        now = datetime.fromtimestamp(now_ns / 1e9, UTC)
        said = f"{now:%Y-%m-%d %H:%M} UTC"
        newest = max(self._each(counts.newest_ns), default=0)
        if now < _WRITTEN:
            return Finding("clock", f"{said} can't be", mend)
        if newest > now_ns:
            later = f"{datetime.fromtimestamp(newest / 1e9, UTC):%Y-%m-%d %H:%M}"
            return Finding("clock", f"{said} is before the newest change, of {later}", mend)
        return Finding("clock", said)

    def _each(self, ask: "Callable[..., int]") -> Iterator[int]:
        """Of every folder that can be read."""
        if not self._config.home.is_dir():
            return
        try:
            folders = self._arranging.seen().folders
        except GeniuzError:
            return
        for folder in folders:
            try:
                database = Database.open(folder.path)
            except GeniuzError:  # told already
                continue
            try:
                yield ask(database.view)
            finally:
                database.close()

    def _runtime(self) -> Finding:
        runtime = self._config.embedding.runtime
        try:
            place.prepare(runtime)
        except GeniuzError as error:
            return Finding("runtime directory", str(error), _command("chmod 700", runtime))
        return Finding("runtime directory", f"{runtime}, yours alone")

    def _model(self) -> Iterator[Finding]:
        default = "geniuzfs model use default"
        try:
            model = self._embedder.model()
            directory = (
                None if self._config.embedding.url else models.directory(self._config.home, model)
            )
            if directory is not None:
                models.checked(directory)
        except GeniuzError as error:
            yield Finding("model", str(error), default)
            return
        try:
            self._embedder.query("?", model, MODEL_SECONDS)
        except GeniuzError as error:
            mend = default if self._config.embedding.url is None else "ollama serve"
            yield Finding("model", f"{model} gives no vectors: {error}", mend)
            return
        yield Finding("model", f"{model}, sound")
        if self._config.embedding.url is None:
            yield Finding("helper", "answers")


def _not_listed(seen: Seen, home: Path) -> Iterator[Finding]:
    """What is no folder now: which of two copies is the folder, people decide; either stays."""
    away = [_command("mv", copies[-1].path.parent, Path.home()) for copies in seen.blocked]
    mends = away + [_mending(one, home) for one in seen.left_out]
    mends += ["geniuzfs folder list" for _ in seen.waiting]  # once the disk is there
    for line, mend in zip(seen.warnings(), mends, strict=True):
        yield Finding("folders", line, mend)


def _mending(one: LeftOut, home: Path) -> str:
    if issubclass(one.kind, TooNew):
        return "pipx upgrade geniuzfs"
    if issubclass(one.kind, StoreDamaged | StoreFault):
        return _command("geniuzfs check --repair --in", one.name)
    directory = one.path.parent
    if one.kind is AlreadyExists:
        return _command("geniuzfs folder rename", directory, f"{directory.name} 2")
    if one.kind is FolderError:  # a backup, or what a move has left
        return _command("mv", directory if directory != home else one.path, Path.home())
    return "geniuzfs check"


def _command(begun: str, *words: object) -> str:
    """What a shell takes as it is meant, whatever is in the words."""
    return " ".join((begun, *(shlex.quote(str(word)) for word in words)))


def _size(count: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count //= 1000
    return f"{count} GB"
