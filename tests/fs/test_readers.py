"""Who counts as having read what another wrote, and which process a request comes from."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from geniuzfs.fs import readers
from geniuzfs.fs.readers import Readers
from geniuzfs.model import NOBODY, Writer
from geniuzfs.processes import UNKNOWN, Process, Processes, now, this

FILE = 7


def process(pid: int, *above: int, started: int = 10**9) -> Process:
    """One that began long after everything here, under these ancestors."""
    return Process(Writer("p", pid, started), tuple(Writer("a", one, 1) for one in above))


ANN, BOB = process(2**30, 2**29), process(2**30 + 1, 2**28)


@pytest.fixture
def known() -> Readers:
    return Readers(Processes())


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    running = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    )
    yield running
    running.communicate()


def test_what_nobody_wrote_lately_is_no_conflict(known: Readers) -> None:
    assert not known.is_blind(FILE, ANN)
    assert known.over(FILE) == NOBODY


def test_the_writer_and_who_has_read_it_since_know_it(known: Readers) -> None:
    known.wrote(FILE, ANN)
    assert known.over(FILE) == ANN.writer
    assert known.is_blind(FILE, BOB)
    known.read(FILE, BOB)
    assert not known.is_blind(FILE, ANN)
    assert not known.is_blind(FILE, BOB)
    known.wrote(FILE, ANN)
    assert known.is_blind(FILE, BOB)


def test_after_the_window_it_is_no_conflict(
    known: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    known.wrote(FILE, ANN)
    later = now() + readers.WINDOW_SECONDS + 1
    monkeypatch.setattr(readers, "now", lambda: later)
    assert not known.is_blind(FILE, BOB)


def test_who_can_not_be_told_is_never_blind(known: Readers) -> None:
    known.wrote(FILE, ANN)
    assert not known.is_blind(FILE, UNKNOWN)
    known.wrote(FILE, UNKNOWN)
    assert not known.is_blind(FILE, BOB)


def test_what_another_program_changed_nobody_has_read(known: Readers) -> None:
    known.wrote(FILE, ANN)
    known.wrote(FILE, None)
    assert known.is_blind(FILE, ANN)


def test_parents_and_children_read_for_each_other(known: Readers) -> None:
    parent = process(2**29, started=1)
    known.wrote(FILE, ANN)
    assert not known.is_blind(FILE, parent)
    known.wrote(FILE, parent)
    assert not known.is_blind(FILE, ANN)


def test_a_command_that_has_ended_reads_for_the_next_of_its_parent(known: Readers) -> None:
    known.wrote(FILE, ANN)
    assert not known.is_blind(FILE, process(2**30 + 5, 2**29))
    early = process(2**30 + 6, 2**29, started=1)  # it ran beside the one that wrote
    assert known.is_blind(FILE, early)


def test_a_sibling_that_still_runs_has_not_read_for_another(
    known: Readers, child: subprocess.Popen[bytes]
) -> None:
    running = known.processes.of(child.pid)
    known.wrote(FILE, running)
    later = Process(Writer("p", 2**30, 10**9), running.ancestors)
    assert known.is_blind(FILE, later)


def test_a_file_in_the_place_of_another_inherits_what_was_not_read(known: Readers) -> None:
    place, new = (1, b"note.md"), 8
    known.wrote(FILE, ANN)
    known.left(place, FILE)
    known.came(place, new)
    assert known.is_blind(new, BOB)
    known.wrote(new, BOB)
    assert not known.is_blind(new, BOB)


def test_very_many_files_are_forgotten_again(
    known: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_MOST", 10)
    for file in range(25):
        known.wrote(file, ANN)
    assert len(known.fresh) <= 11


def test_the_threads_of_a_process_are_one_process() -> None:
    known, seen = Processes(), []
    thread = threading.Thread(target=lambda: seen.append(known.of(threading.get_native_id())))
    thread.start()
    thread.join()
    own = known.of(os.getpid())
    assert seen[0].writer == own.writer
    assert own.writer.pid == os.getpid()


def test_a_process_knows_its_ancestors(child: subprocess.Popen[bytes]) -> None:
    known = Processes()
    own, other = known.of(os.getpid()), known.of(child.pid)
    assert other.ancestors[0] == own.writer
    assert other.is_kin(own)
    assert own.is_kin(other)
    assert known.lives(other)


def test_what_has_ended_is_nobody(child: subprocess.Popen[bytes]) -> None:
    known = Processes()
    other = known.of(child.pid)
    child.communicate()
    assert not known.lives(other)
    assert Processes().of(child.pid) == UNKNOWN


def test_a_program_may_be_called_by_what_is_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing could be saved by it: SQLite takes no such name."""
    monkeypatch.setattr(sys, "argv", [os.fsdecode(b"/tmp/caf\xe9.py")])
    assert this().writer.name == "caf\N{REPLACEMENT CHARACTER}.py"
