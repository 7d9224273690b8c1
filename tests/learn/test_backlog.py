"""Files are learned in small steps: what changed, and nothing else."""

import pytest

from geniuzfs.learn.backlog import Backlog
from geniuzfs.model import InodeNumber
from geniuzfs.store import passages, paths
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.notes import Asker, learn, remove, rename, taught, write


def state(database: Database, path: str) -> str | None:
    inode = paths.find(database.view, path.encode())
    assert inode is not None
    return passages.state(database.view, inode)


def paragraphs(count: int) -> list[str]:
    return [f"Paragraph number {n} speaks of subject{n} alone." for n in range(count)]


def test_a_file_that_is_due_is_learned_and_not_due_any_more(database: Database) -> None:
    write(database, "notes.md", "# Plans\n\nWe sail in May.\n\nWe return in June.\n")
    assert state(database, "notes.md") == "waiting"
    learn(database, FakeEmbedder())
    assert taught(database) == {"We sail in May.", "We return in June."}
    assert state(database, "notes.md") == "learned"
    assert passages.waiting(database.view) == (0, 0)


def test_one_changed_paragraph_of_500_is_one_embedding(database: Database) -> None:
    embedder, held = FakeEmbedder(), paragraphs(500)
    write(database, "long.md", "\n\n".join(held))
    learn(database, embedder)
    assert embedder.passages_embedded == 500
    held[250] = "This paragraph is another one now."
    write(database, "long.md", "\n\n".join(held))
    learn(database, embedder)
    assert embedder.passages_embedded == 501
    assert taught(database) == set(held)


def test_the_same_bytes_again_embed_nothing(database: Database) -> None:
    embedder = FakeEmbedder()
    for _ in range(3):
        write(database, "notes.md", "Said once.")
        learn(database, embedder)
    assert embedder.passages_embedded == 1


@pytest.mark.parametrize("new", ["other.md", "deep/notes.md"])
def test_a_rename_embeds_nothing(database: Database, new: str) -> None:
    embedder = FakeEmbedder()
    write(database, "notes.md", "Said once.")
    write(database, "deep/else.md", "Something else.")
    learn(database, embedder)
    rename(database, "notes.md", new)
    learn(database, embedder)
    assert embedder.passages_embedded == 2
    assert [hit.path for hit in Asker(database).ask("said").hits] == [f"/{new}"]


def test_a_rename_of_a_directory_of_a_thousand_files_makes_nothing_due(database: Database) -> None:
    for number in range(1_000):
        write(database, f"many/{number}.md", f"This is note number {number}.")
    learn(database)
    rename(database, "many", "more")
    assert passages.waiting(database.view).sources == 0
    assert Asker(database).ask("note 17").hits[0].path == "/more/17.md"


def test_a_text_that_two_files_say_stays_as_long_as_one_says_it(database: Database) -> None:
    embedder = FakeEmbedder()
    write(database, "one.md", "Both say this.\n\nOnly one says that.")
    write(database, "two.md", "Both say this.")
    learn(database, embedder)
    assert embedder.passages_embedded == 2
    remove(database, "one.md")
    assert taught(database) == {"Both say this."}
    assert [hit.path for hit in Asker(database).ask("both").hits] == ["/two.md"]
    remove(database, "two.md")
    for table in ("sources", "passages", "teaches", "vectors", "awaits"):
        assert database.view.row(f"SELECT count(*) FROM {table}") == (0,)


def test_the_newest_is_learned_first(database: Database) -> None:
    for number in range(200):
        write(database, f"{number}.md", f"Note {number}.")
    backlog = Backlog(database)
    assert backlog.step()
    learned = taught(database)
    assert "Note 199." in learned
    assert "Note 0." not in learned
    learn(database)
    assert len(taught(database)) == 200


@pytest.mark.parametrize(
    ("path", "held", "expected"),
    [
        ("empty.md", b"  \n\n", "empty"),
        ("image.png", b"\x89PNG\r\n\x1a\n\x00\x00", "not-text"),
        ("latin.txt", b"caf\xe9 au lait", "not-text"),
        ("long.txt", b"word " * 400_001, "too-long"),
        ("notes.md~", b"a backup", "ignored"),
        (".notes.md.swp", b"a swap file", "ignored"),
        (".git/config", b"[core]", "ignored"),
        ("#notes.md#", b"an autosave", "ignored"),
    ],
)
def test_what_is_not_learned_says_why(
    database: Database, path: str, held: bytes, expected: str
) -> None:
    if len(held) <= 65_536:
        write(database, path, held)
    else:
        write_long(database, path, held)
    learn(database)
    assert state(database, path) == expected
    assert taught(database) == set()


