"""Learning of several folders: until nothing is due, or for as long as its parent lives."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from geniuzfs.api.learning import Learning
from geniuzfs.folders.registry import Folder
from geniuzfs.learn.learner import Turn
from geniuzfs.model import FolderId, Identity, ModelId
from geniuzfs.store import copying, passages, tree
from geniuzfs.store.connection import Database
from tests.daemon import wait_until
from tests.embed.fake import FakeEmbedder
from tests.notes import learn, taught, write


class Chosen(FakeEmbedder):
    """Which model is chosen can be read, whether or not it can be used."""

    def model(self) -> ModelId:
        return self.id


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Database]:
    opened = Database.open(tmp_path / "other.db", create=True)
    with opened.txn() as txn:
        tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
    yield opened
    opened.close()


def folders(*databases: Database) -> list[Folder]:
    return [
        Folder(one.path, Identity(FolderId(f"{n:08}-0000-4000-8000-{0:012}"), str(n), "", ""))
        for n, one in enumerate(databases)
    ]


def learning(
    embedder: FakeEmbedder, shown: Sequence[Folder], retry_seconds: float = 30.0
) -> Learning:
    def open_(one: Folder) -> Database:
        return Database.open(one.path, wait=5)

    return Learning(lambda: shown, open_, embedder, time.time_ns, retry_seconds)


def vectors(database: Database) -> int:
    found: int = database.view.row("SELECT count(*) FROM vectors")[0]
    return found


def has_vectors(database: Database, count: int) -> bool:
    return vectors(database) == count


@contextmanager
def following(made: Learning) -> Iterator[None]:
    """Within it `made` follows; afterwards its parent's end of the pipe is closed."""
    read, write_end = os.pipe()

    def follow() -> None:
        with os.fdopen(read) as parent, made:
            made.follow(parent)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        os.close(write_end)
        thread.join(30)
    assert not thread.is_alive()


def test_all_folders_are_learned(database: Database, other: Database) -> None:
    write(database, "one.md", "Said here.")
    write(other, "two.md", "Said there.")
    with learning(FakeEmbedder(), folders(database, other)) as made:
        told = list(made.until_done())
    assert told[-1] == (0, 0, "")
    assert (vectors(database), vectors(other)) == (1, 1)


def test_without_a_model_it_ends_with_the_words_and_says_why(database: Database) -> None:
    write(database, "one.md", "Said here.")
    embedder = Chosen()
    embedder.away = "it is on holiday"
    with learning(embedder, folders(database)) as made:
        told = list(made.until_done())
    assert told[-1] == (0, 1, "it is on holiday")
    assert taught(database) == {"Said here."}


def test_it_waits_for_another_that_has_the_turn(database: Database) -> None:
    write(database, "one.md", "Said here.")
    turn = Turn(database)
    assert turn.take()
    embedder = FakeEmbedder()
    with learning(embedder, folders(database)) as made:
        told = made.until_done()
        assert [next(told).sources for _ in range(2)] == [1, 1]
        assert embedder.passages_embedded == 0
        learn(database, embedder)
        assert list(told)[-1] == (0, 0, "")
    turn.give_back()


def test_it_takes_over_from_another_that_dies(database: Database) -> None:
    write(database, "one.md", "Said here.")
    turn = Turn(database)
    assert turn.take()
    with learning(FakeEmbedder(), folders(database)) as made:
        told = made.until_done()
        next(told)
        turn.give_back()
        assert list(told)[-1] == (0, 0, "")


def test_it_does_not_wait_for_another_that_has_no_model(database: Database) -> None:
    write(database, "one.md", "Said here.")
    embedder = Chosen()
    learn(database, embedder)
    write(database, "two.md", "Said there.")
    learn(database)
    embedder.away = "it is on holiday"
    turn = Turn(database)
    assert turn.take()
    with learning(embedder, folders(database)) as made:
        assert list(made.until_done())[-1] == (0, 1, "it is on holiday")
    turn.give_back()


def test_following_learns_what_comes_until_its_parent_is_gone(database: Database) -> None:
    with following(learning(FakeEmbedder(), folders(database))):
        for number in range(1, 4):
            write(database, f"{number}.md", f"Note {number}.")
            wait_until(partial(has_vectors, database, number))
    assert passages.waiting(database.view) == (0, 0)


def test_following_takes_in_new_folders(database: Database, other: Database) -> None:
    both = folders(database, other)
    shown = both[:1]
    write(other, "two.md", "Said there.")
    with following(learning(FakeEmbedder(), shown, retry_seconds=0.1)):
        write(database, "one.md", "Said here.")
        wait_until(lambda: vectors(database) == 1)
        assert vectors(other) == 0
        shown.append(both[1])
        wait_until(lambda: vectors(other) == 1)


def test_following_goes_on_where_a_folder_was_moved_and_lets_go_of_one_that_went(
    tmp_path: Path,
) -> None:
    (tmp_path / "here").mkdir()
    path = tmp_path / "here" / "memory.db"
    with closing(Database.open(path, create=True)) as first:
        with first.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
        shown = folders(first)
        with following(learning(FakeEmbedder(), shown, retry_seconds=0.1)):
            write(first, "one.md", "Said before.")
            wait_until(lambda: vectors(first) == 1)
            copying.copy(path, tmp_path / "there.db")
            with first.txn() as txn:
                copying.seal(txn, "there.db")
            shown[0] = shown[0]._replace(path=tmp_path / "there.db")
            with closing(Database.open(tmp_path / "there.db")) as moved:
                write(moved, "two.md", "Said after.")
                wait_until(lambda: vectors(moved) == 2)
                shown.clear()
                turn = Turn(moved)
                wait_until(turn.take)
                turn.give_back()
        assert vectors(first) == 1


def test_vectors_come_by_themselves_when_the_model_is_back(database: Database) -> None:
    embedder = Chosen()
    embedder.away = "it is on holiday"
    with following(learning(embedder, folders(database), retry_seconds=0.1)):
        write(database, "one.md", "Said here.")
        wait_until(lambda: taught(database) == {"Said here."})
        embedder.away = None
        wait_until(lambda: vectors(database) == 1)
