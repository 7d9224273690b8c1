"""Forgetting, killed at every step, and with others at work on the same folder."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from geniuzfs import runtime
from geniuzfs.api import Geniuz, forgetting
from geniuzfs.config import DEFAULT_CONTENT_LIMIT, Config
from geniuzfs.errors import ReadOnly
from geniuzfs.learn.backlog import Backlog
from geniuzfs.model import ROOT
from geniuzfs.store import check, paths, postings, tree
from geniuzfs.store import forgetting as erasing
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.folders.killing import killed_at
from tests.notes import learn, taught, write
from tests.store.erased import raw

T = TypeVar("T")

SECRET = "Xylographer Quillemont pays the ransom in Vaduz."
SHARED = "The meeting was on a rainy Thursday."
KEPT = "Wolfgangus keeps the ledger beneath the stairs."

WORDS = (b"Quillemont", b"secret-name", b"Wolfgangus")

CHANGES = (
    "UPDATE memories SET payload = 'x'",
    "DELETE FROM memories",
    "INSERT OR REPLACE INTO memories SELECT * FROM memories",
)

STEPS = {module.__file__ for module in (forgetting, erasing)}


class _Undone(Exception):
    pass


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A data directory as it was left when nobody had it open: it is made once, then copied."""
    home = tmp_path / "home"
    geniuz = made(home)
    geniuz.keep(None, KEPT)
    database = Database.open(home / "memory.db")
    write(database, "secret-name.md", f"{SECRET}\n\n{SHARED}\n")
    write(database, "other.md", f"{SHARED}\n")
    learn(database, FakeEmbedder())
    database.close()
    shutil.copytree(home, tmp_path / "before")
    yield home
    assert sound(home) == set()


def made(home: Path) -> Geniuz:
    owner = (0, 0)
    return runtime.geniuz(
        Config(home, home.parent / "mount", DEFAULT_CONTENT_LIMIT, False, owner, learns=False)
    )


def forget_file(home: Path) -> None:
    geniuz = made(home)
    geniuz.forgetting.file(geniuz.folder("My memory"), "secret-name.md")


def forget_memory(home: Path) -> None:
    geniuz = made(home)
    database = Database.open(home / "memory.db")
    (id_,) = database.view.row("SELECT memory_uuid FROM memories")
    database.close()
    geniuz.forgetting.memory(geniuz.open_memory(None, id_))


def sound(home: Path) -> set[str]:
    """The rules that are broken. The guard of kept memories refuses."""
    database = Database.open(home / "memory.db")
    try:
        with suppress(_Undone), database.txn() as txn:
            txn.run("INSERT INTO memories (memory_uuid, payload) VALUES (?, '{}')", (f"{0:036}",))
            for change in CHANGES:
                with pytest.raises(ReadOnly, match="immutable"):
                    txn.run(change)
            raise _Undone
        with database.snapshot() as view:
            return {problem.rule for problem in check.problems(view)}
    finally:
        database.close()


def is_there(home: Path, forget: Callable[[Path], None]) -> bool:
    database = Database.open(home / "memory.db")
    try:
        if forget is forget_file:
            return paths.find(database.view, b"secret-name.md") is not None
        return bool(database.view.rows("SELECT 1 FROM memories"))
    finally:
        database.close()


@pytest.mark.parametrize("forget", [forget_file, forget_memory])
def test_killed_at_every_step_it_is_there_as_before_or_forgotten_and_is_then_erased(
    home: Path, forget: Callable[[Path], None]
) -> None:
    sought = WORDS[:2] if forget is forget_file else WORDS[2:]
    assert all(word in raw(home) for word in sought)
    step, outcomes = 0, set()
    while True:
        step += 1
        shutil.rmtree(home)
        shutil.copytree(home.parent / "before", home)
        if not killed_at(step, lambda: forget(home), STEPS):
            break
        there, broken = is_there(home, forget), sound(home)
        assert broken == set() if there else broken <= {"erasures_are_finished"}
        if not there:  # whoever asks for that finishes it
            assert [one.name for one in made(home).forgetting.finish(None)] == (
                ["My memory"] if broken else []
            )
            assert not any(word in raw(home) for word in sought)
            assert sound(home) == set()
        outcomes.add((there, bool(broken)))
    assert step > 40
    assert outcomes == {(True, False), (False, True), (False, False)}


def test_it_is_told_what_is_gone_and_what_near_it_was_not_touched(home: Path) -> None:
    (home / "archive").mkdir()
    (home / "memory.db.damaged-1").write_bytes(b"")
    geniuz = made(home)
    folder, within, found = geniuz.forgetting.find("/secret-name.md", None)
    assert (found.files, found.directories) == (1, 0)
    gone = geniuz.forgetting.file(folder, within)
    assert gone[1:5] == (1, 0, 0, 1)  # the other paragraph is said by another file
    assert gone.apart == [home / "memory.db.damaged-1", home / "archive"]
    (home / "memory.db.damaged-1").unlink()
    database = Database.open(home / "memory.db")
    assert SHARED in taught(database)
    database.close()


def test_a_save_that_comes_too_late_does_not_bring_it_back(home: Path) -> None:
    """A lesson and a merge that were worked out before, as another process does, are dropped."""
    database = Database.open(home / "memory.db")
    with database.txn() as txn:
        txn.run("INSERT INTO due_memories SELECT memory_uuid FROM memories")
    with database.snapshot() as view:
        merged = postings.merge(view, postings.segment_ids(view))
    backlog = Backlog(database, partial(_meanwhile, lambda: forget_memory(home)))
    assert backlog.step()
    for one in merged.steps():
        with database.txn() as txn:
            one.write(txn, None)
    database.close()
    assert b"Wolfgangus" not in raw(home)


def _meanwhile(then: Callable[[], None], work: Callable[[], T]) -> T:
    found = work()
    then()
    return found


def test_a_journal_that_is_left_over_goes_too(home: Path) -> None:
    left = home / "memory.db-journal"
    left.write_bytes(bytes(512) + b"Quillemont")
    forget_file(home)
    assert not left.exists()


def test_names_of_the_tree_are_counted_anew(home: Path) -> None:
    database = Database.open(home / "memory.db")
    write(database, "dir/one.md", "One says nothing.")
    database.close()
    geniuz = made(home)
    gone = geniuz.forgetting.file(geniuz.folder("My memory"), "dir")
    assert (gone.files, gone.directories) == (1, 1)
    database = Database.open(home / "memory.db")
    top = tree.inode(database.view, ROOT)
    assert top is not None
    assert top.nlink == 2
    database.close()
