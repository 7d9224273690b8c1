"""How late are other tasks beside a busy mount, with trio's stock wait and with the fast one?

    python tests/bench/lateness.py [--json] [--quick]

Two mounts are up at once, one with each wait, and take turns within each load of each round.
Beside each runs what a daemon has to do besides: a timer, a socket, results of threads, calls
from threads, events between tasks (tests/bench/probed.py). Figures are milliseconds between the
moment a task could have run and the moment it did. Last, the CPU time that a mount takes while
nothing happens at all. No figure is ever judged here; the aim is p99 below 1 ms for all but
timers, which trio rounds up to whole milliseconds, and no CPU time when idle. Exit status 1:
something failed and has no figures.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run by its path, as a program

from tests.bench import clients, operations, probed, targets
from tests.bench.fs import interrupt
from tests.bench.operations import Many, Operation, Step
from tests.bench.report import complain, machine

WAITS = ("stock", "fast")
SPARSE_S = 0.0008
SETTLE_S = 0.2
"""Load before and after the time that is measured."""

ANSWER_S = 30.0


@dataclass(frozen=True)
class Settings:
    """`seconds` that each load is measured in each round."""

    rounds: int = 3
    seconds: float = 2.0


QUICK = Settings(rounds=1, seconds=0.3)


@dataclass(frozen=True)
class Load:
    """Clients that all do the same, as fast as they can."""

    name: str
    clients: int
    prepare: Callable[[Many], Step]


def mixed(many: Many) -> Step:
    """By turns one stat of an open file and one open+read+close, both past the kernel's caches."""
    stat, [name] = operations.stat_uncached(many), operations.own_files(operations.SMALL_BYTES, 1)

    def step(number: int) -> None:
        if number % 2:
            stat(number)
        else:
            operations.fetch(name, operations.SMALL_BYTES, uncached=True)

    return step


def sparse(many: Many) -> Step:
    stat = operations.stat_uncached(many)

    def step(number: int) -> None:
        time.sleep(SPARSE_S)
        stat(number)

    return step


LOADS = (
    Load("idle", 0, mixed),
    Load("sparse", 1, sparse),
    Load("read+stat", 1, mixed),
    Load("read+stat", 4, mixed),
    Load("save", 4, operations.overwriter(operations.SMALL_BYTES, operations.OWN_FILES, False)),
)


@dataclass(frozen=True)
class Mount:
    """A running mount with probes, and the connection that asks it to measure."""

    target: targets.Target
    directory: Path
    control: socket.socket

    def request(self, seconds: float, *, probes: bool) -> bytes:
        return json.dumps({"seconds": seconds, "probes": probes}).encode() + b"\n"

    def answer(self) -> tuple[dict[str, list[float]], float]:
        """How late each probe was, in milliseconds, and the CPU seconds meanwhile."""
        received = b""
        while not received.endswith(b"\n"):
            more = self.control.recv(1 << 20)
            if not more:
                raise clients.ClientError("the mount ended")
            received += more
        found = json.loads(received)
        return found["late_ms"], found["cpu_seconds"]


@dataclass
class Figures:
    """Of one load and one wait: all rounds together. `rates`: the clients' steps a second."""

    late_ms: dict[str, list[float]] = field(
        default_factory=lambda: {name: [] for name in probed.NAMES}
    )
    rates: list[float] = field(default_factory=list)


@dataclass
class Results:
    loads: dict[str, dict[str, Figures]] = field(default_factory=dict)
    idle_cpu: dict[str, float] = field(default_factory=dict)
    """CPU seconds in one second of nothing at all, without probes."""
    failures: list[str] = field(default_factory=list)


def connected(path: Path) -> socket.socket:
    """Connect as soon as somebody listens there."""
    end = time.monotonic() + targets.START_S
    while True:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.connect(str(path))
        except OSError as error:
            made.close()
            if time.monotonic() > end:
                raise targets.TargetError(f"{path}: {error}") from error
            time.sleep(0.02)
        else:
            made.settimeout(ANSWER_S)
            return made


@contextlib.contextmanager
def mounted(wait: str, top: Path) -> Iterator[Mount]:
    directory = top / wait
    directory.mkdir()
    program = targets.HERE / "probed.py"
    command = [sys.executable, str(program), str(directory), wait]
    with (
        targets.served(wait, targets.Server(command, directory / "mount"), directory) as target,
        connected(directory / "control") as control,
    ):
        yield Mount(target, directory, control)


def prober(mount: Mount, seconds: float) -> Operation:
    """The other end of the `socket` probe. Its first step has the mount measure."""

    def prepare(_: Many) -> Step:
        connection = connected(mount.directory / "probe")

        def step(number: int) -> None:
            if number == 0:
                mount.control.sendall(mount.request(seconds, probes=True))
            time.sleep(probed.BEAT_S)
            connection.sendall(probed.STAMP.pack(time.monotonic_ns()))

        return step

    return Operation("prober", prepare)


