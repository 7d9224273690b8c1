"""How good is what comes back? LoCoMo and XQuAD through the product's own path.

Files are written into a real mount, learned by the real model, and asked for by reading
`.recall/<question>`. LoCoMo: each session is a file, a date as its heading and a paragraph a turn;
hit@k: a turn that the key names is among the first k. XQuAD: a paragraph a file, or an article a
file; hit@1: the question's paragraph comes first. `words` is the answer with the model away,
`meaning` that of the vectors alone.

    python -m tests.bench.quality [--data DIR] [--json] [--every N] [--only NAME ...]

DIR holds `locomo/*.json` and `xquad/xquad.*.json`, which are not shipped. `--every N` asks each
Nth question alone.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run by its path, as a program

from tests.daemon import Daemon

DEPTHS = (1, 5, 10, 20)
MODES = {"default": "", "words": "mode:words ", "meaning": "mode:meaning "}


class Asked(NamedTuple):
    """A question, where it is asked, and what would answer it: (file, line) each."""

    directory: str
    question: str
    wanted: frozenset[tuple[str, int]]


class Set(NamedTuple):
    """Files and questions, under a name."""

    name: str
    files: dict[str, str]
    asked: list[Asked]


def locomo(path: Path, *, dialogue: bool) -> Set:
    """A conversation. Without `dialogue`, nothing in the files tells turns for turns."""
    held = json.loads(path.read_text("utf-8"))
    directory = f"{'talk' if dialogue else 'prose'} {path.stem}"
    files: dict[str, str] = {}
    turns: dict[str, tuple[str, int]] = {}
    numbers = [int(key[8:]) for key in held if key.startswith("session_") and key[8:].isdigit()]
    for number in sorted(numbers):
        file = f"{directory}/session {number}.md"
        lines = [f"# {held[f'session_{number}_date_time']}", ""]
        for turn in held[f"session_{number}"]:
            turns[turn["dia_id"]] = (f"/{file}", len(lines) + 1)
            mark = ":" if dialogue else " —"
            lines += [f"{turn['speaker']}{mark} {' '.join(turn['text'].split())}", ""]
        files[file] = "\n".join(lines)
    asked = []
    for one in held["qa"]:
        named = " ".join(one["evidence"]).replace(";", " ").split()
        wanted = frozenset(turns[turn] for turn in named if turn in turns)
        if wanted:
            asked.append(Asked(directory, one["question"], wanted))
    return Set(f"locomo {'dialogue' if dialogue else 'prose'}", files, asked)


def xquad(folder: Path, language: str, asks: str, *, articles: bool) -> Set:
    """Paragraphs in one language, questions in `asks`."""
    texts = json.loads((folder / f"xquad.{language}.json").read_text("utf-8"))["data"]
    questions = json.loads((folder / f"xquad.{asks}.json").read_text("utf-8"))["data"]
    directory = f"{language} {'articles' if articles else 'paragraphs'}"
    files: dict[str, str] = {}
    asked = []
    for number, (article, other) in enumerate(zip(texts, questions, strict=True)):
        held = zip(article["paragraphs"], other["paragraphs"], strict=True)
        for index, (paragraph, twin) in enumerate(held):
            name = f"{directory}/{number}.md" if articles else f"{directory}/{number}-{index}.md"
            line = 1 + 2 * index if articles else 1
            text = " ".join(paragraph["context"].split())
            files[name] = f"{files[name]}\n\n{text}" if name in files else text
            wanted = frozenset({(f"/{name}", line)})
            asked += [Asked(directory, one["question"], wanted) for one in twin["qas"]]
    tongue = language if asks == language else f"{asks} to {language}"
    return Set(f"xquad {tongue} {'articles' if articles else 'paragraphs'}", files, asked)


def sets(data: Path) -> Iterator[Set]:
    """All there is to measure in `data`."""
    for dialogue in (True, False):
        for path in sorted((data / "locomo").glob("*.json")):
            yield locomo(path, dialogue=dialogue)
    languages = sorted(path.name.split(".")[1] for path in (data / "xquad").glob("xquad.*.json"))
    for language in languages:
        for articles in (False, True):
            yield xquad(data / "xquad", language, language, articles=articles)
    for language in languages if "en" in languages else []:
        if language != "en":
            yield xquad(data / "xquad", language, "en", articles=False)


def place_of(mount: Path, asked: Asked, mode: str, limit: int) -> int:
    """Where the first right answer stands, counted from 1; 0: not among `limit`."""
    query = f"{mode}limit:{limit} format:json {asked.question}"
    name = query.replace("%", "%25").replace("/", "%2F")
    path = mount / asked.directory / ".recall" / name
    answer = json.loads(path.read_text("utf-8"))
    seen: list[tuple[str, int, int]] = []
    for hit in answer["hits"]:
        here = (hit["path"], *hit["lines"])
        if here not in seen:
            seen.append(here)
    for place, (file, first, last) in enumerate(seen, 1):
        if any(file == wanted and first <= line <= last for wanted, line in asked.wanted):
            return place
    return 0


def measure(mount: Path, questions: Sequence[Asked], modes: Sequence[str]) -> dict[str, Any]:
    """For each mode: hit@k at DEPTHS, and the median milliseconds of a question."""
    places: dict[str, list[int]] = {mode: [] for mode in modes}
    times: dict[str, list[float]] = {mode: [] for mode in modes}
    for asked in questions:
        for mode in modes:
            begun = time.perf_counter()
            places[mode].append(place_of(mount, asked, MODES[mode], max(DEPTHS)))
            times[mode].append(time.perf_counter() - begun)
    return {
        mode: {
            **{f"hit@{k}": _share(found, k) for k in DEPTHS},
            "ms": round(sorted(times[mode])[len(times[mode]) // 2] * 1000, 1),
        }
        for mode, found in places.items()
    }


def _share(places: Sequence[int], depth: int) -> float:
    return round(sum(0 < place <= depth for place in places) / max(len(places), 1), 4)


def run(data: Path, every: int, only: Sequence[str], modes: Sequence[str]) -> dict[str, Any]:
    """Write, learn, ask."""
    chosen = [one for one in sets(data) if not only or any(part in one.name for part in only)]
    with tempfile.TemporaryDirectory(prefix="geniuzfs-quality-") as held:
        directory = Path(held)
        environment = {"GENIUZ_LEARN": "1"}
        with Daemon(directory, environment=environment) as daemon:
            for one in chosen:
                for name, text in one.files.items():
                    path = daemon.root / name
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(text, "utf-8")
            begun = time.perf_counter()
            home = {**os.environ, "GENIUZ_HOME": str(daemon.home)}
            command = [sys.executable, "-m", "geniuzfs", "learn", "--wait"]
            subprocess.run(command, env=home, check=True, stdout=subprocess.DEVNULL)
            learned = time.perf_counter() - begun
            by_name: dict[str, list[Asked]] = {}
            for one in chosen:
                by_name.setdefault(one.name, []).extend(one.asked)
            found = {}
            for name, asked in by_name.items():
                found[name] = measure(daemon.root, asked[::every], modes)
                found[name]["questions"] = len(asked[::every])
                print(name, json.dumps(found[name]), file=sys.stderr)
    return {"learned_s": round(learned, 1), "every": every, "sets": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=beside)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=list(MODES))
    given = parser.parse_args()
    found = run(given.data, given.every, given.only, given.modes)
    if given.json:
        print(json.dumps(found))
        return
    for name, held in found["sets"].items():
        for mode in given.modes:
            print(name, mode, " ".join(f"{key} {value}" for key, value in held[mode].items()))


if __name__ == "__main__":
    main()
