"""What is forgotten is gone from every byte of the database and its log."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from geniuzfs.errors import Busy, NotFound, ReadOnly, UsageError
from geniuzfs.model import ROOT, MemoryId
from geniuzfs.store import (
    check,
    embeddings,
    forgetting,
    histories,
    memories,
    paths,
    postings,
    schema,
    tree,
    vectors,
    xattrs,
)
from geniuzfs.store.connection import Database
from geniuzfs.store.terms import terms
from tests.embed.fake import FakeEmbedder
from tests.notes import Asker, learn, remove, rename, taught, write
from tests.store.erased import at_once, raw, traces

NOW = 1_700_000_000_000_000_000

SECRET = "Xylographer Quillemont pays the ransom in Vaduz."
SHARED = "The meeting was on a rainy Thursday."


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Database]:
    """Two notes that share a paragraph, learned, and enough others for blocks of vectors."""
    opened = Database.open(tmp_path / "memory.db", create=True, wait=0.2)
    with opened.txn() as txn:
        tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
    yield opened
    with opened.snapshot() as view:
        assert list(check.problems(view)) == []
    opened.close()


def forget(database: Database, path: str) -> None:
    database.overwrite_deleted()
    with database.txn() as txn:
        forgetting.files(txn, forgetting.beneath(txn, path.encode()), NOW)
    forgetting.erase(database, at_once)


def test_a_file_is_gone_from_every_byte_and_what_another_says_too_stays(
    folder: Database, tmp_path: Path
) -> None:
    embedder = FakeEmbedder()
    note = write(folder, "quillemont-plan.md", f"# Ransomware heading\n\n{SECRET}\n\n{SHARED}\n")
    write(folder, "other.md", f"# Other\n\n{SHARED}\n")
    for number in range(1_100):
        write(folder, f"filler/{number}.md", f"Filler {number} says nothing at all.\n")
    with folder.txn() as txn:
        xattrs.put(txn, note, b"user.geniuz.label.who", b"quillemontlabel", NOW)
    learn(folder, embedder)
    assert folder.view.row("SELECT count(*) FROM blocks") == (1,)
    rename(folder, "quillemont-plan.md", "plan.md")  # the record of changes has both names
    write(folder, "plan.md", f"# Ransomware heading\n\n{SECRET}\n\n{SHARED}\n\nZanzibarian end.\n")
    write(folder, "plan.md", f"# Ransomware heading\n\n{SECRET}\n\n{SHARED}\n")  # leaves old bytes
    learn(folder, embedder)
    sought = traces(folder, [SECRET, "Zanzibarian end."])
    sought |= {"name": b"quillemont-plan", "label": b"quillemontlabel", "heading": b"Ransomware"}
    before = raw(tmp_path)
    assert [name for name, bytes_ in sought.items() if bytes_ not in before] == []
    forget(folder, "plan.md")
    after = raw(tmp_path)
    assert [name for name, bytes_ in sought.items() if bytes_ in after] == []
    assert SHARED in taught(folder)
    assert Asker(folder, embedder).texts("rainy Thursday meeting")[0] == SHARED
    assert SECRET not in Asker(folder, embedder).texts("Quillemont ransom Vaduz")
    assert Path(f"{folder.path}-wal").stat().st_size <= 200_000  # what took the mark away


def test_the_terms_and_codes_of_what_is_gone_stand_nowhere(folder: Database) -> None:
    embedder = FakeEmbedder()
    write(folder, "secret.md", SECRET)
    for number in range(1_100):
        write(folder, f"{number}.md", f"Filler {number} says nothing at all.")
    learn(folder, embedder)
    (gone,) = folder.view.row("SELECT id FROM passages WHERE text = ?", (SECRET,))
    forget(folder, "secret.md")
    held = folder.view.rows("SELECT passages FROM segments UNION ALL SELECT passages FROM blocks")
    assert not any(gone in np.frombuffer(row[0], np.int64) for row in held)
    key = terms("quillemont").words[0].tobytes()
    assert not any(key in row[0] for row in folder.view.rows("SELECT terms FROM postings"))
    ((model, *_),) = vectors.models(folder.view)
    codes = vectors.block(folder.view, vectors.blocks(folder.view, model)[0])
    assert len(codes.passages) in (vectors.BLOCK, vectors.BLOCK - 1)


def test_a_merge_worked_out_before_writes_nothing_of_what_was_forgotten_since(
    folder: Database, tmp_path: Path
) -> None:
    write(folder, "secret.md", SECRET)
    learn(folder)
    write(folder, "other.md", SHARED)
    learn(folder)
    with folder.snapshot() as view:
        merged = postings.merge(view, postings.segment_ids(view))
    forget(folder, "secret.md")
    for step in merged.steps():
        with folder.txn() as txn:
            step.write(txn, None)
    key = terms("quillemont").words[0].tobytes()
    assert key not in raw(tmp_path)


def test_a_directory_goes_with_all_beneath_it_and_every_name_of_a_file(folder: Database) -> None:
    note = write(folder, "dir/deep/note.md", SECRET)
    write(folder, "kept.md", SHARED)
    with folder.txn() as txn:
        tree.link(txn, note, ROOT, b"second name", NOW)
    forget(folder, "dir")
    assert folder.view.rows("SELECT name FROM entries") == [(b"kept.md",)]
    assert folder.view.row("SELECT nlink, mtime_ns FROM inodes WHERE number = 1") == (2, NOW)


def test_what_only_earlier_versions_held_goes_with_the_file(
    folder: Database, tmp_path: Path
) -> None:
    note = write(folder, "plan.md", SECRET)
    write(folder, "plan.md", "Nothing is left of it.")
    write(folder, "kept.md", "Zanzibarian draft.")
    write(folder, "kept.md", "Zanzibarian end.")
    rename(folder, "plan.md", "moved.md")
    assert SECRET.encode() in raw(tmp_path)
    forget(folder, "moved.md")
    assert SECRET.encode() not in raw(tmp_path)
    assert b"moved.md" not in raw(tmp_path)
    assert folder.view.row("SELECT count(*) FROM lineages WHERE inode = ?", (note,)) == (0,)
    assert b"Zanzibarian draft." in raw(tmp_path)


def test_of_what_is_removed_already_every_version_and_name_goes(
    folder: Database, tmp_path: Path
) -> None:
    write(folder, "quillemont/deep/ransom.md", SECRET)
    write(folder, "quillemont/deep/ransom.md", "Later.")
    write(folder, "quillemont/bare.md", "A bare one.")
    write(folder, "kept.md", "kept")
    learn(folder)
    for path in ("quillemont/deep/ransom.md", "quillemont/bare.md", "kept.md"):
        remove(folder, path)
    with folder.txn() as txn:
        deep = paths.find(txn, b"quillemont/deep")
        assert deep is not None
        tree.remove(txn, tree.parent_of(txn, deep), b"deep", NOW, directory=True)
        tree.remove(txn, ROOT, b"quillemont", NOW, directory=True)
        txn.run("DELETE FROM versions WHERE size = 11")  # it expired, its name is there still
    sought = (SECRET.encode(), b"Later.", b"ransom.md", b"quillemont/deep", b"bare.md")
    assert all(each in raw(tmp_path) for each in sought)
    found = forgetting.beneath(folder.view, b"/quillemont/")
    assert (len(found.removed), found.files, found.directories) == (2, 0, 0)
    forget(folder, "/quillemont/")
    assert not [each for each in sought if each in raw(tmp_path)]
    assert len(histories.at(folder.view, b"kept.md")) == 1
    with pytest.raises(NotFound):
        forget(folder, "quillemont")


def test_what_stood_beneath_a_directory_that_is_there_goes_with_it(
    folder: Database, tmp_path: Path
) -> None:
    write(folder, "dir/secret.md", SECRET)
    remove(folder, "dir/secret.md")
    write(folder, "dir/there.md", SHARED)
    forget(folder, "dir")
    assert SECRET.encode() not in raw(tmp_path)
    assert b"secret.md" not in raw(tmp_path)


def test_nothing_at_a_path_and_the_top_are_refused(folder: Database) -> None:
    with folder.snapshot() as view:
        with pytest.raises(NotFound):
            forgetting.beneath(view, b"nothing")
        for top in (b"", b"/", b"."):
            with pytest.raises(UsageError):
                forgetting.beneath(view, top)


# Kept memories


def keep(database: Database, text: str, parent: str | None = None) -> MemoryId:
    with database.txn() as txn:
        return memories.keep(txn, text, None, parent, NOW).memory.id


def forget_memory(database: Database, id_: MemoryId) -> None:
    database.overwrite_deleted()
    with database.txn() as txn:
        found = memories.memory(txn, id_)
        assert found is not None
        forgetting.memory(txn, found, NOW)
    forgetting.erase(database, at_once)


def guarded(database: Database) -> None:
    """Every trigger of the guard is in place, and each refuses."""
    for change in (
        "UPDATE memories SET payload = 'x'",
        "DELETE FROM memories",
        "INSERT OR REPLACE INTO memories SELECT * FROM memories",
    ):
        with pytest.raises(ReadOnly, match="immutable"), database.txn() as txn:
            txn.run(change)


def test_a_memory_is_gone_from_every_byte_and_the_guard_stands(
    folder: Database, tmp_path: Path
) -> None:
    embedder = FakeEmbedder()
    id_ = keep(folder, SECRET)
    other = keep(folder, SHARED)
    number = folder.view.row("SELECT rowid FROM memories WHERE memory_uuid = ?", (other,))
    vector = np.arange(384, dtype=np.float32).tobytes()
    with folder.txn() as txn:
        txn.run("INSERT INTO memory_embeddings VALUES (?, ?)", (id_, vector))
    learn(folder, embedder)
    sought = traces(folder, [SECRET]) | {"theirs": vector[400:800]}
    before = raw(tmp_path)
    assert not {name for name, bytes_ in sought.items() if bytes_ not in before} - {"vector8"}
    forget_memory(folder, id_)
    after = raw(tmp_path)
    assert [name for name, bytes_ in sought.items() if bytes_ in after] == []
    guarded(folder)
    assert forgetting.forgotten(folder.view) == {id_: "2023-11-14 22:13:20"}
    there = folder.view.rows("SELECT memory_uuid, rowid FROM memories")
    assert there == [(other, *number)]  # numbers are known to mounts: rewriting keeps them


def test_a_thread_closes_over_a_gap_and_geniuz_still_shows_all_of_it(folder: Database) -> None:
    root = keep(folder, "root")
    middle = keep(folder, "middle", root)
    leaf, other = keep(folder, "leaf", middle), keep(folder, "other", middle)

    def shown() -> list[tuple[str, str, int]]:
        return folder.view.rows(
            "SELECT gist, (SELECT json_extract(payload, '$.gist') FROM memories AS m"
            " WHERE m.memory_uuid = root_uuid), level FROM memory_chains ORDER BY gist"
        )

    forget_memory(folder, middle)
    assert shown() == [("leaf", "root", 1), ("other", "root", 1), ("root", "root", 0)]
    forget_memory(folder, root)
    assert shown() == [("leaf", "leaf", 0), ("other", "other", 0)]
    assert {one.id for one in memories.thread(folder.view, leaf)} == {leaf}
    forget_memory(folder, leaf)
    forget_memory(folder, other)
    assert shown() == []
    guarded_schema = folder.view.rows("SELECT name FROM sqlite_schema WHERE tbl_name = 'memories'")
    assert {name for name in schema.objects() if name.startswith("prevent_")} <= {
        row[0] for row in guarded_schema
    }


# What can't be finished


def test_a_reader_of_an_old_state_keeps_it_from_being_erased_and_that_is_said(
    folder: Database, tmp_path: Path
) -> None:
    write(folder, "secret.md", SECRET)
    reader = Database.open(folder.path)
    with reader.snapshot() as old:
        assert old.row("SELECT count(*) FROM contents") == (1,)
        with pytest.raises(Busy):
            forget(folder, "secret.md")
        assert forgetting.unfinished(folder.view) is not None
        assert SECRET.encode() in raw(tmp_path)
        with folder.snapshot() as view:
            assert [one.rule for one in check.problems(view)] == ["erasures_are_finished"]
    reader.close()
    forgetting.erase(folder, at_once)
    assert forgetting.unfinished(folder.view) is None
    assert SECRET.encode() not in raw(tmp_path)


def test_what_is_kept_has_its_payload_untouched(folder: Database) -> None:
    root = keep(folder, "root")
    leaf = keep(folder, "leaf", root)
    before = folder.view.row(
        "SELECT payload, created_at FROM memories WHERE memory_uuid = ?", (leaf,)
    )
    forget_memory(folder, root)
    assert json.loads(before[0])["content"] == "leaf"
    assert before == folder.view.row(
        "SELECT payload, created_at FROM memories WHERE memory_uuid = ?", (leaf,)
    )


def test_a_vector_that_comes_for_a_memory_that_was_forgotten_meanwhile_is_dropped(
    folder: Database,
) -> None:
    id_ = keep(folder, SECRET)
    forget_memory(folder, id_)
    with folder.txn() as txn:
        embeddings.put(txn, id_, np.ones(384, np.float32))
    assert folder.view.row("SELECT count(*) FROM memory_embeddings") == (0,)
