"""Two programs that put one file: which of them had not seen what it replaced."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from geniuzfs import ConflictError
from geniuzfs.api import Geniuz, witnessing
from geniuzfs.api.opened import Opened
from geniuzfs.processes import Processes, this

PROGRAM = """
import sys, geniuzfs
with geniuzfs.open() as mem:
    print("begun", flush=True)
    for line in sys.stdin:
        what, path, *rest = line.rstrip("\\n").split("|")
        if what == "get":
            print(mem.files.get(path).text, flush=True)
        elif what == "put":
            print(mem.files.put(path, rest[0]).size, flush=True)
"""


class Program:
    """Another process that has the folder open."""

    def __init__(self, geniuz: Geniuz) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "GENIUZ_HOME": str(geniuz.config.home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.answer() == "begun"

    def ask(self, *words: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write("|".join(words) + "\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def end(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


@pytest.fixture
def other(mem: Opened, geniuz: Geniuz) -> Iterator[Program]:
    program = Program(geniuz)
    yield program
    program.end()


def marked(mem: Opened) -> list[bool]:
    return [one.conflict for one in mem.files.versions("/plan.md")]


def test_who_puts_over_a_text_that_came_after_it_had_read_is_marked(
    mem: Opened, other: Program
) -> None:
    mem.files.put("/plan.md", "one")
    assert other.ask("get", "/plan.md") == "one"
    mem.files.put("/plan.md", "two, by one agent")
    other.ask("put", "/plan.md", "two, by the other")
    mem.files.put("/plan.md", "three")
    found = mem.files.versions("/plan.md")
    assert [one.conflict for one in found] == [False, True, True]
    assert [mem.files.earlier("/plan.md", one.name) for one in found[1:]] == [
        b"two, by one agent",
        b"two, by the other",
    ]
    assert found[1].by == str(this().writer)
    assert found[2].by.startswith("-c (")


def test_who_has_read_it_or_names_its_version_or_edits_is_not(mem: Opened, other: Program) -> None:
    mem.files.put("/plan.md", "one")
    mem.files.put("/plan.md", "two")
    assert other.ask("get", "/plan.md") == "two"
    other.ask("put", "/plan.md", "three")
    mem.files.edit("/plan.md", lambda text: text + " and four")
    other.ask("get", "/plan.md")
    other.ask("put", "/plan.md", "five")
    version = mem.files.get("/plan.md").version
    mem.files.put("/plan.md", "six", if_version=version)
    with pytest.raises(ConflictError):
        mem.files.put("/plan.md", "seven", if_version=version)
    assert marked(mem) == [False] * 5


def test_who_never_read_it_is_marked_while_the_one_that_wrote_it_runs(
    mem: Opened, other: Program, geniuz: Geniuz
) -> None:
    mem.files.put("/plan.md", "one")
    other.ask("put", "/plan.md", "two")
    third = Program(geniuz)
    third.ask("put", "/plan.md", "three")
    third.end()
    fourth = Program(geniuz)  # as scripts follow one another
    fourth.ask("put", "/plan.md", "four")
    fourth.end()
    assert marked(mem) == [False, True, False]


def test_what_was_written_long_ago_is_replaced_without_a_mark(
    mem: Opened, other: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.files.put("/plan.md", "one")
    other.ask("put", "/plan.md", "two")
    monkeypatch.setattr(witnessing, "WINDOW_SECONDS", 0)
    mem.files.put("/plan.md", "three")
    assert marked(mem) == [False, False]


def test_of_one_programs_burst_the_first_and_last_are_kept_and_anothers_too(
    mem: Opened, other: Program
) -> None:
    for number in range(10):
        mem.files.put("/plan.md", str(number))
    assert other.ask("get", "/plan.md") == "9"
    other.ask("put", "/plan.md", "theirs")
    found = [mem.files.earlier("/plan.md", one.name) for one in mem.files.versions("/plan.md")]
    assert found == [b"0", b"1", b"9"]


def test_this_process_is_the_one_that_a_mount_sees() -> None:
    assert this().writer[1:] == Processes().of(os.getpid()).writer[1:]