def write_long(database: Database, path: str, held: bytes) -> None:
    from geniuzfs.store import content

    number = write(database, path, b"x")
    pieces = {n: held[n * 65_536 : (n + 1) * 65_536] for n in range(len(held) // 65_536 + 1)}
    with database.txn() as txn:
        content.save(txn, number, content.Save(len(held), 9, 9, pieces))


def test_a_file_with_a_hole_is_no_text(database: Database) -> None:
    from geniuzfs.store import content

    number: InodeNumber = write(database, "hole.md", "begins well")
    with database.txn() as txn:
        content.save(txn, number, content.Save(1_000, 9, 9, {}))
    learn(database)
    assert state(database, "hole.md") == "not-text"


def test_an_editor_that_renames_the_old_file_away_is_an_edit_of_the_name(
    database: Database,
) -> None:
    embedder = FakeEmbedder()
    write(database, "note.md", "This stays.\n\nThis goes.")
    learn(database, embedder)
    rename(database, "note.md", "note.md~")
    write(database, "note.md", "This stays.\n\nThis comes.")
    learn(database, embedder)
    assert taught(database) == {"This stays.", "This comes."}
    assert embedder.passages_embedded == 3
    assert Asker(database).ask("stays").hits[0].path == "/note.md"


def test_a_temporary_name_is_learned_once_it_is_renamed(database: Database) -> None:
    write(database, ".note.md.Ab12Cd", "Came by rsync.")
    learn(database)
    assert taught(database) == set()
    rename(database, ".note.md.Ab12Cd", "note.md")
    learn(database)
    assert taught(database) == {"Came by rsync."}


def test_rules_apply_to_what_is_there_and_forget_what_they_cover(database: Database) -> None:
    write(database, "private/diary.md", "A secret.")
    write(database, "open.md", "No secret.")
    learn(database)
    write(database, ".geniuzignore", "private/\n.geniuzignore\n")
    learn(database)
    assert taught(database) == {"No secret."}
    assert state(database, "private/diary.md") == "ignored"
    write(database, ".geniuzignore", "nothing\n.geniuzignore\n")
    learn(database)
    assert taught(database) == {"A secret.", "No secret."}
    write(database, ".geniuzignore", "*.md\n.geniuzignore\n")
    learn(database)
    assert taught(database) == set()
    remove(database, ".geniuzignore")
    learn(database)
    assert taught(database) == {"A secret.", "No secret."}


def test_rules_that_are_renamed_into_place_apply(database: Database) -> None:
    write(database, "sub/a.md", "Covered soon.")
    learn(database)
    write(database, "sub/rules", "*\n")
    rename(database, "sub/rules", "sub/.geniuzignore")
    learn(database)
    assert taught(database) == set()


def test_a_directory_that_moves_beneath_rules_is_forgotten(database: Database) -> None:
    write(database, "hidden/.geniuzignore", "*\n")
    write(database, "shown/a.md", "Seen for now.")
    learn(database)
    assert taught(database) == {"Seen for now."}
    rename(database, "shown", "hidden/shown")
    learn(database)
    assert taught(database) == set()


def test_a_kept_memory_is_learned(database: Database) -> None:
    uuid = "13625F6B-0000-4000-8000-000000000001"
    with database.txn() as txn:
        txn.run(
            "INSERT INTO memories (memory_uuid, payload, created_at, parent_uuid)"
            ' VALUES (?1, \'{"content":"Priya signs the renewal.","gist":"renewal"}\','
            " '2026-10-06 08:00:00', ?1)",
            (uuid,),
        )
    learn(database, FakeEmbedder())
    hit = Asker(database).ask("who signs the renewal").hits[0]
    assert (hit.kind, hit.address, hit.date) == ("memory", "00000000:13625F6B", "2026-10-06")


@pytest.mark.parametrize(
    "payload",
    [
        '{"content":"tea \\ud800 four","gist":"half a character"}',
        '{"content":"tea at four","gist":"half a \\udfff character"}',
        '{"content":"tea \\u0000 four","gist":"a NUL"}',
        f'{{"content":"tea at four","gist":"{"long " * 20_000}"}}',
    ],
)
def test_a_memory_that_only_another_tool_would_write_holds_nothing_up(
    database: Database, payload: str
) -> None:
    with database.txn() as txn:
        txn.run(
            "INSERT INTO memories (memory_uuid, payload) VALUES (?, ?)",
            ("13625F6B-0000-4000-8000-000000000001", payload),
        )
    learn(database, FakeEmbedder())
    assert passages.waiting(database.view) == (0, 0)
    (hit,) = Asker(database, FakeEmbedder()).ask("tea four").hits
    assert hit.text.startswith("tea ")
    assert hit.text.endswith(" four")


def test_a_memory_that_can_not_be_read_holds_nothing_up(database: Database) -> None:
    with database.txn() as txn:
        for number, payload in enumerate(("[]", "no json", '{"gist":"x"}', '{"content":null}')):
            txn.run(
                "INSERT INTO memories (memory_uuid, payload) VALUES (?, ?)",
                (f"13625F6B-0000-4000-8000-00000000000{number}", payload),
            )
    learn(database)
    assert passages.waiting(database.view) == (0, 0)
    with database.txn() as txn:  # check would rightly complain of them
        txn.run("DROP TRIGGER prevent_memory_delete")
        txn.run("DELETE FROM memories")
        txn.run(
            "CREATE TRIGGER prevent_memory_delete BEFORE DELETE ON memories BEGIN"
            " SELECT RAISE(ABORT, 'memories are immutable: delete is not permitted'); END"
        )


def test_two_that_learn_at_once_learn_everything_once(database: Database) -> None:
    for number in range(100):
        write(database, f"{number}.md", f"Note {number}.\n\nAll say this.")
    with_other = Database.open(database.path)
    try:
        one, other = Backlog(database), Backlog(with_other)
        while one.step() | other.step():
            pass
    finally:
        with_other.close()
    assert len(taught(database)) == 101


def test_markup_that_says_nothing_is_not_learned(database: Database) -> None:
    write(
        database, "a.md", "+---+---+\n\nSaid.\n\n</aside>\n\n<!-- a\ncomment -->\n\n😀\n\n* * *\n"
    )
    learn(database, FakeEmbedder())
    assert taught(database) == {"Said.", "😀"}


def test_a_file_name_in_capitals_is_found_by_its_words(database: Database) -> None:
    write(database, "ReadingTime.md", "Words a minute.")
    for number in range(9):
        write(database, f"{number}.md", f"Something read {number} times.")
    learn(database)
    assert Asker(database).texts("reading time")[0] == "Words a minute."
