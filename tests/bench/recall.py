"""How long does an answer take, and how much memory, at 1,000 to 1,000,000 passages?

A folder of made-up passages (tests.bench.corpus) is mounted by the real program, with a made-up
model in place of the helper, so that a question's own vector costs nothing. Questions are asked by
reading `.recall/<question>`: the first one after the start, then warm ones, on a quiet mount and
beside a writer who saves 100 notes a second through it. `words` and `meaning` are the same
questions in these modes; `in process` is the search alone, without mount and rendering; `numpy`
multiplies all vectors with the question's in float32, the plain scan without words or ranking.

    python -m tests.bench.recall [--json] [--quick] [--sizes N ...] [--keep DIR]

DIR keeps the folders, which take 0.3 ms a passage to make.
"""

import argparse
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run by its path, as a program

from geniuzfs.model import ROOT
from geniuzfs.recall.parts import Shelf, part
from geniuzfs.recall.query import parse
from geniuzfs.recall.search import search
from geniuzfs.store.connection import Database
from tests.bench.corpus import DIMENSION, MODEL, Corpus, fill
from tests.bench.report import machine
from tests.daemon import Daemon
from tests.notes import IDENTITY

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SAVES_A_SECOND = 100
_MODES = {"default": "", "words": "mode:words ", "meaning": "mode:meaning "}


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Milliseconds."""
    found = np.percentile(np.array(seconds) * 1000, [50, 95, 100])
    return {
        name: round(float(ms), 2) for name, ms in zip(("p50", "p95", "max"), found, strict=True)
    }


def timed(call: Callable[..., object], *arguments: object) -> float:
    """Seconds."""
    begun = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - begun


def ask(root: Path, question: str) -> str:
    return (root / ".recall" / question).read_text("utf-8")


@contextmanager
def writing(root: Path) -> Iterator[list[float]]:
    """Somebody who saves a note SAVES_A_SECOND times a second; yields the seconds each took."""
    ended = threading.Event()
    took: list[float] = []

    def save() -> None:
        number, due = 0, time.perf_counter()
        while not ended.is_set():
            due += 1 / SAVES_A_SECOND
            ended.wait(max(due - time.perf_counter(), 0))
            note = root / f"written {number % 50}.md"
            took.append(timed(note.write_text, f"note {number} of a writer"))
            number += 1

    writer = threading.Thread(target=save)
    writer.start()
    try:
        yield took
    finally:
        ended.set()
        writer.join()


def resident(pid: int) -> dict[str, float]:
    """Megabytes: all of it, and what is not pages of files."""
    status = Path(f"/proc/{pid}/status").read_text()
    held = dict(line.split(":", 1) for line in status.splitlines())
    return {
        name: round(int(held[field].split()[0]) / 1024, 1)
        for name, field in (("all", "VmRSS"), ("anonymous", "RssAnon"))
    }


def mounted(directory: Path, questions: list[str]) -> dict[str, Any]:
    """All that is measured through the mount."""
    # Without a learner: it would embed everything anew, for its model is the real one.
    quiet = {"GENIUZ_LEARN": "0"}
    with Daemon(directory, environment=quiet, program="tests.bench.made_up") as daemon:
        assert daemon.process is not None
        found: dict[str, Any] = {"before_mb": resident(daemon.process.pid)}
        found["first_ms"] = round(timed(ask, daemon.root, questions[0]) * 1000, 1)
        for question in questions[1:6]:
            ask(daemon.root, question)
        for name, mode in _MODES.items():
            found[name] = percentiles(
                [timed(ask, daemon.root, mode + question) for question in questions[6:]]
            )
        with writing(daemon.root) as took:
            found["beside a writer"] = percentiles(
                [timed(ask, daemon.root, question + " ") for question in questions[6:]]
            )
        found["saves beside it"] = percentiles(took)
        found["after_mb"] = resident(daemon.process.pid)
    return found


def in_process(path: Path, questions: list[str], count: int) -> dict[str, Any]:
    """The search alone, and the plain scan."""
    corpus = Corpus(3)
    vector = corpus.vectors([1])[0]
    database = Database.open(path)
    try:
        shelf = Shelf(IDENTITY, database)

        def once(question: str) -> None:
            query = parse(question, time.time_ns())
            with database.snapshot() as view:
                search([part(shelf, view, ROOT, query)], query, {MODEL: vector})

        once(questions[0])
        found = percentiles([timed(once, question) for question in questions[6:]])
    finally:
        database.close()
    every = np.random.default_rng(1).standard_normal((count, DIMENSION)).astype(np.float32)

    def plain() -> None:
        np.argpartition(every @ vector, -10)[-10:]

    return {"in process": found, "numpy": percentiles([timed(plain) for _ in range(20)])}


def folder(count: int, keep: Path) -> Path:
    """A folder of so many passages, made in `keep` unless it is there."""
    kept = keep / f"{count}" / "memory.db"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        making = kept.with_name("making.db")
        making.unlink(missing_ok=True)
        for done in fill(making, count, Corpus()):
            if sys.stderr.isatty():
                print(f"\rmaking {done:,} of {count:,}", end="", file=sys.stderr)
        making.rename(kept)
    return kept


def measure(count: int, keep: Path, asked: int) -> dict[str, Any]:
    """One size. The folder is copied before it is mounted, so that `keep` stays as it was made."""
    kept = folder(count, keep)
    questions = [question for question, _ in Corpus(2).questions(asked)]
    with tempfile.TemporaryDirectory(prefix="geniuzfs-recall-", dir=keep) as held:
        directory = Path(held)
        (directory / "home").mkdir()
        copy = Path(shutil.copy(kept, directory / "home" / "memory.db"))
        found = mounted(directory, questions)
        found |= in_process(copy, questions, count)
    return {**found, "database_mb": round(kept.stat().st_size / 1e6, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="1,000 passages and few questions")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    sizes, asked = ([1_000], 26) if given.quick else (given.sizes, 206)
    with tempfile.TemporaryDirectory(prefix="geniuzfs-corpus-") as made:
        keep = given.keep or Path(made)
        results = {str(count): measure(count, keep, asked) for count in sizes}
    if given.json:
        print(json.dumps({"machine": machine(), "results": results}))
        return
    for count, found in results.items():
        print(f"{int(count):,} passages")
        for name, figures in found.items():
            print(f"  {name:16} {figures}")


if __name__ == "__main__":
    main()
