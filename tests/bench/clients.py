"""The clients: processes that are forked and ready before any of them starts its clock."""

import gc
import multiprocessing
import os
import shutil
import signal
import time
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path

from tests.bench.operations import Many, Operation, Step

TICK_NS = 100
PREPARE_LIMIT_S = 120.0


class ClientError(Exception):
    """A client failed or did not answer in time: this round of the operation has no figures."""


@dataclass(frozen=True)
class Sample:
    """One client's steps: how many a second, and how many took how many TICK_NS."""

    rate: float
    ticks: Counter[int]


@dataclass(frozen=True)
class Measured:
    """All clients of one operation in one round: steps a second together, and times of a step."""

    rate: float
    p50_us: float
    p99_us: float


def percentile_us(ticks: Counter[int], share: float) -> float:
    """The time that at least `share` of the steps stayed within, in microseconds."""
    wanted, seen = share * ticks.total(), 0
    for tick, count in sorted(ticks.items()):
        seen += count
        if seen >= wanted:
            return tick * TICK_NS / 1000
    raise ValueError("no steps")


def together(samples: Iterable[Sample]) -> Measured:
    rate, ticks = 0.0, Counter[int]()
    for sample in samples:
        rate += sample.rate
        ticks.update(sample.ticks)
    return Measured(rate, percentile_us(ticks, 0.50), percentile_us(ticks, 0.99))


def timed(step: Step, seconds: float) -> Sample:
    """Repeat the step for `seconds`, but at least once."""
    clock, times_ns = time.perf_counter_ns, array("Q")
    begin = now = clock()
    end, number = begin + int(seconds * 1e9), 0
    while not number or now < end:
        step(number)
        number += 1
        after = clock()
        times_ns.append(after - now)
        now = after
    ticks = Counter(spent // TICK_NS for spent in times_ns)
    return Sample(number / (now - begin) * 1e9, ticks)


def client(
    operation: Operation,
    own: Path,
    many: Many,
    seconds: float,
    barrier: Barrier,
    answer: Connection,
) -> None:
    """The body of a client process: sends one Sample, or the text of what went wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()
    try:
        own.mkdir()
        os.chdir(own)
        step = operation.prepare(many)
        barrier.wait(PREPARE_LIMIT_S)
        answer.send(timed(step, 0.0 if operation.once else seconds))
        shutil.rmtree(own)
    except Exception as error:  # noqa: BLE001 - whatever it was, the parent reports it
        barrier.abort()
        answer.send(f"{type(error).__name__}: {error}")


def receive(answers: list[Connection], limit_s: float) -> list[Sample]:
    """One Sample of each client, or ClientError with the failure that says most."""
    end = time.monotonic() + limit_s
    samples, failures = list[Sample](), list[str]()
    for answer in answers:
        if not answer.poll(max(0.0, end - time.monotonic())):
            raise ClientError(f"no answer in {limit_s:.0f} s")
        try:
            received = answer.recv()
        except EOFError:
            received = "a client ended without an answer"
        if isinstance(received, Sample):
            samples.append(received)
        else:
            failures.append(received)
    if failures:
        telling = [failure for failure in failures if "BrokenBarrier" not in failure]
        raise ClientError((telling or failures)[0])
    return samples


def run(operations: list[Operation], base: Path, many: Many, seconds: float) -> list[Sample]:
    """Run one client for each operation at the same time; their samples in the same order."""
    fork = multiprocessing.get_context("fork")
    barrier = fork.Barrier(len(operations))
    processes, answers = list[ForkProcess](), list[Connection]()
    try:
        for index, operation in enumerate(operations):
            mine, theirs = fork.Pipe(duplex=False)
            own = base / f"client-{index}"
            arguments = (operation, own, many, seconds, barrier, theirs)
            process = fork.Process(target=client, args=arguments, daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
            answers.append(mine)
        samples = receive(answers, PREPARE_LIMIT_S + 10 * seconds)
        for process in processes:
            process.join(PREPARE_LIMIT_S)
        return samples
    finally:
        end_clients(processes, base)


def end_clients(processes: list[ForkProcess], base: Path) -> None:
    """End what still runs, and remove what a failed client left, as far as that goes."""
    for process in processes:
        if process.is_alive():
            process.kill()
        process.join(5.0)
    for index in range(len(processes)):
        shutil.rmtree(base / f"client-{index}", ignore_errors=True)