def measure(load: Load, mount: Mount, seconds: float, out: Figures) -> None:
    """Add one round. Raises ClientError."""
    todo = [prober(mount, seconds), *[Operation(load.name, load.prepare)] * load.clients]
    samples = clients.run(todo, mount.target.base, Many("", 0), seconds + SETTLE_S)
    late_ms, _ = mount.answer()
    for name, late in late_ms.items():
        out.late_ms[name] += late
    out.rates.append(sum(sample.rate for sample in samples[1:]))


def measure_all(mounts: list[Mount], settings: Settings) -> Results:
    results = Results()
    for turn in range(settings.rounds):
        for load in LOADS:
            figures = results.loads.setdefault(title(load), {})
            for mount in mounts[turn % 2 :] + mounts[: turn % 2]:
                out = figures.setdefault(mount.target.name, Figures())
                try:
                    measure(load, mount, settings.seconds, out)
                except (clients.ClientError, OSError) as error:
                    results.failures.append(f"{mount.target.name}: {title(load)}: {error}")
                    complain(results.failures[-1])
    for mount in mounts:
        seconds = settings.rounds * settings.seconds
        mount.control.sendall(mount.request(seconds, probes=False))
        results.idle_cpu[mount.target.name] = mount.answer()[1] / seconds
    return results


def title(load: Load) -> str:
    return f"{load.name}-{load.clients}" if load.clients else load.name


def percentile(late_ms: list[float], share: float) -> float:
    return sorted(late_ms)[min(int(share * len(late_ms)), len(late_ms) - 1)]


def summary(late_ms: list[float]) -> dict[str, float]:
    if not late_ms:
        return {"count": 0}
    return {
        "count": len(late_ms),
        "p50_ms": round(percentile(late_ms, 0.50), 3),
        "p99_ms": round(percentile(late_ms, 0.99), 3),
        "max_ms": round(max(late_ms), 3),
    }


def as_json(results: Results, settings: Settings) -> dict[str, object]:
    """results[load][wait]: `rate`, and late[probe]; idle_cpu[wait]: CPU seconds a second."""
    return {
        "machine": machine(),
        "settings": asdict(settings),
        "results": {
            load: {
                wait: {
                    "rate": round(statistics.median(figures.rates or [0.0]), 1),
                    "late": {name: summary(late) for name, late in figures.late_ms.items()},
                }
                for wait, figures in waits.items()
            }
            for load, waits in results.loads.items()
        },
        "idle_cpu": {wait: round(used, 5) for wait, used in results.idle_cpu.items()},
        "failures": results.failures,
    }


def cell(late_ms: list[float]) -> str:
    if not late_ms:
        return "-"
    return f"{percentile(late_ms, 0.5):.2f}/{percentile(late_ms, 0.99):.2f}/{max(late_ms):.2f}"


def as_text(results: Results) -> str:
    heads = ["load", "wait", *probed.NAMES, "steps/s"]
    rows = [
        [
            load,
            wait,
            *(cell(figures.late_ms[probe]) for probe in probed.NAMES),
            f"{statistics.median(figures.rates or [0.0]):.0f}",
        ]
        for load, waits in results.loads.items()
        for wait, figures in waits.items()
    ]
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    lines = [
        ", ".join(f"{name} {value}" for name, value in machine().items()),
        "",
        "milliseconds late: p50/p99/max",
    ]
    for row in [heads, *rows]:
        lines.append("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)))
    used = ", ".join(f"{wait} {share:.4f}" for wait, share in results.idle_cpu.items())
    return "\n".join([*lines, "", f"CPU seconds a second, idle and without probes: {used}"])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, help=f"default {Settings.rounds}")
    parser.add_argument("--seconds", type=float, help=f"default {Settings.seconds}")
    parser.add_argument("--quick", action="store_true", help="a smoke run of some seconds")
    parser.add_argument("--directory", help="where temporary files go (default: $TMPDIR or /tmp)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, no table")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    chosen = QUICK if args.quick else Settings()
    settings = Settings(args.rounds or chosen.rounds, args.seconds or chosen.seconds)
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="geniuz-bench-", dir=args.directory) as top,
            contextlib.ExitStack() as running,
        ):
            mounts = [
                running.enter_context(mounted(wait, Path(os.path.realpath(top)))) for wait in WAITS
            ]
            results = measure_all(mounts, settings)
    except targets.TargetError as error:
        complain(str(error))
        return 1
    except KeyboardInterrupt:
        complain("interrupted")
        return 130
    print(json.dumps(as_json(results, settings)) if args.json else as_text(results))
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
