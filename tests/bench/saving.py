"""How fast are saves while what was saved before is being learned?

    python tests/bench/saving.py [--json] [--quick] [--rounds N] [--seconds S] [--passages N]

Two mounts in one run, each with the same savers: four processes that save files of 2 KiB, half of
them new and half over old ones, without fsync. One mount has nothing else to do (and no learner);
in the other the learner and the helper, with the shipped model, work through what was written
before, and through what is saved. Rounds alternate between the two. A rate is saves a second of
all savers together; a time is that of `close`, in which a save is committed. No figure is judged.
Exit status 1: something failed, or the learner was not at work in a round.
"""

import argparse
import json
import mmap
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run by its path, as a program

from geniuzfs.store.connection import Database
from tests.bench import clients, targets
from tests.bench.clients import TICK_NS, Measured, Sample
from tests.bench.corpus import Corpus
from tests.bench.operations import OWN_FILES, Many, Operation, Step, marked, own_files, text
from tests.bench.report import complain

SAVERS = 4
SAVE_BYTES = 2_048
A_FILE = 10
"""Passages of a file of the backlog."""

BIN_NS, BINS = 10_000, 100_000
"""Times of a close are counted to 10 microseconds, up to a second."""


@dataclass(frozen=True)
class Settings:
    """`passages`: written before, and to be learned meanwhile."""

    rounds: int = 5
    seconds: float = 3.0
    passages: int = 3_000


QUICK = Settings(rounds=1, seconds=0.2, passages=300)


