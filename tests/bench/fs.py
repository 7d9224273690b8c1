"""How fast is the file system, beside a native directory and beside pyfuse3's bare floor?

    python tests/bench/fs.py [--passthrough /path/to/passthrough_ll] [--json] [--quick]

All targets are up at once and take turns within each operation of each round, in an order that
moves on by one each round, so that a noisy minute hits all of them. A rate is steps a second of
all clients together: a step is one stat, one open+read+close, one whole save, one listing, one
`ls -l`, one file of 2 MiB. "mixed" is four savers with fsync beside four readers, all as fast as
they can. Most of a full run is `ls -l` on the floors without kernel timeouts: `--only` and
`--targets` leave things out. No figure is ever judged here. Exit status 1: something failed and
has no figures.
"""

import argparse
import contextlib
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run by its path, as a program

from tests.bench import clients, targets
from tests.bench.operations import DROP_CACHES, OPERATIONS, READ, SAVE, Many, Operation
from tests.bench.report import Results, as_json, as_text, complain

CLIENTS = (1, 4)
MIXED = "mixed"
NAMES = [operation.name for operation in OPERATIONS] + [MIXED]
NEED_MANY = {"readdir", "ls-first", "ls-again"}


@dataclass(frozen=True)
class Settings:
    """`seconds` a client works on one operation in one round; `entries` of the large directory."""

    rounds: int = 3
    seconds: float = 1.0
    entries: int = 10_000


QUICK = Settings(rounds=1, seconds=0.03, entries=200)


@dataclass(frozen=True)
class Run:
    """Clients that work at the same time; each group of them gives one row of the report."""

    groups: tuple[tuple[str, Operation, int], ...]

    def operations(self) -> list[Operation]:
        return [operation for _, operation, count in self.groups for _ in range(count)]


def runs(only: list[str]) -> list[Run]:
    singles = [operation for operation in OPERATIONS if operation.name in only]
    found = [Run(((one.name, one, count),)) for one in singles for count in CLIENTS]
    if MIXED in only:
        found.append(Run((("mixed-saves", SAVE, 4), ("mixed-reads", READ, 4))))
    return found


def fill(target: targets.Target, entries: int) -> Many:
    path = target.base / "many"
    path.mkdir()
    for number in range(entries):
        os.close(os.open(path / f"entry-{number:06d}", os.O_CREAT | os.O_WRONLY, 0o644))
    return Many(str(path), entries)


def measure(run: Run, target: targets.Target, many: Many, seconds: float, out: Results) -> None:
    """Add one round of figures; what fails is told, noted, and left without figures."""
    try:
        samples = iter(clients.run(run.operations(), target.base, many, seconds))
    except clients.ClientError as error:
        message = f"{target.name}: {run.groups[0][0]}, {run.groups[0][2]} clients: {error}"
        complain(message)
        out.failures.append(message)
        samples = iter(())
    for name, _, count in run.groups:
        group = [sample for _, sample in zip(range(count), samples, strict=False)]
        out.add((name, count), target.name, clients.together(group) if group else None)


def measure_all(up: list[targets.Target], todo: list[Run], settings: Settings) -> Results:
    results = Results([target.name for target in up])
    names = {name for run in todo for name, _, _ in run.groups}
    entries = settings.entries if names & NEED_MANY else 0
    many = {target.name: fill(target, entries) for target in up}
    for turn in range(settings.rounds):
        first = turn % len(up)
        for run in todo:
            for target in up[first:] + up[:first]:
                measure(run, target, many[target.name], settings.seconds, results)
    return results


def interrupt(_signal: int, _frame: FrameType | None) -> None:
    """The first SIGINT or SIGTERM unwinds everything; later ones must not stop the unwinding."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextlib.contextmanager
def all_up(
    names: list[str], directory: str | None, binary: str | None
) -> Iterator[list[targets.Target]]:
    with (
        tempfile.TemporaryDirectory(prefix="geniuz-bench-", dir=directory) as top,
        contextlib.ExitStack() as running,
    ):
        yield [
            running.enter_context(targets.started(name, Path(top).resolve(), binary))
            for name in names
        ]


def names_of(known: list[str]) -> Callable[[str], list[str]]:
    def parse(argument: str) -> list[str]:
        names = argument.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parse


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    known = list(targets.NAMES)
    parser.add_argument("--targets", type=names_of(known), help=f"of {','.join(known)}")
    parser.add_argument("--only", type=names_of(NAMES), help=f"of {','.join(NAMES)}")
    parser.add_argument("--passthrough", metavar="BINARY", help="libfuse's passthrough_ll")
    parser.add_argument("--rounds", type=int, help=f"default {Settings.rounds}")
    parser.add_argument("--seconds", type=float, help=f"default {Settings.seconds}")
    parser.add_argument("--entries", type=int, help=f"default {Settings.entries}")
    parser.add_argument("--quick", action="store_true", help="a smoke run of a few seconds")
    parser.add_argument("--directory", help="where temporary files go (default: $TMPDIR or /tmp)")
    parser.add_argument("--json", action="store_true", help="print one JSON object, no tables")
    return parser.parse_args()


def chosen_settings(args: argparse.Namespace) -> Settings:
    chosen = asdict(QUICK if args.quick else Settings())
    given = {name: getattr(args, name) for name in chosen if getattr(args, name) is not None}
    return Settings(**(chosen | given))


def chosen_operations(args: argparse.Namespace) -> list[str]:
    names: list[str] = args.only or NAMES
    if "ls-first" in names and not os.access(DROP_CACHES, os.W_OK):
        complain("ls-first is left out: only root can drop the kernel's caches")
        names = [name for name in names if name != "ls-first"]
    return names


def chosen_targets(args: argparse.Namespace) -> list[str]:
    if args.targets:
        return list(args.targets)
    return [name for name in targets.NAMES if name != "passthrough" or args.passthrough]


def main() -> int:
    args = arguments()
    settings, todo = chosen_settings(args), runs(chosen_operations(args))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the passthrough opens every inode
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        with all_up(chosen_targets(args), args.directory, args.passthrough) as up:
            results = measure_all(up, todo, settings)
    except targets.TargetError as error:
        complain(str(error))
        return 1
    except KeyboardInterrupt:
        complain("interrupted")
        return 130
    print(json.dumps(as_json(results, asdict(settings))) if args.json else as_text(results))
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
