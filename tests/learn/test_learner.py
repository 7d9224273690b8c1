"""One learner a folder: words before vectors, and neither for the lack of the other."""

import itertools
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from geniuzfs.learn.backlog import FILES_A_STEP, Backlog
from geniuzfs.learn.learner import Learner, Turn
from geniuzfs.learn.waking import Waking
from geniuzfs.model import ModelId
from geniuzfs.ports import Vectors
from geniuzfs.store import passages, retention
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.notes import learn, taught, write


def test_words_are_learned_before_vectors(database: Database) -> None:
    for number in range(3 * FILES_A_STEP):
        write(database, f"{number}.md", f"Note {number}.")
    embedder = FakeEmbedder()
    learner = Learner(database, embedder, time.time_ns)
    while learner.waiting().sources:
        assert embedder.passages_embedded == 0
        assert learner.step()
    while learner.step():
        pass
    assert embedder.passages_embedded == 3 * FILES_A_STEP
    assert learner.waiting() == (0, 0)


def test_versions_that_are_kept_no_longer_go_when_all_is_learned(database: Database) -> None:
    for number in range(retention.AT_ONCE + 2):
        write(database, "notes.md", f"Text {number}.")
    (newest,) = database.view.row("SELECT max(replaced_ns) FROM versions")
    month_ns = 31 * 86_400 * 10**9
    learner = Learner(database, FakeEmbedder(), lambda: newest + month_ns)
    while learner.waiting().sources:
        assert learner.step()
    assert database.view.row("SELECT count(*) FROM versions") == (retention.AT_ONCE + 1,)
    while learner.step():
        pass
    assert database.view.row("SELECT count(*) FROM versions") == (0,)


def test_without_a_model_the_words_are_learned_and_the_reason_is_kept(database: Database) -> None:
    embedder = FakeEmbedder()
    embedder.away = "it is on holiday"
    learner = Learner(database, embedder, time.time_ns)
    write(database, "notes.md", "Said.")
    while learner.step():
        pass
    assert (taught(database), learner.model_note) == ({"Said."}, "it is on holiday")
    write(database, "more.md", "And more.")
    assert learner.step()
    assert taught(database) == {"Said.", "And more."}


class Chosen(FakeEmbedder):
    """Which model is chosen can be read, whether or not it can be used."""

    def model(self) -> ModelId:
        return self.id


def test_a_model_that_comes_back_is_used_after_the_pause(database: Database) -> None:
    embedder = Chosen()
    write(database, "notes.md", "Said.")
    for retry_seconds, embedded in ((3_600.0, 0), (0.0, 1)):
        learner = Learner(database, embedder, time.time_ns, retry_seconds)
        embedder.away = "it is on holiday"
        while learner.step():
            pass
        embedder.away = None
        while learner.step():
            pass
        assert embedder.passages_embedded == embedded
        assert learner.model_note == ("" if embedded else "it is on holiday")


def test_another_model_is_asked_at_once(database: Database) -> None:
    class Broken(Chosen):
        def passages(self, texts: Sequence[str], model: ModelId) -> Vectors:
            self.away = "it is broken" if model == "fake@1" else None
            return super().passages(texts, model)

    embedder = Broken()
    learner = Learner(database, embedder, time.time_ns)
    write(database, "notes.md", "Said.")
    while learner.step():
        pass
    assert learner.model_note == "it is broken"
    embedder.id = ModelId("fake@2")
    while learner.step():
        pass
    assert (embedder.passages_embedded, learner.model_note) == (1, "")


def test_one_at_a_time_has_the_turn(database: Database) -> None:
    one, other = Turn(database), Turn(database)
    assert one.take()
    assert not other.take()
    one.give_back()
    assert other.take()
    other.give_back()


def test_unfinished_saves_hold_nothing_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(database, "before.md", "Written before.")
    for number in range(2 * FILES_A_STEP):
        write(database, f"tmpab{number:04d}", f"Passing by, number {number}.")
    with database.txn() as txn:
        txn.run(
            "INSERT INTO memories (memory_uuid, payload, created_at, parent_uuid)"
            ' VALUES (?1, \'{"content":"Kept.","gist":""}\', \'2026-10-06 08:00:00\', ?1)',
            ("13625F6B-0000-4000-8000-000000000001",),
        )
    # Made now: the clock of these tests stands still, at a time long ago.
    written = database.view.row("SELECT max(since_ns) FROM due")[0]
    monkeypatch.setattr("geniuzfs.learn.backlog.time.time_ns", lambda: written)
    learn(database)
    assert taught(database) == {"Written before.", "Kept."}
    assert passages.waiting(database.view).sources == 2 * FILES_A_STEP
    monkeypatch.undo()
    learn(database)
    assert len(taught(database)) == 2 + 2 * FILES_A_STEP


def test_a_merge_that_was_killed_is_cleared_and_made_anew(database: Database) -> None:
    for number in range(40):
        write(database, f"{number}.md", f"Note {number}.")
        Backlog(database).step()
    with database.txn() as txn:
        txn.run("INSERT INTO segments (ready, buckets, passages) VALUES (0, 1, x'')")
    learner = Learner(database, FakeEmbedder(), time.time_ns)
    learner.begin()
    assert database.view.row("SELECT count(*) FROM segments WHERE ready = 0") == (0,)
    while learner.step():
        pass
    assert len(taught(database)) == 40


# Waking


def test_a_commit_wakes_and_several_are_one(tmp_path: Path, database: Database) -> None:
    read, write_end = os.pipe()
    with os.fdopen(read) as parent, os.fdopen(write_end, "w") as end:
        waking = Waking(parent)
        waking.watch([database.wal_path])
        for number in range(5):
            write(database, f"{number}.md", "Said.")
        assert waking.wait(30)
        assert not _pending(waking)
        assert not waking.over()
        end.close()
        assert waking.over()
        assert not waking.wait(30)
        waking.close()


def _pending(waking: Waking) -> list[object]:
    return list(itertools.islice(waking._inotify.read(timeout=0), 1))
