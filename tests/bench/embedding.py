"""How fast are texts embedded, beside bare onnxruntime with the same weights on the same texts?

    python tests/bench/embedding.py [--rounds N] [--texts N] [--threads N] [--json] [--quick]

Three take turns in each round. "helper" is what a learner uses: Helper.passages, tokenizing and
the socket included. The others are bare onnxruntime with all numbers ready beforehand, so that
nothing but the graph's run is counted: "batches" runs 16 texts at once, sorted by length and
padded, with onnxruntime's own threads, as is usual; "singly" one text at a time, in as many
threads. They have the helper's low priority, or a busy machine would favour them. A rate is
texts a second; a ratio, the median over the rounds of helper / other in the same round. The
same for texts a CPU second, which says more where other programs run.

Then the time of a question, on an idle helper and while it embeds passages, and its resident
memory after that. No figure is ever judged here.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run by its path, as a program

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from geniuzfs.config import Config
from geniuzfs.embed import cards, e5, standing
from geniuzfs.embed.client import Helper
from tests.bench.report import machine
from tests.embed import graph

BARE = ("batches", "singly")
BATCH = 16
HIDE = -10_000.0
QUESTION = "How do I bake bread at home?"
VOCABULARY = (
    "the house river bread morning letter with under garden winter market, seldom window paper"
    " der Garten läuft schnell. zwischen Häuser Wasser Straße nicht immer вечером река дом. хлеб"
    " окно письмо зима пишет घर नदी रोटी सुबह पत्र में है 今天 河边 面包。 早上 花园 冬天"
)


@dataclass(frozen=True)
class Settings:
    """`texts` a round, of 20 to 100 words; `questions` for each distribution of times."""

    rounds: int = 3
    texts: int = 96
    questions: int = 100
    threads: int = 2


QUICK = Settings(rounds=1, texts=12, questions=5)


class Taken(NamedTuple):
    """For all texts of a round: of the clock, and of the CPUs."""

    seconds: float
    cpu_seconds: float


def made_up(count: int) -> list[str]:
    """Texts that are the same in each run."""
    choose, words = random.Random(7), VOCABULARY.split()
    return [" ".join(choose.choices(words, k=choose.randint(20, 100))) for _ in range(count)]


class Bare:
    """onnxruntime and the weights, without anything of the helper's."""

    def __init__(self, texts: list[str], threads: int, *, batches: bool) -> None:
        parts = e5.E5(e5.find())
        tensors = parts.tensors()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads if batches else 1
        options.log_severity_level = 3
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(one) for one in tensors.values()]
        options.add_external_initializers(list(tensors), values)
        self._session = onnxruntime.InferenceSession(
            graph.build(masked=batches), options, providers=["CPUExecutionProvider"]
        )
        self._threads = 1 if batches else threads
        numbers = sorted((_numbers(parts, text) for text in texts), key=len, reverse=True)
        step = BATCH if batches else 1
        self._feeds = [
            _feed(parts, numbers[start : start + step], masked=batches)
            for start in range(0, len(numbers), step)
        ]

    def run(self) -> Taken:
        """For all texts."""
        self._session.run(None, self._feeds[-1])  # warm
        start, cpu = time.perf_counter(), time.process_time()
        with ThreadPoolExecutor(self._threads) as pool:
            list(pool.map(lambda feed: self._session.run(None, feed), self._feeds))
        return Taken(time.perf_counter() - start, time.process_time() - cpu)


def _numbers(parts: e5.E5, text: str) -> list[int]:
    limit, text = cards.DEFAULT.max_tokens - 2, cards.DEFAULT.passage_prefix + text
    return [e5.BEGIN, *parts.segmenter.segment(text, limit), e5.END]


def _feed(parts: e5.E5, batch: list[list[int]], *, masked: bool) -> dict[str, NDArray[np.float32]]:
    longest = max(map(len, batch))
    padded = [numbers + [e5.PAD] * (longest - len(numbers)) for numbers in batch]
    feed = {"embedded": np.concatenate([parts.embedded(numbers) for numbers in padded])}
    if masked:
        feed["mask"] = np.array(
            [[[[0.0] * len(one) + [HIDE] * (longest - len(one))]] for one in batch], np.float32
        )
    return feed