class Saver:
    """One saver, which counts the times of its closes in memory that it shares with this process:
    what it sends at its end are times of whole saves.
    """

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 8 * BINS)
        self._counts = memoryview(self._shared).cast("Q")

    def prepare(self, _: Many) -> Step:
        names, body = own_files(SAVE_BYTES, OWN_FILES), text(SAVE_BYTES)
        clock = time.perf_counter_ns

        def step(number: int) -> None:
            name = f"new-{number}" if number % 2 else names[number % OWN_FILES]
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.write(descriptor, marked(number, body))
            begun = clock()
            os.close(descriptor)
            self._counts[min((clock() - begun) // BIN_NS, BINS - 1)] += 1

        return step

    def ticks(self) -> Counter[int]:
        """How many closes took how many TICK_NS."""
        each = BIN_NS // TICK_NS
        return Counter({bin_ * each: n for bin_, n in enumerate(self._counts) if n})


class Mount:
    """A mount and its database; `learns`: with a learner."""

    def __init__(self, top: Path, base: Path, *, learns: bool) -> None:
        self.base = base
        self.learns = learns
        self._home = top / "home"
        self._written = 0
        self._corpus = Corpus()

    def top_up(self, passages: int) -> None:
        """Have at least so many passages wait for their words or vectors."""
        missing = passages - self.work()["waiting"]
        texts = [text for text, _ in self._corpus.texts(max(int(missing), 0))]
        (self.base / "backlog").mkdir(exist_ok=True)
        for first in range(0, len(texts), A_FILE):
            self._written += 1
            path = self.base / "backlog" / f"{self._written}.md"
            path.write_text("\n\n".join(texts[first : first + A_FILE]))

    def work(self) -> dict[str, float]:
        """What waits, in passages (of a file that is due: A_FILE), what is done, and CPU
        seconds of those who do it.
        """
        database = Database.open(self._home / "memory.db", wait=10)
        try:
            with database.snapshot() as view:
                due, awaits, learned, vectors = view.row(
                    "SELECT (SELECT count(*) FROM due), (SELECT count(*) FROM awaits),"
                    " (SELECT coalesce(max(id), 0) FROM passages),"
                    " (SELECT coalesce(max(id), 0) FROM vectors)"
                )
        finally:
            database.close()
        return {
            "waiting": due * A_FILE + awaits,
            "learned": learned,
            "vectors": vectors,
            "learner_s": _cpu_seconds(self._home, "--follow"),
            "helper_s": _cpu_seconds(self._home, "geniuzfs.cli.serve"),
        }


def _cpu_seconds(home: Path, argument: str) -> float:
    """Of the processes with that argument and data directory."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            of_home = f"GENIUZ_HOME={home}\0".encode() in (process / "environ").read_bytes()
            if of_home and argument.encode() in (process / "cmdline").read_bytes().split(b"\0"):
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def mounted(top: Path, *, learns: bool) -> Iterator[Mount]:
    top.mkdir()
    (top / "runtime").mkdir()
    server = targets.geniuz(top)
    more = {
        "GENIUZ_LEARN": "1" if learns else "0",
        "XDG_RUNTIME_DIR": str(top / "runtime"),
        "GENIUZ_EMBED_IDLE": "5",
    }
    server = replace(server, env={**(server.env or {}), **more})
    with targets.served(top.name, server, top) as target:
        yield Mount(top, target.base, learns=learns)


def measure(mount: Mount, seconds: float) -> Measured:
    """One round: rates of saves, times of closes."""
    savers = [Saver() for _ in range(SAVERS)]
    operations = [Operation("save", saver.prepare) for saver in savers]
    samples = clients.run(operations, mount.base, Many("", 0), seconds)
    closes = [
        Sample(sample.rate, saver.ticks()) for sample, saver in zip(samples, savers, strict=True)
    ]
    return clients.together(closes)


def run(idle: Mount, learning: Mount, settings: Settings) -> dict[str, Any]:
    """Rounds by turns."""
    found: dict[str, list[dict[str, float]]] = {"idle": [], "learning": []}
    for turn in range(settings.rounds):
        pair = [("idle", idle), ("learning", learning)]
        for name, mount in pair if turn % 2 == 0 else reversed(pair):
            if mount.learns:
                mount.top_up(settings.passages)
            before = mount.work()
            figures = measure(mount, settings.seconds)
            after = mount.work()
            spent = {key: round(after[key] - before[key], 2) for key in before if key != "waiting"}
            if mount.learns and not (after["waiting"] and spent["learner_s"] + spent["helper_s"]):
                raise clients.ClientError("nothing was learned meanwhile")
            found[name].append({**asdict(figures), **spent, "load": os.getloadavg()[0]})
    medians = {
        name: {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        for name, rounds in found.items()
    }
    kept = medians["learning"]["rate"] / medians["idle"]["rate"]
    return {
        "settings": asdict(settings),
        "medians": medians,
        "kept": round(kept, 3),
        "rounds": found,
    }


def as_text(found: dict[str, Any]) -> str:
    lines = [
        f"{name:8} {figures['rate']:7.0f} saves a second, close p50 {figures['p50_us'] / 1000:.2f}"
        f" ms, p99 {figures['p99_us'] / 1000:.2f} ms; CPU s: learner {figures['learner_s']:.1f},"
        f" helper {figures['helper_s']:.1f}; load {figures['load']:.1f}"
        for name, figures in found["medians"].items()
    ]
    return "\n".join([*lines, f"kept: {found['kept']:.0%}"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, help=f"default {Settings.rounds}")
    parser.add_argument("--seconds", type=float, help=f"of a round, default {Settings.seconds}")
    parser.add_argument("--passages", type=int, help=f"default {Settings.passages}")
    parser.add_argument("--quick", action="store_true", help="a smoke run of some seconds")
    parser.add_argument("--directory", help="where temporary files go (default: $TMPDIR or /tmp)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    known = asdict(QUICK if given.quick else Settings())
    chosen = {name: getattr(given, name) or value for name, value in known.items()}
    try:
        with (
            tempfile.TemporaryDirectory(prefix="geniuz-bench-", dir=given.directory) as top,
            mounted(Path(top).resolve() / "idle", learns=False) as idle,
            mounted(Path(top).resolve() / "learning", learns=True) as learning,
        ):
            found = run(idle, learning, Settings(**chosen))
    except (clients.ClientError, targets.TargetError) as error:
        complain(str(error))
        return 1
    print(json.dumps(found) if given.json else as_text(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
