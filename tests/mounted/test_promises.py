"""The promises of learning and recall, through a real mount with real processes beside it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from geniuzfs.model import ROOT
from geniuzfs.store import content, tree
from geniuzfs.store.connection import Database
from tests.daemon import wait_until
from tests.mounted.learned import Learned, files, paragraphs

SAVES = int(os.environ.get("GENIUZ_TEST_SAVES", "150"))
"""Read at once after each; by hand with 1,000."""


@pytest.fixture(scope="module")
def learning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Learned]:
    """A mount that several tests share, each with a directory and words of its own."""
    with Learned(tmp_path_factory.mktemp("learning")) as daemon:
        yield daemon


def texts(found: list[tuple[str, int, str]]) -> list[str]:
    return [text for _, _, text in found]


# Read your writes


@pytest.mark.timeout(600)
def test_what_was_saved_is_found_at_once_while_a_backlog_is_learned(tmp_path: Path) -> None:
    with Learned(tmp_path) as mount:
        files(mount.root / "backlog", 150, 20)
        here = mount.root / "fresh"
        here.mkdir()
        worked = 0
        for number in range(SAVES):
            path, above = here / f"{number % 20}.md", number % 7
            path.write_text("Filler.\n\n" * above + f"It says freshly{number}q now.\n")
            [(cited, line, text), *_] = mount.cited(f"freshly{number}q")
            assert text == f"It says freshly{number}q now."
            assert (cited, line) == (f"/fresh/{path.name}", 1 + 2 * above)
            worked += mount.waiting() != (0, 0)
        assert worked
        mount.wait_learned()


def test_an_edit_above_moves_the_line_that_is_cited(learning: Learned) -> None:
    path = learning.root / "moving.md"
    for above in range(12):
        path.write_text("A line.\n\n" * above + "The anchorword stands here.\n")
        assert learning.cited("anchorword")[0][:2] == ("/moving.md", 1 + 2 * above)


@pytest.mark.parametrize("mode", ["mode:words", "mode:meaning"])
def test_what_is_removed_is_gone_at_once(learning: Learned, mode: str) -> None:
    root = learning.root / mode.replace(":", "-")
    word = "goner" + mode[5:]
    (root / "tree" / "deep").mkdir(parents=True)
    said = paragraphs(6, word)
    (root / "kept.md").write_text("\n\n".join([said[0], said[5]]))
    (root / "paragraph.md").write_text("\n\n".join(said[:2]))
    (root / "file.md").write_text(said[2])
    (root / "tree" / "one.md").write_text("\n\n".join([said[3], said[5]]))
    (root / "tree" / "deep" / "two.md").write_text(said[4])
    learning.wait_learned()

    def found() -> set[str]:
        answer = learning.cited(f"{mode} limit:50 " + " ".join(said), beneath=root.name)
        return set(texts(answer))

    assert found() == set(said)
    (root / "paragraph.md").write_text(said[0])
    assert found() == set(said) - {said[1]}
    (root / "file.md").unlink()
    assert found() == set(said) - {said[1], said[2]}
    shutil.rmtree(root / "tree")
    assert found() == {said[0], said[5]}


def test_after_a_rename_the_new_path_is_cited_at_once(learning: Learned) -> None:
    root = learning.root / "renames"
    (root / "old" / "deep").mkdir(parents=True)
    (root / "old" / "deep" / "note.md").write_text("The wandererword stays.\n")
    learning.wait_learned()
    before = learning.embedded()
    assert learning.cited("wandererword")[0][0] == "/renames/old/deep/note.md"
    (root / "old").rename(root / "new")
    assert learning.cited("wandererword")[0][0] == "/renames/new/deep/note.md"
    (root / "new" / "deep" / "note.md").rename(root / "other.md")
    assert learning.cited("wandererword")[0][0] == "/renames/other.md"
    learning.wait_learned()
    assert learning.embedded() == before


# The embed counter


def test_only_what_changed_is_embedded(tmp_path: Path) -> None:
    mount = Learned(tmp_path)
    with mount:
        files(mount.root / "many", 1_000)
        said = paragraphs(500, "long")
        long = mount.root / "long.md"
        long.write_text("\n\n".join(said))
        mount.wait_learned()
        assert mount.embedded() == 1_500
        (mount.root / "many").rename(mount.root / "more")
        for path in (mount.root / "more").iterdir():
            path.touch()
        long.chmod(0o600)
        os.setxattr(long, "user.geniuz.label.channel", b"claude")
        long.write_text("\n\n".join(said))
        mount.wait_learned()
        assert mount.cited("subject17")[0][0] == "/more/17.md"
        assert mount.embedded() == 1_500
    with mount:
        assert mount.cited("subject17")[0][0] == "/more/17.md"
        mount.cli("learn", "--wait")
        assert mount.embedded() == 1_500
        said[250] = "Another paragraph stands here now."
        long.write_text("\n\n".join(said))
        mount.wait_learned()
        assert mount.embedded() == 1_501


# Editors, rules and states


def test_saves_by_renames_are_edits(learning: Learned) -> None:
    root = learning.root / "editors"
    root.mkdir()
    note, backup = root / "note.md", root / "note.md~"
    note.write_text("The danceword is old.\n")
    for version in range(5):  # as vim does with backupcopy=no
        note.rename(backup)
        note.write_text(f"\nThe danceword is version{version}q.\n")
        backup.unlink()
        assert learning.cited("danceword", beneath="editors") == [
            ("/editors/note.md", 2, f"The danceword is version{version}q.")
        ]
    for version in range(5):  # as rsync does
        copy = root / ".note.md.aB3xY9"
        copy.write_text(f"The danceword is copy{version}q.\n")
        assert "copy" not in learning.cited("danceword", beneath="editors")[0][2] or version
        copy.replace(note)
        assert learning.cited("danceword", beneath="editors") == [
            ("/editors/note.md", 1, f"The danceword is copy{version}q.")
        ]


def test_rules_of_what_is_not_learned_apply_at_once_and_backwards(learning: Learned) -> None:
    root = learning.root / "rules"
    (root / "private").mkdir(parents=True)
    (root / "private" / "diary.md").write_text("The secretword is here.\n")
    assert learning.cited("secretword")
    learning.wait_learned()
    (root / ".geniuzignore").write_text("private/\n")
    assert "The secretword is here." not in texts(learning.cited("secretword"))
    assert "The secretword is here." not in texts(learning.cited("secretword mode:meaning"))
    wait_until(lambda: learning.state("rules/private/diary.md") == "ignored")
    (root / ".geniuzignore").unlink()
    assert learning.cited("secretword")[0][2] == "The secretword is here."
    wait_until(lambda: learning.state("rules/private/diary.md") == "learned")


@pytest.mark.parametrize(
    ("name", "held", "expected"),
    [
        ("note.md", b"Read me.\n", "learned"),
        ("note.md~", b"Read me.\n", "ignored"),
        ("image.png", b"\x89PNG\r\n\x1a\n\0\0", "not-text"),
        ("blank.md", b" \n\n", "empty"),
        ("nothing.md", b"", "empty"),
        ("long.txt", b"word " * 400_001, "too-long"),
    ],
)
def test_a_file_says_what_learning_has_made_of_it(
    learning: Learned, name: str, held: bytes, expected: str
) -> None:
    (learning.root / "states").mkdir(exist_ok=True)
    (learning.root / "states" / name).write_bytes(held)
    wait_until(lambda: learning.state(f"states/{name}") == expected)


def test_a_file_waits_until_it_is_learned(tmp_path: Path) -> None:
    with Learned(tmp_path, environment={"GENIUZ_LEARN": "0"}) as mount:
        (mount.root / "note.md").write_text("Read me.\n")
        assert mount.state("note.md") == "waiting"
        assert mount.cli("learn", "--wait") == "learned\n"
        assert mount.state("note.md") == "learned"


# Others beside the mount


def test_the_command_line_answers_as_the_mount_does(learning: Learned) -> None:
    (learning.root / "beside.md").write_text("The besideword is said.\n")
    answer = learning.cli("recall", "--in", "My memory", "besideword")
    assert answer.startswith("- The besideword is said. [/beside.md:1, ")


def test_what_another_process_saves_is_found_through_the_mount(learning: Learned) -> None:
    database = Database.open(learning.database_path, wait=5)
    try:
        for number in range(20):
            held = f"The foreign{number}q came from elsewhere.\n".encode()
            with database.txn() as txn:
                made = tree.create(
                    txn, ROOT, b"foreign%d.md" % number, tree.New(0o100644, 0, 0), number + 1
                )
                content.save(txn, made.number, content.Save(len(held), 1, 1, {0: held}))
            assert learning.cited(f"foreign{number}q")[0][0] == f"/foreign{number}.md"
    finally:
        database.close()


def test_a_second_learner_waits_for_the_mount_s(learning: Learned) -> None:
    learning.wait_learned()
    before = learning.embedded()
    files(learning.root / "second", 20, 20, "second")
    assert learning.cli("learn", "--wait") == "learned\n"
    assert learning.waiting() == (0, 0)
    assert learning.embedded() == before + 400


def test_the_top_answers_over_every_folder(tmp_path: Path) -> None:
    mount = Learned(tmp_path, alone=None, environment={"GENIUZ_LEARN": "0"})
    other = mount.home / "Work" / "memory.db"
    other.parent.mkdir()
    Database.open(other, create=True).close()
    with mount:
        (mount.root / "My memory" / "one.md").write_text("The sharedword at home.\n")
        (mount.root / "Work" / "two.md").write_text("The sharedword at work.\n")
        answer = mount.root / ".recall" / "sharedword"

        def cited() -> set[tuple[str, str]]:
            return {(hit["folder"], hit["path"]) for hit in mount.ask("sharedword")["hits"]}

        for learn, way in (
            ((), "words only"),
            (("--in", "My memory"), "words + meaning"),  # the other has no vectors yet
            (("--in", "Work"), "words + meaning"),
        ):
            if learn:
                assert mount.cli("learn", "--wait", *learn) == "learned\n"
            held = answer.read_text()
            assert "The sharedword at home. [/My memory/one.md:1, " in held
            assert "The sharedword at work. [/Work/two.md:1, " in held
            assert way in held.splitlines()[-1]
            assert cited() == {("My memory", "/one.md"), ("Work", "/two.md")}
        assert mount.cited("sharedword", beneath="Work") == [
            ("/two.md", 1, "The sharedword at work.")
        ]


def test_crawlers_change_nothing(learning: Learned) -> None:
    (learning.root / "crawled.md").write_text("Crawled.\n")
    learning.wait_learned()
    before = learning.embedded()
    for command in (["find", "."], ["grep", "-r", "nothingofthekind", "."], ["du", "."]):
        subprocess.run(command, cwd=learning.root, check=False, capture_output=True, timeout=60)
    assert (learning.waiting(), learning.embedded()) == ((0, 0), before)