def bare(kind: str, settings: Settings) -> Taken:
    """In a process of its own."""
    command = [sys.executable, __file__, f"--bare={kind}", f"--texts={settings.texts}"]
    done = subprocess.run(
        [*command, f"--threads={settings.threads}"],
        check=True,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    return Taken(*json.loads(done.stdout))


def be_bare(kind: str, texts: int, threads: int) -> None:
    """The process that `bare` starts."""
    standing.lowest_priority()
    standing.Standing().step_back()
    print(json.dumps(Bare(made_up(texts), threads, batches=kind == "batches").run()))


def ours(helper: Helper, texts: list[str]) -> Taken:
    """By the helper."""
    start, cpu = time.perf_counter(), cpu_seconds(helper)
    helper.passages(texts, helper.model())
    return Taken(time.perf_counter() - start, cpu_seconds(helper) - cpu)


def cpu_seconds(helper: Helper) -> float:
    """What the helper has used in its life."""
    fields = Path(f"/proc/{pid(helper)}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pid(helper: Helper) -> int:
    state = helper.state(60)
    assert state is not None
    return state.pid


def question_ms(
    helper: Helper, count: int, while_true: threading.Event | None = None
) -> list[float]:
    """Times of questions, with a pause after each, as long as `while_true` is not set."""
    model, found = helper.model(), []
    for _ in range(count):
        if while_true is not None and while_true.is_set():
            break
        start = time.perf_counter()
        helper.query(QUESTION, model, 60)
        found.append((time.perf_counter() - start) * 1000)
        time.sleep(0.02)
    return found


def beside_passages_ms(helper: Helper, texts: list[str], count: int) -> list[float]:
    ended = threading.Event()

    def embed() -> None:
        helper.passages(texts, helper.model())
        ended.set()

    embedding = threading.Thread(target=embed)
    embedding.start()
    found = question_ms(helper, count, ended)
    embedding.join()
    return found


def resident_mib(helper: Helper) -> float:
    status = Path(f"/proc/{pid(helper)}/status").read_text()
    return next(
        round(int(line.split()[1]) / 1024, 1)
        for line in status.splitlines()
        if line.startswith("VmRSS:")
    )


def measure(helper: Helper, settings: Settings) -> dict[str, object]:
    texts = made_up(settings.texts)
    taken: dict[str, list[Taken]] = {name: [] for name in ("helper", *BARE)}
    helper.query(QUESTION, helper.model(), 60)
    loaded = resident_mib(helper)
    for _ in range(settings.rounds):
        taken["helper"].append(ours(helper, texts))
        for name in BARE:
            taken[name].append(bare(name, settings))
    questions = {
        "idle": question_ms(helper, settings.questions),
        "beside_passages": beside_passages_ms(helper, texts, settings.questions),
    }
    return {
        "machine": {**machine(), "onnxruntime": onnxruntime.__version__},
        "settings": asdict(settings),
        "rates": {
            name: [round(settings.texts / one.seconds, 2) for one in found]
            for name, found in taken.items()
        },
        "cpu_ms": {
            name: [round(one.cpu_seconds / settings.texts * 1000, 2) for one in found]
            for name, found in taken.items()
        },
        "ratios": {name: ratio(taken, name, "seconds") for name in BARE},
        "cpu_ratios": {name: ratio(taken, name, "cpu_seconds") for name in BARE},
        "question_ms": {name: summary(found) for name, found in questions.items()},
        "resident_mib": {"loaded": loaded, "after": resident_mib(helper)},
    }


def ratio(taken: dict[str, list[Taken]], other: str, of: str) -> float:
    pairs = zip(taken["helper"], taken[other], strict=True)
    found: float = statistics.median(getattr(its, of) / getattr(own, of) for own, its in pairs)
    return round(found, 3)


def summary(found: list[float]) -> dict[str, float | int]:
    ordered = sorted(found) or [0.0]
    return {
        "count": len(found),
        "p50": round(ordered[len(ordered) // 2], 2),
        "p95": round(ordered[int(len(ordered) * 0.95)], 2),
        "max": round(ordered[-1], 2),
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, help=f"default {Settings.rounds}")
    parser.add_argument("--texts", type=int, help=f"default {Settings.texts}")
    parser.add_argument("--threads", type=int, help=f"default {Settings.threads}")
    parser.add_argument("--quick", action="store_true", help="a smoke run of some seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    parser.add_argument("--bare", choices=BARE, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    args = arguments()
    chosen = QUICK if args.quick else Settings()
    settings = Settings(
        args.rounds or chosen.rounds,
        args.texts or chosen.texts,
        chosen.questions,
        args.threads or chosen.threads,
    )
    if args.bare:
        be_bare(args.bare, settings.texts, settings.threads)
        return 0
    with tempfile.TemporaryDirectory(prefix="geniuz-bench-") as top:
        helper = Helper(
            Config.from_environment(
                {
                    "HOME": top,
                    "GENIUZ_HOME": top,
                    "XDG_RUNTIME_DIR": top,
                    "GENIUZ_THREADS": str(settings.threads),
                }
            )
        )
        try:
            found = measure(helper, settings)
        finally:
            state = helper.state(10)
            if state is not None:
                os.kill(state.pid, signal.SIGTERM)
            helper.close()
    print(json.dumps(found, indent=None if args.json else 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
