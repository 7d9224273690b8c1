"""How good is what comes back for plain notes? Two projects' documentation as somebody's notes.

    python -m tests.bench.notes DOCS_DIR [--json]

DOCS_DIR holds the checkouts that `notes.json` names, each under its project's name (restic/doc,
caddy/src/docs/markdown), at the commits it names. Nothing of them is shipped but short phrases.

How it was made: the questions were written first, from general knowledge of what such programs are
asked, and left as they were; nothing of the documentation had been looked at, not even a heading.
Then the answers were sought with grep and by reading around what it found, before anything was
asked of the product: for each question the lines that answer it or lead straight to it (the
command, the setting, the sentence that says it), named by a file and a phrase of 12 words or fewer
that stands in the line. What the documentation does not answer would be in "dropped": nothing was.
Then, when first figures were there and lest finding by grep favour words, the first two passages
of eleven rankings (bm25 twice, three modes, four weights of neighbours) were put together in file
order, without saying which had brought one, and those that answer were added: the "pooled" ones.
One reader did all of it in one go. So it compares rankings and is no examination; differences below
.1 (six questions) may be chance, and a weight that was chosen by it looks better here than it is.

A hit is a returned passage that has such a phrase in one of its lines. The documentation is written
into a real mount, learned by the real model, and asked by reading `.recall/<question>` in the
project's directory. hit@k: a hit is among the first k. "weak_right": first ones that are hits but
labelled weak; "firm_wrong": first ones that are none and not labelled. "weak_elsewhere": when each
question is asked of the other project, which can hardly have an answer, how many first ones are
labelled weak. `fts5` is SQLite's own bm25 with its porter stemmer over the same passages, any word
of the question counting; `fts5 headings` has the file's name and the headings in the text as well.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from geniuzfs.learn.paragraphs import split
from tests.bench.quality import MODES
from tests.daemon import Daemon

DEPTHS = (1, 5, 10)
ENDINGS = (".md", ".rst")
QUESTIONS = Path(__file__).with_name("notes.json")


class Asked(NamedTuple):
    """A question, the project it is asked of, and the lines that answer it: (path, line) each."""

    project: str
    question: str
    wanted: frozenset[tuple[str, int]]


class Found(NamedTuple):
    """A passage that came back."""

    path: str
    """From the project's directory."""
    first: int
    last: int
    weak: bool = False


