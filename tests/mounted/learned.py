"""A mount that learns: with a learner and a helper of its own, and a tiny model."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from geniuzfs.config import Config
from geniuzfs.embed import models
from geniuzfs.embed.client import Helper
from geniuzfs.errors import ModelUnavailable
from geniuzfs.store.connection import Database
from tests.daemon import Daemon, wait_until
from tests.embed.fake import tiny_model

LEARNED_SECONDS = 40.0


class Learned(Daemon):
    """A Daemon whose folders are learned by `geniuzfs learn`, with tiny_model's vectors.

    `model`: a directory made by tiny_model; None: one of 64 dimensions is made.
    """

    def __init__(
        self,
        directory: Path,
        *options: str,
        alone: str | None = "My memory",
        model: Path | None = None,
        environment: Mapping[str, str] | None = None,
        expected_log: str | None = None,
    ) -> None:
        runtime = directory / "runtime"
        set_up = {"GENIUZ_LEARN": "1", "XDG_RUNTIME_DIR": str(runtime), "GENIUZ_THREADS": "1"}
        set_up |= environment or {}
        super().__init__(
            directory, *options, alone=alone, environment=set_up, expected_log=expected_log
        )
        runtime.mkdir(parents=True)
        self.model = model or tiny_model(directory / "tiny")
        models.use(self.home, self.model)
        self.helper = Helper(Config.from_environment(self._environment))

    # Questions

    def ask(self, question: str, *, beneath: str = "") -> dict[str, Any]:
        """The answer of `.recall` as an object: see recall.render."""
        asked = f"{question} format:json".replace("%", "%25").replace("/", "%2F")
        found: dict[str, Any] = json.loads((self.root / beneath / ".recall" / asked).read_bytes())
        return found

    def cited(self, question: str, *, beneath: str = "") -> list[tuple[str, int, str]]:
        """(path, line, text) of each hit, best first."""
        hits = self.ask(question, beneath=beneath)["hits"]
        return [(hit["path"], hit["lines"][0], hit["text"]) for hit in hits]

    def last_line(self, question: str) -> str:
        """What the answer says of itself."""
        asked = quote(question, safe=" :,?")
        return (self.root / ".recall" / asked).read_text().splitlines()[-1]

    def state(self, path: str) -> str:
        return os.getxattr(self.root / path, "user.geniuz.state").decode()

    # What other processes do

    def started(self, *arguments: str, **more: Any) -> "subprocess.Popen[str]":
        """Another geniuzfs on the same data directory."""
        return subprocess.Popen(
            [sys.executable, "-m", "geniuzfs", *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def cli(self, *arguments: str) -> str:
        """What a command that must succeed prints."""
        process = self.started(*arguments)
        out, error = process.communicate(timeout=LEARNED_SECONDS)
        assert process.returncode == 0, error
        return out

    def learner(self) -> int | None:
        """The process that learns for this mount."""
        assert self.process is not None
        for status in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                held = status.read_text()
                pid, state, parent = int(held.split()[0]), *held.rpartition(")")[2].split()[:2]
                command = (status.parent / "cmdline").read_bytes().split(b"\0")
                if int(parent) == self.process.pid and state != "Z" and b"--follow" in command:
                    return pid
        return None

    def end_helper(self) -> None:
        """kill -9 to the process that holds the model, if there is one."""
        state = None
        with suppress(ModelUnavailable):  # where its socket can't even be
            state = self.helper.state(10)
        if state is not None:
            with suppress(ProcessLookupError):
                os.kill(state.pid, signal.SIGKILL)
            wait_until(lambda: (now := self.helper.state(10)) is None or now.pid != state.pid)

    # What is in the database

    def wait_learned(self) -> None:
        """Until nothing is due any more."""
        wait_until(lambda: self.waiting() == (0, 0), LEARNED_SECONDS)

    def waiting(self) -> tuple[int, int]:
        """Files that are due, passages without a vector."""
        sources, without = self.rows("SELECT (SELECT count(*) FROM due), count(*) FROM awaits")[0]
        return sources, without + self.unmarked()

    def unmarked(self) -> int:
        """Passages that no vector was asked for yet, since no model was ever chosen there."""
        chosen = self.rows("SELECT 1 FROM models WHERE wanted = 1")
        return 0 if chosen else self.rows("SELECT count(*) FROM passages")[0][0]

    def embedded(self) -> int:
        """Vectors ever stored, also those that are gone."""
        rows = self.rows("SELECT seq FROM sqlite_sequence WHERE name = 'vectors'")
        return int(rows[0][0]) if rows else 0

    def rows(self, sql: str) -> list[Any]:
        database = Database.open(self.database_path, wait=5)
        try:
            return database.view.rows(sql)
        finally:
            database.close()

    def __exit__(self, kind: object, *rest: object) -> None:
        try:
            super().__exit__(kind, *rest)
        finally:
            self.end_helper()
            self.helper.close()


def paragraphs(count: int, subject: str = "subject", first: int = 0) -> list[str]:
    """Texts that are all different, each with a word of its own."""
    return [f"Paragraph {n} speaks of {subject}{n} alone." for n in range(first, first + count)]


def files(root: Path, count: int, each: int = 1, subject: str = "subject") -> None:
    """`count` notes of `each` paragraphs beneath `root`."""
    root.mkdir(exist_ok=True)
    for number in range(count):
        held = paragraphs(each, subject, number * each)
        (root / f"{number}.md").write_text("\n\n".join(held) + "\n")
