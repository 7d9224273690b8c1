"""Figures to read: one JSON object, or tables of rates, step times and ratios."""

import os
import platform
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

import apsw

from tests.bench.clients import Measured

REFERENCES = ("native", "floor")
PACKAGES = ("pyfuse3", "trio", "apsw", "geniuzfs")

Key = tuple[str, int]  # operation, clients


def machine() -> dict[str, object]:
    """Where it runs: kernel, number of CPUs, load average of the minute before, versions."""
    found: dict[str, object] = {
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "load_1min": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


@dataclass
class Results:
    """What was measured, by operation and clients, then target, then round (None: it failed)."""

    targets: list[str]
    rounds: dict[Key, dict[str, list[Measured | None]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    machine: dict[str, object] = field(default_factory=machine)

    def add(self, key: Key, target: str, measured: Measured | None) -> None:
        self.rounds.setdefault(key, {}).setdefault(target, []).append(measured)

    def valid(self, key: Key, target: str) -> list[Measured]:
        return [one for one in self.rounds[key].get(target, []) if one is not None]

    def ratio(self, key: Key, target: str, reference: str) -> float | None:
        """The median over the rounds of rate / the reference's rate in the same round."""
        pairs = zip(
            self.rounds[key].get(target, []), self.rounds[key].get(reference, []), strict=False
        )
        ratios = [ours.rate / theirs.rate for ours, theirs in pairs if ours and theirs]
        return statistics.median(ratios) if ratios else None


def summary(measured: list[Measured]) -> dict[str, object]:
    """Rates are steps a second; p50 and p99 are the medians over the rounds, in microseconds."""
    rates = [one.rate for one in measured]
    if not rates:
        return {"rates": []}
    return {
        "rates": [round(rate, 2) for rate in rates],
        "median": round(statistics.median(rates), 2),
        "best": round(max(rates), 2),
        "p50_us": round(statistics.median(one.p50_us for one in measured), 1),
        "p99_us": round(statistics.median(one.p99_us for one in measured), 1),
    }


def as_json(results: Results, settings: dict[str, object]) -> dict[str, object]:
    """machine, settings, results[target][operation][clients], ratios[..][..][..][reference]."""
    figures: dict[str, dict[str, dict[str, object]]] = {}
    ratios: dict[str, dict[str, dict[str, object]]] = {}
    for key in results.rounds:
        operation, clients = key[0], str(key[1])
        for target in results.targets:
            found = figures.setdefault(target, {}).setdefault(operation, {})
            found[clients] = summary(results.valid(key, target))
            to = {name: results.ratio(key, target, name) for name in results.targets}
            ratios.setdefault(target, {}).setdefault(operation, {})[clients] = {
                name: round(ratio, 3) for name, ratio in to.items() if ratio is not None
            }
    return {
        "machine": results.machine,
        "settings": settings,
        "results": figures,
        "ratios": ratios,
        "failures": results.failures,
    }


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def rate_cell(results: Results, key: Key, target: str) -> str:
    rates = [one.rate for one in results.valid(key, target)]
    return f"{number(statistics.median(rates))}/{number(max(rates))}" if rates else "-"


def time_cell(results: Results, key: Key, target: str) -> str:
    measured = results.valid(key, target)
    if not measured:
        return "-"
    p50 = statistics.median(one.p50_us for one in measured)
    p99 = statistics.median(one.p99_us for one in measured)
    return f"{number(p50)}/{number(p99)}"


def ratio_cell(results: Results, key: Key, target: str) -> str:
    ratios = [results.ratio(key, target, name) for name in REFERENCES]
    return "/".join("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)


def geniuz_cell(results: Results, key: Key, target: str) -> str:
    ratio = results.ratio(key, "geniuz", target)
    return "-" if ratio is None else f"{ratio:.2f}"


def mixed_cell(results: Results, key: Key, target: str) -> str:
    saves = results.valid(("mixed-saves", key[1]), target)
    reads = results.valid(("mixed-reads", key[1]), target)
    if not saves or not reads:
        return "-"
    rate = number(statistics.median(one.rate for one in saves))
    p50 = statistics.median(one.p50_us for one in reads) / 1000
    p99 = statistics.median(one.p99_us for one in reads) / 1000
    return f"{rate} {p50:.3f}/{p99:.3f}"


Cell = Callable[[Results, Key, str], str]


def table(title: str, keys: list[Key], cell: Cell, results: Results) -> str:
    head = ["", *results.targets]
    rows = [[key[0], *(cell(results, key, name) for name in results.targets)] for key in keys]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [title]
    for row in [head, *rows]:
        first = row[0].ljust(widths[0])
        rest = (text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join(lines)


def as_text(results: Results) -> str:
    parts = [", ".join(f"{name} {value}" for name, value in results.machine.items())]
    for clients in sorted({key[1] for key in results.rounds}):
        keys = [key for key in results.rounds if key[1] == clients]
        who = f"{clients} client{'s' if clients > 1 else ''}"
        titles: list[tuple[str, Cell]] = [
            (f"{who}, steps a second: median/best of the rounds", rate_cell),
            (f"{who}, microseconds a step: p50/p99", time_cell),
            (f"{who}, rate relative to {'/'.join(REFERENCES)} (above 1 is faster)", ratio_cell),
        ]
        if "geniuz" in results.targets:
            titles.append((f"{who}, geniuz's rate relative to each target", geniuz_cell))
        parts += [table(title, keys, cell, results) for title, cell in titles]
    if ("mixed-reads", 4) in results.rounds:
        title = "4 savers with fsync beside 4 readers: saves a second, reads' p50/p99 ms"
        parts.append(table(title, [("mixed", 4)], mixed_cell, results))
    return "\n\n".join(parts)


def complain(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr)
