"""How long does a command take, from its start to its end, in a folder of 10,000 memories?

`python -c pass` and `import numpy` stand beside the commands in each round, since all of them pay
these. The helper is warm; the memories are made-up texts (tests.bench.corpus) with made-up vectors
under the real model's name, so that the question's own vector is the real model's. `recall` is
asked when all words are learned, as a mount's learner would have them; `recall after a keep` learns
the memory first that the `keep` of the same round has kept. A quiet machine's figure is the
minimum: what is above it is what else runs.

    python -m tests.bench.start [--json] [--quick] [--rounds N]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run by its path, as a program

from geniuzfs.embed import models
from geniuzfs.learn.backlog import Backlog
from geniuzfs.model import ROOT
from geniuzfs.store import memories, tree, vectors
from geniuzfs.store.connection import Database
from tests.bench.corpus import Corpus
from tests.bench.recall import timed
from tests.bench.report import machine

MEMORIES, ROUNDS = 10_000, 30
_QUICK = (200, 2)
_AT_ONCE = 1_000
_IDLE_SECONDS = "20"
"""After the last question the helper ends by itself."""


def fill(home: Path, count: int, corpus: Corpus) -> None:
    """A data directory whose first folder holds so many memories, all of them learned."""
    home.mkdir()
    database = Database.open(home / "memory.db", create=True)
    try:
        with database.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, os.getuid(), os.getgid()), 1)
            model = vectors.want(txn, models.chosen(home))
        for first in range(0, count, _AT_ONCE):
            with database.txn() as txn:
                for text, _ in corpus.texts(min(_AT_ONCE, count - first)):
                    memories.keep(txn, text, None, None, 1)
        backlog = Backlog(database)
        while backlog.step() or backlog.tidy():
            pass
        while rows := vectors.awaiting(database.view, _AT_ONCE):
            found = corpus.vectors([number % 64 for number, _ in rows])
            with database.txn() as txn:
                vectors.put(txn, model, [number for number, _ in rows], found)
        with database.txn() as txn:
            while vectors.seal(txn, model):
                pass
        database.checkpoint(hold_writers=True)
        assert tree.inode(database.view, ROOT) is not None
    finally:
        database.close()


class Commands:
    """What is measured, as processes of their own."""

    def __init__(self, directory: Path, questions: list[str]) -> None:
        self._questions = questions
        given = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self._environment = {
            **given,
            # An installed program has its bytecode, a checkout not always: 0.1 s for `recall`.
            "PYTHONPYCACHEPREFIX": str(directory / "bytecode"),
            "GENIUZ_HOME": str(directory / "home"),
            "XDG_RUNTIME_DIR": str(directory / "run"),
            "GENIUZ_EMBED_IDLE": _IDLE_SECONDS,
        }

    def of(self, turn: int) -> dict[str, tuple[str, ...]]:
        """The commands of one round, in their order."""
        program, question = ("-m", "geniuzfs"), self._questions[turn % len(self._questions)]
        return {
            "python -c pass": ("-c", "pass"),
            "import numpy": ("-c", "import numpy"),
            "keep": (*program, "keep", f"the note of round {turn}"),
            "recall after a keep": (*program, "recall", question),
            "recall": (*program, "recall", question),
            "recall --keyword": (*program, "recall", "--keyword", question),
        }

    def run(self, arguments: tuple[str, ...]) -> None:
        """Raises when it ends badly."""
        subprocess.run(
            [sys.executable, *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )


def measure(directory: Path, count: int, rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds by command."""
    fill(directory / "home", count, Corpus())
    (directory / "run").mkdir(mode=0o700)
    commands = Commands(directory, [question for question, _ in Corpus(2).questions(50)])
    for arguments in commands.of(-1).values():  # starts the helper, and fills the page cache
        commands.run(arguments)
    taken: dict[str, list[float]] = {}
    for turn in range(rounds):
        for name, arguments in commands.of(turn).items():
            taken.setdefault(name, []).append(timed(commands.run, arguments) * 1000)
    return {name: _figures(found) for name, found in taken.items()}


def _figures(milliseconds: list[float]) -> dict[str, float]:
    p50, p95 = np.percentile(milliseconds, [50, 95])
    found = {"min": min(milliseconds), "p50": float(p50), "p95": float(p95)}
    return {name: round(value, 1) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few memories and rounds")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    count, rounds = _QUICK if given.quick else (MEMORIES, given.rounds)
    with tempfile.TemporaryDirectory(prefix="geniuzfs-start-") as made:
        results: dict[str, Any] = measure(Path(made), count, rounds)
    if given.json:
        print(json.dumps({"machine": machine(), "memories": count, "results": results}))
        return
    print(f"{count:,} memories, {rounds} rounds, milliseconds: least, median, p95")
    for name, figures in results.items():
        print(f"  {name:20} {figures['min']:7.1f} {figures['p50']:7.1f} {figures['p95']:7.1f}")


if __name__ == "__main__":
    main()
