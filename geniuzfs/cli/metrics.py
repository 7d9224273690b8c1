"""The state for Prometheus: in its text format, mostly for node_exporter's textfile collector.

Promises: a file is written whole or not at all, so that no scrape sees half of it.
"""

import json
from collections.abc import Callable, Iterator

import click

from geniuzfs.api import FolderStatus
from geniuzfs.cli.shown import Shown
from geniuzfs.errors import UsageError

try:
    from prometheus_client import CollectorRegistry, generate_latest, write_to_textfile
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
except ImportError as error:
    raise UsageError(
        "--metrics needs prometheus-client: pipx inject geniuzfs prometheus-client"
    ) from error

_FOLDER: dict[str, tuple[str, Callable[[FolderStatus], float]]] = {
    "files": ("Files in the folder.", lambda one: one.counts.files),
    "content_bytes": ("Bytes that its files hold.", lambda one: one.counts.bytes),
    "memories": ("Kept memories.", lambda one: one.counts.memories),
    "passages": ("Passages learned.", lambda one: one.counts.passages),
    "waiting_files": ("Files and memories to be learned.", lambda one: one.counts.due),
    "waiting_passages": ("Passages without a vector yet.", lambda one: one.counts.awaiting),
    "database_bytes": ("Size of memory.db.", lambda one: one.database_bytes),
    "wal_bytes": ("Size of its write-ahead log.", lambda one: one.wal_bytes),
}

_MOUNT = {
    "saves": "Saves since the mount began.",
    "questions": "Questions since the mount began.",
    "refused": "Questions that were malformed.",
    "warnings": "Warnings logged.",
    "errors": "Errors logged.",
}


class _Collector:
    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def collect(self) -> Iterator[Metric]:
        for name, (help_, count) in _FOLDER.items():
            gauge = GaugeMetricFamily(f"geniuzfs_{name}", help_, labels=["folder"])
            for folder in self._shown.folders:
                gauge.add_metric([folder.folder.name], count(folder))
            yield gauge
        yield self._oldest()
        yield from self._mounts()
        runs = float(bool(self._shown.learns.helper))
        yield GaugeMetricFamily("geniuzfs_helper_runs", "1: the model is held.", value=runs)

    def _oldest(self) -> Metric:
        help_ = "Seconds for which the oldest of what is due has waited."
        gauge = GaugeMetricFamily("geniuzfs_oldest_waits_seconds", help_, labels=["folder"])
        for folder in self._shown.folders:
            gauge.add_metric([folder.folder.name], folder.waits(self._shown.now_ns) or 0.0)
        return gauge

    def _mounts(self) -> Iterator[Metric]:
        answers = GaugeMetricFamily("geniuzfs_mount_answers", "1: it does.", labels=["mountpoint"])
        for path, counters in self._shown.mounts.items():
            answers.add_metric([str(path)], float(counters is not None))
        yield answers
        for name, help_ in _MOUNT.items():
            counter = CounterMetricFamily(f"geniuzfs_{name}", help_, labels=["mountpoint"])
            for path, counters in self._shown.mounts.items():
                if counters is not None:
                    counter.add_metric([str(path)], json.loads(counters)[name])
            yield counter


def write(shown: Shown, place: str) -> None:
    """Write `shown` to the file `place`, or to standard output for "-". Raises UsageError."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(shown))
    if place == "-":
        click.echo(generate_latest(registry).decode(), nl=False)
        return
    try:
        write_to_textfile(place, registry)
    except OSError as error:
        raise UsageError(f"{place} can't be written: {error.strerror}") from error