def texts(docs: Path, projects: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Project → path → text of all its documentation."""
    return {
        name: {
            str(path.relative_to(docs / name)): path.read_text("utf-8")
            for path in sorted((docs / name / project["under"]).rglob("*"))
            if path.suffix in ENDINGS
        }
        for name, project in projects.items()
    }


def questions(held: Sequence[dict[str, Any]], files: dict[str, dict[str, str]]) -> list[Asked]:
    """Raises SystemExit when a phrase is not in its file: that is another commit's."""
    found = []
    for one in held:
        wanted: set[tuple[str, int]] = set()
        for answer in one["answers"]:
            lines = files[one["project"]].get(answer["path"], "").split("\n")
            phrase = answer["phrase"]
            here = {(answer["path"], n) for n, line in enumerate(lines, 1) if phrase in line}
            if not here:
                sys.exit(f"{one['project']}/{answer['path']} does not say: {phrase}")
            wanted |= here
        found.append(Asked(one["project"], one["question"], frozenset(wanted)))
    return found


class Mounted:
    """Asks the product."""

    def __init__(self, root: Path, mode: str) -> None:
        self._root = root
        self._mode = MODES[mode]

    def __call__(self, asked: Asked) -> list[Found]:
        query = f"{self._mode}limit:{2 * max(DEPTHS)} format:json {asked.question}"
        name = query.replace("%", "%25").replace("/", "%2F")
        answer = json.loads((self._root / asked.project / ".recall" / name).read_text("utf-8"))
        top = f"/{asked.project}/"
        found = []
        for hit in answer["hits"]:
            first, last = hit["lines"]
            found.append(Found(hit["path"].removeprefix(top), first, last, hit["weak"]))
        return found


class Fts5:
    """Asks SQLite's full-text index."""

    def __init__(self, files: dict[str, dict[str, str]], *, headings: bool) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute(
            "CREATE VIRTUAL TABLE passages USING fts5(project UNINDEXED, path UNINDEXED,"
            " first UNINDEXED, last UNINDEXED, text, tokenize = 'porter unicode61')"
        )
        rows = list(_rows(files, headings=headings))
        self._database.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", rows)

    def __call__(self, asked: Asked) -> list[Found]:
        words = "".join(c if c.isalnum() else " " for c in asked.question).split()
        rows = self._database.execute(
            "SELECT path, first, last FROM passages WHERE passages MATCH ? AND project = ?"
            " ORDER BY rank LIMIT ?",
            (" OR ".join(f'"{word}"' for word in words), asked.project, 2 * max(DEPTHS)),
        )
        return [Found(*row) for row in rows]


def _rows(
    files: dict[str, dict[str, str]], *, headings: bool
) -> Iterator[tuple[str, str, int, int, str]]:
    for project, held in files.items():
        for path, text in held.items():
            for one in split(text, path):
                above = f"{Path(path).stem} {one.heading}\n" if headings else ""
                yield project, path, one.first_line, one.last_line, above + one.text


def place_of(asked: Asked, found: Sequence[Found]) -> int:
    """Where the first hit stands, counted from 1; 0: not among those."""
    for place, one in enumerate(dict.fromkeys(each._replace(weak=False) for each in found), 1):
        if any(one.path == path and one.first <= line <= one.last for path, line in asked.wanted):
            return place
    return 0


def measure(ask: Mounted | Fts5, questions: Sequence[Asked]) -> dict[str, Any]:
    """hit@k, what the labels of the first ones were worth, and each question's place."""
    places = []
    weak_right = firm_wrong = weak_elsewhere = 0
    times = []
    projects = sorted({asked.project for asked in questions})
    for asked in questions:
        begun = time.perf_counter()
        found = ask(asked)
        times.append(time.perf_counter() - begun)
        place = place_of(asked, found)
        weak = bool(found) and found[0].weak
        weak_right += weak and place == 1
        firm_wrong += bool(found) and not weak and place != 1
        places.append(place)
        other = projects[(projects.index(asked.project) + 1) % len(projects)]
        weak_elsewhere += any(one.weak for one in ask(asked._replace(project=other))[:1])
    return {
        **{f"hit@{k}": round(sum(0 < p <= k for p in places) / len(places), 4) for k in DEPTHS},
        "weak_right": weak_right,
        "firm_wrong": firm_wrong,
        "weak_elsewhere": weak_elsewhere,
        "ms": round(sorted(times)[len(times) // 2] * 1000, 1),
        "places": places,
    }


def run(docs: Path) -> dict[str, Any]:
    """Write, learn, ask."""
    held = json.loads(QUESTIONS.read_text("utf-8"))
    files = texts(docs, held["projects"])
    asked = questions(held["questions"], files)
    found = {
        "fts5": measure(Fts5(files, headings=False), asked),
        "fts5 headings": measure(Fts5(files, headings=True), asked),
    }
    with (
        tempfile.TemporaryDirectory(prefix="geniuzfs-notes-") as directory,
        Daemon(Path(directory), environment={"GENIUZ_LEARN": "1"}) as daemon,
    ):
        for project, texts_ in files.items():
            for path, text in texts_.items():
                (daemon.root / project / path).parent.mkdir(parents=True, exist_ok=True)
                (daemon.root / project / path).write_text(text, "utf-8")
        begun = time.perf_counter()
        command = [sys.executable, "-m", "geniuzfs", "learn", "--wait"]
        home = {**os.environ, "GENIUZ_HOME": str(daemon.home)}
        subprocess.run(command, env=home, check=True, stdout=subprocess.DEVNULL)
        learned = time.perf_counter() - begun
        for mode in MODES:
            found[mode] = measure(Mounted(daemon.root, mode), asked)
    return {
        "files": sum(map(len, files.values())),
        "questions": len(asked),
        "dropped": len(held["dropped"]),
        "learned_s": round(learned, 1),
        "found": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("docs", type=Path, metavar="DOCS_DIR")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = run(given.docs)
    if given.json:
        print(json.dumps(found))
        return
    print(" ".join(f"{key} {value}" for key, value in found.items() if key != "found"))
    for name, figures in found["found"].items():
        print(name, " ".join(f"{key} {value}" for key, value in figures.items() if key != "places"))


if __name__ == "__main__":
    main()
