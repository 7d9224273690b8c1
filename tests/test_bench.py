"""The benchmarks run, and print what their users read. How fast things are is not judged here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parent / "bench"


def printed(program: str, *arguments: str) -> Any:
    """The JSON that it prints. It must end well, which with something left mounted it can't."""
    done = subprocess.run(
        [sys.executable, str(BENCH / program), "--quick", "--json", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_the_bench_of_the_file_system_gives_rates_and_ratios() -> None:
    operations, targets = ["read", "create", "ls-again"], ["native", "floor", "geniuz"]
    found = printed("fs.py", "--targets", ",".join(targets), "--only", ",".join(operations))
    assert found["failures"] == []
    assert found["settings"]["rounds"] == 1
    assert found["machine"]["pyfuse3"]
    assert list(found["results"]) == list(found["ratios"]) == targets
    for target in targets:
        assert list(found["results"][target]) == operations
        for operation in operations:
            for clients in ("1", "4"):
                figures = found["results"][target][operation][clients]
                assert figures["median"] > 0
                assert figures["p50_us"] <= figures["p99_us"]
                assert list(found["ratios"][target][operation][clients]) == targets


def test_the_bench_of_lateness_gives_every_probe_for_both_waits() -> None:
    found = printed("lateness.py")
    assert found["failures"] == []
    assert found["machine"]["trio"]
    assert list(found["results"]) == ["idle", "sparse-1", "read+stat-1", "read+stat-4", "save-4"]
    for load, waits in found["results"].items():
        assert list(waits) == ["stock", "fast"]
        for figures in waits.values():
            assert (figures["rate"] > 0) == (load != "idle")
            assert list(figures["late"]) == ["timer", "socket", "thread", "call", "event"]
            for late in figures["late"].values():
                assert late["count"] > 0
                assert 0 <= late["p50_ms"] <= late["p99_ms"] <= late["max_ms"]
    assert list(found["idle_cpu"]) == ["stock", "fast"]


def test_the_bench_of_recall_gives_times_and_memory_for_each_size() -> None:
    found = printed("recall.py")
    assert list(found["results"]) == ["1000"]
    figures = found["results"]["1000"]
    assert figures["first_ms"] > 0
    for name in ("default", "words", "meaning", "beside a writer", "in process", "numpy"):
        assert 0 < figures[name]["p50"] <= figures[name]["p95"] <= figures[name]["max"]
    assert figures["before_mb"]["all"] < figures["after_mb"]["all"]


def test_the_bench_of_embedding_gives_ratios_to_the_bare_model() -> None:
    found = printed("embedding.py")
    assert found["ratios"]
    assert found["resident_mib"]


def test_the_bench_of_the_start_times_each_command_beside_bare_python() -> None:
    found = printed("start.py")
    assert found["memories"] > 0
    commands = ["keep", "recall after a keep", "recall", "recall --keyword"]
    assert list(found["results"]) == ["python -c pass", "import numpy", *commands]
    for figures in found["results"].values():
        assert 0 < figures["min"] <= figures["p50"] <= figures["p95"]


def test_the_bench_of_mcp_gives_starts_and_recalls_beside_what_they_stand_on() -> None:
    found = printed("mcp.py")
    assert list(found["results"]["cold start"]) == ["greeted", "listed", "python", "the sdk"]
    assert list(found["results"]["recall"]) == ["mount", "stdio", "http"]
    for figures in found["results"].values():
        for times in figures.values():
            assert 0 < times["p50"] <= times["p95"] <= times["max"]
