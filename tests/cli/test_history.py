"""`geniuzfs history`, `diff` and `undo` on a folder that is not mounted."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from geniuzfs.model import CHUNK, ROOT, Writer
from geniuzfs.store import check, content, tree
from geniuzfs.store.connection import Database
from tests.store.files import Files


@contextmanager
def opened(home: Path) -> Iterator[Files]:
    database = Database.open(home / "memory.db", wait=5)
    try:
        yield Files(database)
        with database.snapshot() as view:
            assert list(check.problems(view)) == []
    finally:
        database.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a note of three texts, the last by another program that had not read the
    second, and an empty directory.
    """
    home = tmp_path / "home"
    home.mkdir()
    database = Database.open(home / "memory.db", create=True)
    with database.txn() as txn:
        tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
    database.close()
    with opened(home) as files:
        files.save("notes.md", b"one\n")
        files.save("notes.md", b"two\n", Writer("vim", 10, 1))
        files.save("notes.md", b"three\n", Writer("agent", 11, 1), blind=True)
        files.mkdir("drafts")
    return home


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "geniuzfs", *arguments],
        env={**os.environ, "GENIUZ_HOME": str(home), "TZ": "UTC"},
        capture_output=True,
        text=True,
        check=False,
    )


def said(home: Path, *arguments: str) -> Any:
    done = run(home, *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def text(home: Path, path: str) -> bytes | None:
    with opened(home) as files:
        found = tree.child(files.database.view, *files.place(path))
        return None if found is None else content.read(files.database.view, found.number)


def test_history_lists_the_versions_of_a_file(home: Path) -> None:
    versions = said(home, "history", "/notes.md")["versions"]
    assert [(one["size"], one["writer"], one["conflict"]) for one in versions] == [
        (4, "", False),
        (4, "vim (10)", True),
    ]
    lines = run(home, "history", "notes.md").stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == [one["name"] for one in versions]
    assert lines[1].endswith("4  vim (10)")
    assert "~conflict.md" in lines[1]


def test_history_without_a_path_lists_what_was_changed_and_removed(home: Path) -> None:
    with opened(home) as files:
        files.now_ns += 10**12
        files.save("drafts/plan.md", b"a plan")
        files.remove("drafts/plan.md")
    found = said(home, "history")
    assert [(one["path"], one["removed"], one["versions"]) for one in found["files"]] == [
        ("/drafts/plan.md", True, 1),
        ("/notes.md", False, 2),
    ]
    assert (found["keep_days"], found["keep_bytes"]) == (30, None)
    last = run(home, "history").stdout.splitlines()
    assert last[-1] == "versions are kept for 30 days"
    assert "/drafts/plan.md  1 version  removed" in last[0]


def test_what_has_no_history_is_told_in_a_line_and_exits_with_1(home: Path) -> None:
    for command in ("history", "diff", "undo"):
        done = run(home, command, "/nothing.md")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1
        assert "/nothing.md has no earlier versions" in done.stderr


def test_a_path_out_of_the_folder_is_refused(home: Path) -> None:
    assert run(home, "history", "--in", "My memory", "../notes.md").returncode == 2


def test_diff_compares_the_last_version_with_what_is_there(home: Path) -> None:
    done = run(home, "diff", "notes.md")
    assert done.stdout.splitlines()[2:] == ["@@ -1,2 +1,2 @@", "-two", "+three", " "]
    first, second = (one["name"] for one in said(home, "history", "notes.md")["versions"])
    assert "-one" in run(home, "diff", "notes.md", first).stdout
    both = said(home, "diff", "notes.md", first, second)
    assert both["diff"][3:5] == ["-one", "+two"]
    assert run(home, "diff", "notes.md", "1999").returncode == 1
    assert run(home, "diff", "notes.md", "20").returncode == 2


def test_undo_brings_back_the_text_before_the_last_save_and_can_be_undone(home: Path) -> None:
    name = said(home, "history", "notes.md")["versions"][-1]["name"]
    done = run(home, "undo", "notes.md")
    assert done.stdout == f"/notes.md is what it was until {name}\n"
    assert text(home, "notes.md") == b"two\n"
    assert said(home, "history", "notes.md")["versions"][-1]["size"] == 6
    run(home, "undo", "notes.md")
    assert text(home, "notes.md") == b"three\n"


def test_undo_to_a_version_brings_back_its_bytes_and_mode(home: Path) -> None:
    with opened(home) as files:
        number = files.save("notes.md", b"\0\xff" + bytes(200_000) + b"end")
        with files.database.txn() as txn:
            tree.change(txn, number, tree.Fields(mode=0o100600), files.tick())
        files.save("notes.md", b"short")
        with files.database.txn() as txn:
            tree.change(txn, number, tree.Fields(mode=0o100755), files.tick())
    name = said(home, "history", "notes.md")["versions"][-1]["name"]
    first = said(home, "history", "notes.md")["versions"][0]["name"]
    assert run(home, "undo", "notes.md", "--to", name).returncode == 0
    assert text(home, "notes.md") == b"\0\xff" + bytes(200_000) + b"end"
    with opened(home) as files:
        found = tree.child(files.database.view, *files.place("notes.md"))
        assert found is not None
        assert found.mode == 0o100600
    run(home, "undo", "notes.md", "--to", first)
    assert text(home, "notes.md") == b"one\n"


def test_undo_brings_a_removed_file_back_with_its_history(home: Path) -> None:
    with opened(home) as files:
        files.remove("notes.md")
    assert said(home, "undo", "notes.md")["undone"][0]["removed"] is True
    assert text(home, "notes.md") == b"three\n"
    assert len(said(home, "history", "notes.md")["versions"]) == 2


def test_what_undo_makes_anew_is_the_folders_owners_and_no_program_that_runs_as_him(
    home: Path,
) -> None:
    with opened(home) as files:
        number = files.save("drafts/run", b"#!/bin/sh")
        with files.database.txn() as txn:
            tree.change(txn, number, tree.Fields(mode=0o104755, uid=77, gid=77), files.tick())
            tree.change(txn, ROOT, tree.Fields(uid=1234, gid=1235), files.tick())
        files.remove("drafts/run")
        files.rmdir("drafts")
    assert run(home, "undo", "drafts/run").returncode == 0
    with opened(home) as files:
        view = files.database.view
        found = [tree.child(view, *files.place(path)) for path in ("drafts", "drafts/run")]
        assert [(one.uid, one.gid, one.mode) for one in found if one is not None] == [
            (1234, 1235, 0o40755),
            (1234, 1235, 0o100755),
        ]


def test_undo_of_a_directory_brings_back_its_last_removal_alone(home: Path) -> None:
    with opened(home) as files:
        files.save("drafts/long ago.md", b"old")
        files.remove("drafts/long ago.md")
        files.now_ns += 3_600 * 10**9
        files.mkdir("drafts/deep")
        for number in range(20):
            files.save(f"drafts/deep/{number}.md", b"%d" % number)
        files.save("drafts/empty", b"")
        files.save("drafts/__init__.py", b"x")
        for number in range(20):
            files.remove(f"drafts/deep/{number}.md")
        files.remove("drafts/empty")
        files.remove("drafts/__init__.py")
        files.rmdir("drafts/deep")
        files.rmdir("drafts")
    done = run(home, "undo", "drafts")
    assert done.stdout.count(" is there again\n") == 22
    for number in range(20):
        assert text(home, f"drafts/deep/{number}.md") == b"%d" % number
    assert text(home, "drafts/empty") == b""
    assert text(home, "drafts/long ago.md") is None
    assert run(home, "undo", "drafts/long ago.md").returncode == 0
    assert text(home, "drafts/long ago.md") == b"old"
    assert run(home, "undo", "drafts").returncode == 1


def test_undo_does_not_put_a_removed_file_over_another(home: Path) -> None:
    with opened(home) as files:
        files.save("drafts/a", b"a")
        files.save("drafts/b", b"b")
        files.remove("drafts/a")
        files.remove("drafts/b")
        files.mkdir("drafts/a")
    assert [one["path"] for one in said(home, "undo", "drafts")["undone"]] == ["/drafts/b"]


def test_undo_does_not_write_into_a_link_that_is_there_now(home: Path) -> None:
    with opened(home) as files:
        files.remove("notes.md")
        with files.database.txn() as txn:
            new = tree.New(0o120777, 0, 0, target=b"elsewhere")
            tree.create(txn, *files.place("notes.md"), new, files.tick())
    refused = run(home, "undo", "notes.md")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "/notes.md is no file now" in refused.stderr
    with opened(home):  # it is whole: the checker finds nothing
        pass


def test_undo_brings_back_a_file_that_is_nearly_all_hole(home: Path) -> None:
    size, end = 1 << 40, (1 << 40) - 5
    with opened(home) as files, files.database.txn() as txn:
        pieces = {0: b"begin", end // CHUNK: bytes(end % CHUNK) + b"end"}
        content.save(txn, files.number("notes.md"), content.Save(size, 1, 1, pieces))
    with opened(home) as files:
        files.save("notes.md", b"a" * 3 * CHUNK)
    said(home, "undo", "notes.md")
    with opened(home) as files:
        number = files.number("notes.md")
        lengths = content.lengths(files.database.view, number)
        assert lengths.keys() == {0, end // CHUNK}
        last = content.piece(files.database.view, number, end // CHUNK)
        assert last == (bytes(end % CHUNK) + b"end").ljust(CHUNK, b"\0")
        assert content.piece(files.database.view, number, 0)[:6] == b"begin\0"


def test_a_folder_keeps_versions_for_as_long_as_it_is_told(home: Path) -> None:
    assert said(home, "history", "--keep-days", "7", "--keep-bytes", "1000000")["keep_days"] == 7
    last = run(home, "history").stdout.splitlines()[-1]
    assert last == "versions are kept for 7 days, at most 1000000 bytes"
    assert run(home, "history", "--keep-days", "-1").returncode == 2
    assert run(home, "history", "--keep-days", "0").stdout == "none are kept\n"
    assert said(home, "history")["files"] == []
    assert text(home, "notes.md") == b"three\n"


def test_status_counts_versions_and_conflicts(home: Path) -> None:
    (folder,) = said(home, "status")["folders"]
    assert (folder["versions"], folder["conflicts"]) == (2, 1)
    line = run(home, "status").stdout
    assert "learned, 2 earlier versions of 8 bytes, 1 of them in conflict\n" in line
