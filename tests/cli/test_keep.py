"""`geniuzfs keep`: what it prints, what it refuses, how it exits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.errors import NotFound, UsageError
from geniuzfs.store import memories


def run(
    home: Path,
    *arguments: str,
    given: bytes = b"",
    exits: int = 0,
    here: Path | None = None,
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "geniuzfs", *arguments],
        env={**os.environ, "GENIUZ_HOME": str(home), **variables},
        cwd=here,
        input=given.decode("utf-8", "surrogateescape"),
        errors="surrogateescape",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exits, done.stderr
    return done


@pytest.fixture
def geniuz(tmp_path: Path) -> Geniuz:
    made = runtime.geniuz(Config.from_environment({"GENIUZ_HOME": str(tmp_path / "home")}))
    made.begin()
    return made


def test_a_memory_is_kept_on_first_use_and_its_address_printed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = run(home, "keep", "Tea", "at", "four.")
    address = done.stdout.removeprefix("kept ").removesuffix("\n")
    assert done.stderr == ""
    answer = run(home, "recall", "--mode", "words", "tea").stdout
    assert answer.startswith(f"- Tea at four. [{address}, ")


def test_the_text_comes_from_a_file_or_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "note.md").write_bytes("Kätzchen\n".encode())
    for content, given in ((f"@{tmp_path}/note.md", b""), ("-", "Kätzchen".encode())):
        done = run(tmp_path / "home", "keep", "-c", content, "--json", given=given)
        kept = json.loads(done.stdout)
        assert kept["gist"] == "Kätzchen"
        assert (kept["parent"], kept["parent_unknown"], kept["folder"]) == (
            None,
            False,
            "My memory",
        )
        assert kept["uuid"].startswith(kept["address"][9:])


def test_a_thread_is_continued_and_an_unknown_parent_is_said(tmp_path: Path) -> None:
    home = tmp_path / "home"
    root = json.loads(run(home, "keep", "root", "--json").stdout)
    done = run(home, "keep", "child", "-p", root["address"], "--json")
    assert json.loads(done.stdout)["parent"] == root["uuid"]
    done = run(home, "keep", "orphan", "-p", "DEADBEEF", "--json")
    assert json.loads(done.stdout)["parent_unknown"] is True
    assert done.stderr == "geniuzfs: no memory is called DEADBEEF: a new thread was begun\n"


@pytest.mark.parametrize(
    ("arguments", "given", "code"),
    [
        (("keep",), b"", 2),
        (("keep", ""), b"", 2),
        (("keep", "  "), b"", 2),
        (("keep", "-c", "-"), b" \n", 2),
        (("keep", "-c", "-"), b"\xff", 2),
        (("keep", "-c", "-"), b"a\0b", 2),
        (("keep", "text", "-c", "text"), b"", 2),
        (("keep", "-c", "@/nowhere"), b"", 1),
        (("keep", "text", "--in", "nowhere"), b"", 1),
    ],
)
def test_what_can_not_be_kept_is_refused_in_one_line(
    tmp_path: Path, arguments: tuple[str, ...], given: bytes, code: int
) -> None:
    done = run(tmp_path / "home", *arguments, given=given, exits=code)
    assert done.stdout == ""
    assert done.stderr.startswith("geniuzfs: ")
    assert done.stderr.count("\n") == 1


def test_processes_that_keep_at_once_lose_and_double_nothing(
    tmp_path: Path, geniuz: Geniuz
) -> None:
    program = (
        "import sys; from geniuzfs import runtime; geniuz = runtime.geniuz()\n"
        "for n in range(50): geniuz.keep(None, f'{sys.argv[1]}: {n}')"
    )
    keepers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(keeper)],
            env={**os.environ, "GENIUZ_HOME": str(geniuz.config.home)},
        )
        for keeper in range(4)
    ]
    assert [keeper.wait(60) for keeper in keepers] == [0] * 4
    database = geniuz.open(geniuz.folders()[0], wait=5)
    said = [each.memory.content for each in memories.page(database.view, 0, 1_000)]
    database.close()
    assert sorted(said) == sorted(f"{keeper}: {n}" for keeper in range(4) for n in range(50))
    for keeper in range(4):  # in the order of keeping, within a second as well
        own = [text for text in said if text.startswith(f"{keeper}:")]
        assert own == [f"{keeper}: {n}" for n in range(50)]


def test_keep_and_recall_go_by_the_folder_that_is_meant_here(tmp_path: Path) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    here.mkdir()
    run(home, "folder", "new", "Work")
    (here / ".geniuz-folder").write_text("Work\n")
    first = run(home, "keep", "Tea at home.", GENIUZ_DB=str(home / "memory.db"), here=here)
    second = json.loads(run(home, "keep", "Tea at work.", "--json", here=here).stdout)
    assert second["folder"] == "Work"
    address = first.stdout.split()[1]

    def hits(*arguments: str) -> set[str]:
        found = json.loads(run(home, "recall", *arguments, "--json", here=here).stdout)
        return {hit["text"] for hit in found["hits"]}

    assert hits("--keyword", "tea") == {"Tea at work."}
    assert hits("--keyword", "tea", "--all") == {"Tea at home.", "Tea at work."}
    assert hits(address) == hits("--thread", address) == {"Tea at home."}
    assert hits("--thread", address.split(":")[1], "--all") == {"Tea at home."}
    (here / ".geniuz-folder").write_text("Wirk\n")
    for command in ("keep", "recall"):
        assert ".geniuz-folder" in run(home, command, "tea", exits=1, here=here).stderr


def test_a_directory_that_was_removed_chooses_nothing(tmp_path: Path) -> None:
    script = f'mkdir d && cd d && rmdir ../d && "{sys.executable}" -m geniuzfs keep tea'
    subprocess.run(
        ["bash", "-ec", script],
        env={**os.environ, "GENIUZ_HOME": str(tmp_path / "home")},
        cwd=tmp_path,
        check=True,
    )


# The use case


def test_a_memory_opens_by_its_address_in_whichever_folder_it_is(geniuz: Geniuz) -> None:
    (geniuz.config.home / "work").mkdir()
    (geniuz.config.home / "work" / "memory.db").touch()
    one, other = geniuz.keep(None, "at home"), geniuz.keep("work", "at work")
    assert {folder.name for folder in (one.folder, other.folder)} == {"My memory", "work"}
    for held in (one, other):
        for name in (None, held.folder.name):
            for text in (held.address, held.memory.id, held.memory.id[:8].lower()):
                assert geniuz.open_memory(name, text) == held._replace(parent_unknown=False)
    with pytest.raises(NotFound):
        geniuz.open_memory("work", one.address)
    with pytest.raises(NotFound):
        geniuz.open_memory(None, f"{other.folder.identity.id[:8]}:{one.memory.id[:8]}")
    with pytest.raises(UsageError):
        geniuz.open_memory(None, "tea at four")


def test_what_lies_in_another_folder_is_not_continued(geniuz: Geniuz) -> None:
    (geniuz.config.home / "work").mkdir()
    (geniuz.config.home / "work" / "memory.db").touch()
    root = geniuz.keep(None, "root")
    assert not geniuz.keep(None, "child", parent=root.address).parent_unknown
    assert geniuz.keep("work", "child", parent=root.address).parent_unknown


# Asked for again


def test_each_kind_of_recall_answers(tmp_path: Path) -> None:
    home = tmp_path / "home"
    root = json.loads(run(home, "keep", "Who signs?\nAsked by the board.", "--json").stdout)
    run(home, "keep", "Priya signs in May.", "-p", root["uuid"][:4])

    def hits(*arguments: str) -> list[str]:
        found = json.loads(run(home, "recall", *arguments, "--json").stdout)
        return [hit["text"] for hit in found["hits"]]

    whole, child = "Who signs?\nAsked by the board.", "Priya signs in May."
    assert hits("--thread", root["uuid"][:4]) == hits("--thread", root["address"]) == [whole, child]
    assert hits(root["address"]) == hits(root["uuid"][:8]) == [whole]
    asked = json.loads(run(home, "recall", "--thread", root["uuid"][:4], "--json").stdout)["query"]
    assert asked == root["uuid"][:4]
    assert hits("--keyword", "board") == [whole]
    assert hits("--grep", "signs", "--grep", "board") == [whole]
    assert hits("--grep", "board") == ["Asked by the board."]
    assert hits("--grep", "board", "--full") == [whole]
    assert set(hits("--recent", "--all")) == set(hits("--random")) == {whole, child}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("DEADBEEF:DEADBEEF",), 1),
        (("--thread", "DEADBEEF"), 1),
        (("--thread", "no ID"), 2),
        (("--thread", "DEADBEEF", "tea"), 2),
        (("--keyword", "--random", "tea"), 2),
        (("--all", "--in", "My memory", "tea"), 2),
        (("--grep", ""), 2),
    ],
)
def test_recall_refuses_in_one_line(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    done = run(tmp_path / "home", "recall", *arguments, exits=code)
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
