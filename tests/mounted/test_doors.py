"""Four processes edit one file through all doors: each update is there, was refused, or is kept."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.daemon import Daemon, wait_until
from tests.mounted.doors import DOORS, NAME

ROOT = Path(__file__).parents[2]
EDITS = 200
KINDS = list(DOORS)

VERSIONED = ("api", "mcp")
"""Doors whose change is refused when any byte is another; "mount" refuses nothing, and puts what it
saw in place of what is there; "claude" refuses when what it changes is not there any more.
"""


class Process:
    """A program at a door."""

    def __init__(self, kind: str, mount: Daemon) -> None:
        self.kind = kind
        self._running = subprocess.Popen(
            [sys.executable, "-m", "tests.mounted.doors", kind, str(mount.root)],
            cwd=ROOT,
            env={**os.environ, "GENIUZ_HOME": str(mount.home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def order(self, *what: object) -> None:
        assert self._running.stdin is not None
        self._running.stdin.write(json.dumps(what) + "\n")
        self._running.stdin.flush()

    def answer(self) -> str:
        assert self._running.stdout is not None
        return self._running.stdout.readline().strip()

    def ask(self, *what: object) -> str:
        self.order(*what)
        return self.answer()

    def end(self) -> None:
        self._running.communicate(timeout=30)


@contextmanager
def processes(mount: Daemon, kinds: Sequence[str]) -> Iterator[list[Process]]:
    running = [Process(kind, mount) for kind in kinds]
    try:
        yield running
    finally:
        for each in running:
            each.end()


def begin(mount: Daemon, names: Sequence[str]) -> str:
    text = "".join(f"{name}: 0;\n" for name in names)
    (mount.root / NAME).write_text(text)
    return text


def read_back(mount: Daemon) -> str:
    return (mount.root / NAME).read_text()


def shown_at(mount: Daemon) -> int:
    """When the file was written last, as the mount shows it. Is no reading."""
    return (mount.root / NAME).stat().st_mtime_ns


def shown_since(mount: Daemon, before: int) -> bool:
    return shown_at(mount) != before


def test_edits_in_any_order_are_there_or_refused_or_kept(mount: Daemon) -> None:
    """Each process reads at some moment and changes at a later one, when others have changed the
    file meanwhile. What happens is what a model says, edit by edit and to the last byte; what the
    mount's editor writes over without having read it is in the history, marked.
    """
    chance = random.Random(1)
    names = [f"{kind}{number}" for number, kind in enumerate(KINDS)]
    text = begin(mount, ["all", *names])
    done, refused, unread = 0, 0, list[str]()
    with processes(mount, KINDS) as running:
        seen = dict.fromkeys(names, "")
        while done + refused < EDITS:
            at = chance.randrange(len(KINDS))
            name, process = names[at], running[at]
            if not seen[name] or chance.random() < 0.3:
                assert process.ask("see", text) == "seen"
                seen[name] = text
            # A line that all change, or one's own.
            which = chance.choice(["all", name])
            old = next(line for line in seen[name].splitlines() if line.startswith(f"{which}:"))
            new = f"{which}: {done + refused + 1};"
            base, fits = text, f"{old}\n" in text
            if process.kind in VERSIONED:
                fits = seen[name] == text
            elif process.kind == "mount":
                base, fits = seen[name], True
                unread += [text] * (base != text)
            shown = shown_at(mount)
            assert process.ask("change", old, new) == ("done" if fits else "refused")
            if not fits:
                refused += 1
                continue
            done, text = done + 1, base.replace(f"{old}\n", f"{new}\n")
            if process.kind == "mount":
                seen[name] = text
            else:  # until then the mount knows of no conflict
                wait_until(partial(shown_since, mount, shown))
        for each in running:
            assert each.ask("see", text) == "seen"
    assert min(done, refused) > EDITS / 10
    assert len(unread) > EDITS / 20
    assert read_back(mount) == text
    kept = mount.root / ".history" / NAME
    in_conflict = [each.read_text() for each in sorted(kept.iterdir()) if "~conflict" in each.name]
    assert in_conflict == unread


def test_edits_at_the_same_time_are_all_there(mount: Daemon) -> None:
    """Nobody waits for anybody: each raises its own number in the same file, the mount's by
    replacing a file, while all of them write.
    """
    names = [f"{kind}{number}" for number, kind in enumerate(KINDS)]
    begin(mount, names)
    with processes(mount, KINDS) as running:
        for each in running:
            assert each.ask("see", read_back(mount)) == "seen"  # or they begin one by one
        for name, each in zip(names, running, strict=True):
            each.order("count", name, EDITS // len(KINDS))
        assert [each.answer() for each in running] == ["counted"] * len(KINDS)
    counted = [0 if kind == "mount" else EDITS // len(KINDS) for kind in KINDS]
    expected = "".join(f"{name}: {n};\n" for name, n in zip(names, counted, strict=True))
    wait_until(lambda: read_back(mount) == expected)
    assert (mount.root / "mount0.md").read_text() == f"mount0: {EDITS // len(KINDS)};\n"
