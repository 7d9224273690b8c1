"""Questions asked by reading files: `.recall/<query>`, `.recall/ask`, `.find`, `.status`."""

import mmap
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from errno import (
    EACCES,
    EEXIST,
    EINVAL,
    EISDIR,
    ENAMETOOLONG,
    ENODATA,
    ENOENT,
    ENOTDIR,
    EPERM,
    EROFS,
    ETIMEDOUT,
)
from pathlib import Path

import pytest

from geniuzfs.fs.asking import QUESTION_MAX, UNASKED
from geniuzfs.model import ROOT
from geniuzfs.store import tree
from geniuzfs.store.connection import Database
from tests.daemon import wait_until
from tests.mounted.answering import LONG, Answering, answer_to
from tests.mounted.calls import (
    RENAME_EXCHANGE,
    as_user,
    errno_as_user,
    errno_of,
    in_flight,
    renameat2,
)

STATE = "user.geniuz.state"


@pytest.fixture(scope="module")
def answering(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answering]:
    """A mount that several tests share."""
    with Answering(tmp_path_factory.mktemp("answering")) as daemon:
        (daemon.root / "notes.md").write_text("Tea at four.\n")
        (daemon.root / "drafts" / "old").mkdir(parents=True)
        (daemon.root / "drafts" / "plan.md").write_text("And cake.\n")
        yield daemon


def run(*command: str | Path, cwd: Path | None = None) -> bytes:
    """Run a tool that must succeed; what it printed."""
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, timeout=60).stdout


def needs(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}: .ci/test installs it")


def number(directory: Path) -> int:
    return os.stat(directory).st_ino


# Answers


def read_mapped(path: Path, _: Path) -> bytes:
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        return mapped[:]


def read_by_sendfile(path: Path, copy: Path) -> bytes:
    with open(path, "rb", buffering=0) as file, open(copy, "wb", buffering=0) as to:
        while os.sendfile(to.fileno(), file.fileno(), None, 1 << 20):
            pass
    return copy.read_bytes()


def copied(*command: str) -> Callable[[Path, Path], bytes]:
    def read(path: Path, copy: Path) -> bytes:
        needs(command[0])
        run(*command, path, copy)
        return copy.read_bytes()

    return read


def printed(*command: str) -> Callable[[Path, Path], bytes]:
    def read(path: Path, _: Path) -> bytes:
        needs(command[0])
        return run(*command, path)

    return read


def read_by_tar(path: Path, copy: Path) -> bytes:
    copy.write_bytes(run("tar", "-cf", "-", "-C", path.parent, path.name))
    return run("tar", "-xOf", copy)


def read_by_vim(path: Path, copy: Path) -> bytes:
    needs("vim")
    run("vim", "-Nu", "NONE", "-es", "-R", "-c", f"w! {copy}", "-c", "qa!", path)
    return copy.read_bytes()


def read_by_emacs(path: Path, copy: Path) -> bytes:
    needs("emacs")
    program = f'(progn (find-file "{path}") (write-file "{copy}") (kill-emacs))'
    run("emacs", "-Q", "--batch", "--eval", program)
    return copy.read_bytes()


def read_by_git(path: Path, copy: Path) -> bytes:
    needs("git")
    copy.write_bytes(LONG)
    same = run("git", "hash-object", path) == run("git", "hash-object", copy)
    return LONG if same else b"another"


READERS: dict[str, Callable[[Path, Path], bytes]] = {
    "python": lambda path, _: path.read_bytes(),
    "mmap": read_mapped,
    "sendfile": read_by_sendfile,
    "cat": printed("cat"),
    "busybox cat": printed("busybox", "cat"),
    "less": printed("less"),
    "grep": printed("grep", "-a", ""),
    "head": printed("head", "-c", "1M"),
    "tail": printed("tail", "-c", "1M"),
    "sed": printed("sed", ""),
    "git hash-object": read_by_git,
    "cp": copied("cp"),
    "cp -a": copied("cp", "-a"),
    "rsync": copied("rsync", "-a"),
    "dd": lambda path, copy: run("dd", f"if={path}", f"of={copy}", "bs=999") + copy.read_bytes(),
    "tar": read_by_tar,
    "vim": read_by_vim,
    "emacs": read_by_emacs,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_long_answer_is_whole_for_every_tool(
    answering: Answering, tmp_path: Path, reader: str
) -> None:
    before = answering.queries()
    assert READERS[reader](answering.root / ".recall" / "long", tmp_path / "copy") == LONG
    assert answering.queries() > before


def test_a_part_of_a_long_answer(answering: Answering) -> None:
    path = answering.root / ".recall" / "long"
    assert run("wc", "-c", path).split()[0] == b"%d" % len(LONG)
    assert run("tail", "-c", "10", path) == LONG[-10:]
    assert run("head", "-c", "10", path) == LONG[:10]
    assert run("grep", "-c", "answer", path).strip() == b"%d" % LONG.count(b"\n")
    with open(path, "rb") as file:
        file.seek(-10, os.SEEK_END)
        assert file.read() == LONG[-10:]


def test_a_look_at_an_answer_asks_nothing(answering: Answering) -> None:
    before, path = answering.queries(), answering.root / ".recall" / "who signs"
    status = os.stat(path)
    assert (status.st_size, stat.S_IMODE(status.st_mode)) == (0, 0o400)
    assert status.st_ino >= 1 << 52
    assert path.exists()
    assert os.access(path, os.R_OK)
    assert run("ls", "-l", path)
    assert run("test", "-e", path) == b""
    assert answering.queries() == before


def test_an_open_answer_has_its_size_and_stays_the_same(answering: Answering) -> None:
    path = answering.root / ".recall" / "long"
    with open(path, "rb") as file:
        assert os.fstat(file.fileno()).st_size == len(LONG)
        assert os.stat(path).st_ino == os.fstat(file.fileno()).st_ino
        (answering.root / "news.md").write_text("news\n")
        assert os.stat(path).st_ino != os.fstat(file.fileno()).st_ino  # who asks now asks anew
        before = answering.queries()
        assert path.read_bytes() == LONG
        assert answering.queries() == before + 1
        assert file.read() == LONG


def test_each_directory_asks_about_itself(answering: Answering) -> None:
    root = answering.root
    for directory in (root, root / "drafts", root / "drafts" / "old"):
        answer = (directory / ".recall" / "where").read_bytes()
        assert answer == answer_to(number(directory), "where")


def test_a_query_is_any_text(answering: Answering) -> None:
    recall = answering.root / ".recall"
    asked = {
        "a%2Fb": "a/b",
        "100%25 sure": "100% sure",
        "100% sure %252F": "100% sure %2F",
        'don\'t "*?" \\ \n -rf': 'don\'t "*?" \\ \n -rf',
        "日本語 🍰": "日本語 🍰",
        "GB%2fs": "GB/s",
    }
    for name, query in asked.items():
        assert (recall / name).read_bytes() == answer_to(ROOT, query)
    not_utf_8 = os.fsencode(recall) + b"/\xff"
    assert errno_of(lambda: os.stat(not_utf_8)) == 0
    assert errno_of(lambda: os.open(not_utf_8, os.O_RDONLY)) == EINVAL


@pytest.mark.parametrize("length", [256, 1000, 4000])
def test_a_query_is_longer_than_a_name(answering: Answering, length: int) -> None:
    recall, name = os.open(answering.root / ".recall", os.O_RDONLY), "猫" * (length // 3)
    try:
        opened = os.open(name, os.O_RDONLY, dir_fd=recall)
    except OSError as error:
        if error.errno == ENAMETOOLONG:
            pytest.skip("needs a kernel that passes long names to FUSE")
        raise
    finally:
        os.close(recall)
    with open(opened, "rb") as file:
        assert file.read() == answer_to(ROOT, name)
    assert errno_of(lambda: os.stat(answering.root / ("n" * 256))) == ENAMETOOLONG


def test_a_malformed_query_is_refused_and_the_status_says_why(answering: Answering) -> None:
    assert errno_of(lambda: (answering.root / ".recall" / "since:never").read_bytes()) == EINVAL
    said = "since:never is no time: write since:7d or a date\\x1b"
    assert said in answering.log()
    text = (answering.root / ".status").read_text()
    assert text.startswith(f"412 passages\nlast question refused: {said}\n")


PROBES = [
    ".git", ".long.swp", ".#long", "#long#", "long~", "long,v", "s.long", "p.long", "long.swp",
    "long.swx", "long.swo", "long.tmp", "long.bak", "4913", "RCS", "CVS", "SCCS", "HEAD",
    "objects", "refs", ".dir-locals.el", "._long", ".Trash-0", "Thumbs.db", "desktop.ini",
]  # fmt: skip


@pytest.mark.parametrize("where", [".recall", ".find"])
def test_what_tools_probe_for_is_not_there(answering: Answering, where: str) -> None:
    before = answering.queries()
    for name in PROBES:
        path = answering.root / where / name
        assert errno_of(lambda path=path: os.stat(path)) == ENOENT  # type: ignore[misc]
        assert errno_of(lambda path=path: path.write_text("")) == EROFS  # type: ignore[misc]
    assert answering.queries() == before


def test_an_answer_cannot_be_changed(answering: Answering) -> None:
    path = answering.root / ".recall" / "long"
    changes: list[Callable[[], object]] = [
        lambda: path.write_text("x"),
        lambda: os.open(path, os.O_RDWR),
        lambda: os.truncate(path, 0),
        lambda: path.chmod(0o600),
        lambda: os.utime(path),
        path.unlink,
        path.mkdir,
        (path.parent / "new").mkdir,
        lambda: path.rename(answering.root / "kept"),
        lambda: (answering.root / "notes.md").rename(path),
        lambda: os.link(path, answering.root / "kept"),
        lambda: os.link(answering.root / "notes.md", path.parent / "linked"),
        lambda: os.setxattr(path, "user.x", b""),
        lambda: os.removexattr(path, "user.x"),
    ]
    before = answering.queries()
    for number_, change in enumerate(changes):
        assert errno_of(change) in (EROFS, EPERM, EEXIST), number_
    assert os.listxattr(path) == []
    assert errno_of(lambda: os.getxattr(path, "user.x")) == ENODATA
    assert answering.queries() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else")
def test_only_the_owner_is_told_what_files_say(tmp_path: Path) -> None:
    with Answering(tmp_path, "--allow-other") as daemon:
        private, recall = daemon.root / "private.md", Path(".recall")
        private.write_text("a secret\n")
        private.chmod(0o600)
        daemon.will_find("private.md")
        refused: list[Callable[[], object]] = [
            (recall / "secret").read_bytes,
            lambda: (recall / "secret").write_text("x"),
            (recall / "ask").read_bytes,
            lambda: (recall / "new.tmp").write_text("x"),
            lambda: os.listdir(".find/secret"),
            lambda: os.readlink(".find/secret/01 private.md"),
        ]
        for number_, call in enumerate(refused):
            assert errno_as_user(daemon.root, call) == EACCES, number_
        assert as_user(daemon.root, lambda: os.listdir(".recall")) == []
        assert as_user(daemon.root, Path(".status").read_text).startswith("412 passages\n")
        assert daemon.queries() == 0


# Who only walks the tree

WALKERS: dict[str, list[str]] = {
    "ls": ["ls", "-laR"],
    "find": ["find", ".", "-type", "f", "-size", "-1M"],
    "grep": ["grep", "-r", "Tea"],
    "du": ["du", "-a"],
    "tar": ["tar", "-cf", "/dev/stdout", "."],
    "rsync": ["rsync", "-a", ".", "{copy}"],
    "cp": ["cp", "-a", ".", "{copy}"],
    "glob": ["bash", "-O", "globstar", "-O", "dotglob", "-c", "echo **"],
    "git": ["git", "-C", ".", "ls-files", "--others"],
    "git add": ["bash", "-c", "git init -q && git status && rm -rf .git"],
}


@pytest.mark.parametrize("walker", WALKERS)
@pytest.mark.parametrize("alone", ["My memory", None])
def test_a_walker_asks_nothing(tmp_path: Path, walker: str, alone: str | None) -> None:
    needs(WALKERS[walker][0])
    with Answering(tmp_path, alone=alone) as daemon:
        folder = daemon.root if alone else daemon.root / "My memory"
        (folder / "drafts" / "old").mkdir(parents=True)
        (folder / "drafts" / "plan.md").write_text("Tea at four.\n")
        command = [word.format(copy=tmp_path / "copy") for word in WALKERS[walker]]
        where = folder if "git" in walker else daemon.root
        done = subprocess.run(command, cwd=where, capture_output=True, check=False, timeout=60)
        assert done.returncode == (128 if walker == "git" else 0), done.stderr
        assert daemon.queries() == 0


def test_generated_names_are_listed_at_the_top_alone(tmp_path: Path) -> None:
    listed = {".recall", ".find", ".status", ".memories"}
    with Answering(tmp_path, alone=None) as daemon:
        folder = daemon.root / "My memory"
        (folder / "drafts").mkdir()
        assert set(os.listdir(daemon.root)) == {*listed, "My memory"}
        assert set(os.listdir(folder)) == {*listed, "drafts"}
        assert os.listdir(folder / "drafts") == []
        assert os.listdir(folder / ".recall") == os.listdir(daemon.root / ".find") == []
        assert (folder / "drafts" / ".find").is_dir()
        assert not (folder / "drafts" / ".status").exists()
        assert stat.S_IMODE(os.stat(folder / ".recall").st_mode) == 0o555
        assert (daemon.root / ".recall" / "all").read_bytes() == answer_to(ROOT, "all")
        assert (folder / ".recall" / "one").read_bytes() == answer_to(ROOT, "one")
        assert daemon.asked()[-2:] == ["answer all all", "answer 1 one"]
        (folder / "drafts").rmdir()  # nothing that is generated is in its way


# Several at once


def test_those_who_open_it_at_once_share_one_answer(answering: Answering) -> None:
    before, path = answering.queries(), answering.root / ".recall" / "wait for us"
    with answering.gate_closed() as open_gate, ThreadPoolExecutor() as threads:
        first = threads.submit(open, path, "rb")
        wait_until(lambda: answering.queries() > before)
        others = [subprocess.Popen(["cat", path], stdout=subprocess.PIPE) for _ in range(4)]
        wait_until(lambda: all(in_flight(other.pid) for other in others))
        open_gate()
        answers = {other.communicate()[0] for other in others}
        with first.result() as file:
            answers.add(file.read())
    assert answers == {answer_to(ROOT, "wait for us")}
    assert answering.queries() == before + 1


def test_those_who_list_it_at_once_share_one_answer(answering: Answering) -> None:
    answering.will_find("notes.md")
    before, path = answering.queries(), answering.root / ".find" / "wait for us"
    with answering.gate_closed() as open_gate:
        readers = [subprocess.Popen(["ls", path], stdout=subprocess.PIPE) for _ in range(4)]
        wait_until(lambda: answering.queries() > before)
        wait_until(lambda: all(in_flight(reader.pid) for reader in readers))
        open_gate()
        assert {reader.communicate()[0] for reader in readers} == {b"01 notes.md\n"}
    assert answering.queries() == before + 1


def test_who_waits_for_an_answer_holds_up_nobody(answering: Answering) -> None:
    root, before = answering.root, answering.queries()
    with answering.gate_closed() as open_gate, ThreadPoolExecutor() as threads:
        slow = [threads.submit((root / ".recall" / f"wait {n}").read_bytes) for n in range(3)]
        wait_until(lambda: answering.queries() == before + 3)
        assert os.stat(root / ".recall" / "wait 0").st_size == 0
        assert (root / ".recall" / "quick").read_bytes() == answer_to(ROOT, "quick")
        assert ".recall" in os.listdir(root)
        (root / "saved.md").write_text("saved\n")
        assert (root / "saved.md").read_text() == "saved\n"
        assert (root / ".status").read_text().startswith("412 passages\n")
        assert not any(reader.done() for reader in slow)
        open_gate()
    assert [reader.result() for reader in slow] == [answer_to(ROOT, f"wait {n}") for n in range(3)]


def test_an_answer_knows_of_every_save_before_it(answering: Answering) -> None:
    path = answering.root / ".recall" / "what is new"
    with open(path, "rb"):  # held open all the while
        for turn in range(50):
            before = answering.queries()
            (answering.root / "growing.md").write_text(f"{turn}\n")
            path.read_bytes()
            assert answering.queries() == before + 1


def test_an_answer_has_a_time_limit(tmp_path: Path) -> None:
    with Answering(tmp_path, "--seconds=0.3") as daemon, daemon.gate_closed():
        text = (daemon.root / ".recall" / "wait").read_text()
        assert text == "The answer took longer than 0.3 seconds and was given up.\n"
        assert errno_of(lambda: os.listdir(daemon.root / ".find" / "wait")) == ETIMEDOUT
        with open(daemon.root / ".recall" / "ask", "r+b", buffering=0) as ask:
            ask.write(b"wait")
            assert ask.read().decode() == text
        # Each of the threads is taken by one that overran, and the rest stand in the queue.
        assert (daemon.root / ".recall" / "wait more").read_text() == text
        assert (daemon.root / ".recall" / "quick").read_text() == text
        assert (daemon.root / ".status").read_text().startswith("412 passages\n")


def test_a_mount_ends_at_once_although_questions_wait(tmp_path: Path) -> None:
    with Answering(tmp_path) as daemon, daemon.gate_closed():
        waiting = [
            subprocess.Popen(["cat", daemon.root / ".recall" / f"wait {n}"], stderr=subprocess.PIPE)
            for n in range(6)
        ]
        wait_until(lambda: daemon.queries() == 4)
        began = time.monotonic()
        assert daemon.stop() == 0
        assert time.monotonic() - began < 5  # of 30 that a question may take
        for process in waiting:
            process.communicate()
            assert process.returncode == 1


# A question of any length, in one file


def test_ask_in_a_shell(answering: Answering) -> None:
    script = "exec 3<>.recall/ask; echo 'who signs' >&3; cat <&3; echo again >&3; cat <&3"
    said = run("bash", "-c", script, cwd=answering.root / "drafts")
    there = number(answering.root / "drafts")
    assert said == answer_to(there, "who signs") + answer_to(there, "again")


@pytest.mark.parametrize("buffering", [0, -1])
def test_ask_in_python(answering: Answering, buffering: int) -> None:
    with open(answering.root / ".recall" / "ask", "r+b", buffering=buffering) as ask:
        ask.write(b"who signs")
        ask.seek(0)
        assert ask.read() == answer_to(ROOT, "who signs")
        ask.seek(0)
        assert ask.read() == answer_to(ROOT, "who signs")
        ask.write(b"long")
        ask.flush()
        assert ask.read() == LONG
    with open(answering.root / ".recall" / "ask", "w+") as text:
        text.write("mit Umlaut: ä\n")
        text.seek(0)
        assert text.read().encode() == answer_to(ROOT, "mit Umlaut: ä")


def test_ask_takes_a_question_in_parts_and_answers_each_file_by_itself(
    answering: Answering,
) -> None:
    path, question = answering.root / ".recall" / "ask", "question " * 2000
    with open(path, "r+b", buffering=0) as one, open(path, "r+b", buffering=0) as two:
        one.write(question[:9000].encode())
        two.write(b"two")
        one.write(question[9000:].encode())
        assert one.read() == answer_to(ROOT, question.strip())
        assert two.read() == answer_to(ROOT, "two")
        assert errno_of(lambda: two.write(b"n" * (QUESTION_MAX + 1))) != 0
    assert os.stat(path).st_size == 0


def test_ask_says_how_it_is_used(answering: Answering) -> None:
    before = answering.queries()
    assert (answering.root / ".recall" / "ask").read_bytes() == UNASKED
    assert answering.queries() == before


def test_ask_refuses_a_malformed_question_and_takes_the_next(answering: Answering) -> None:
    with open(answering.root / ".recall" / "ask", "r+b", buffering=0) as ask:
        ask.write(b"since:never\n")
        assert errno_of(ask.read) == EINVAL
        ask.write(b"another")
        assert ask.read() == answer_to(ROOT, "another")


# Finding files


def test_what_is_found_is_linked_by_rank(answering: Answering) -> None:
    answering.will_find("drafts/plan.md", "notes.md")
    before, found = answering.queries(), answering.root / ".find" / "tea and cake"
    assert stat.S_ISDIR(os.stat(found).st_mode)
    assert answering.queries() == before
    assert os.listdir(found) == ["01 plan.md", "02 notes.md"]
    assert os.readlink(found / "01 plan.md") == "../../drafts/plan.md"
    assert (found / "01 plan.md").read_text() == "And cake.\n"
    assert (found / "02 notes.md").resolve() == answering.root / "notes.md"
    assert answering.queries() == before + 1
    assert errno_of(lambda: os.stat(found / "03 notes.md")) == ENOENT
    assert errno_of(lambda: os.stat(found / "notes.md")) == ENOENT
    assert errno_of(lambda: (found / "03 new.md").write_text("")) == EROFS


def test_what_is_found_can_be_named_before_it_was_listed(answering: Answering) -> None:
    answering.will_find("notes.md")
    before = answering.queries()
    assert (answering.root / ".find" / "unlisted" / "01 notes.md").read_text() == "Tea at four.\n"
    assert answering.queries() == before + 1


def test_what_is_found_deep_in_the_tree(answering: Answering) -> None:
    deep = answering.root / "drafts" / "old"
    (deep / "letter.md").write_text("Dear Priya,\n")
    answering.will_find("drafts/old/letter.md", "drafts/plan.md")
    found = deep / ".find" / "letter"
    assert run("ls", found).splitlines() == [b"01 letter.md", b"02 plan.md"]
    assert os.readlink(found / "01 letter.md") == "../../letter.md"
    assert (found / "01 letter.md").read_text() == "Dear Priya,\n"
    assert (found / "02 plan.md").read_text() == "And cake.\n"  # was moved away just now


def test_what_is_found_in_every_folder(tmp_path: Path) -> None:
    with Answering(tmp_path, alone=None) as daemon:
        (daemon.root / "My memory" / "notes.md").write_text("Tea at four.\n")
        daemon.will_find("My memory/notes.md")
        found = daemon.root / ".find" / "tea"
        assert os.listdir(found) == ["01 notes.md"]
        assert (found / "01 notes.md").read_text() == "Tea at four.\n"


def test_many_are_found(answering: Answering) -> None:
    answering.will_find(*(f"drafts/{n}.md" for n in range(1, 1001)))
    names = os.listdir(answering.root / ".find" / "many")
    assert names == [f"{n:04} {n}.md" for n in range(1, 1001)]


# Names that are taken


@pytest.mark.parametrize("name", [".recall", ".find", ".status", ".memories", ".history"])
@pytest.mark.parametrize("where", ["", "drafts"])
def test_generated_names_are_reserved(answering: Answering, where: str, name: str) -> None:
    path, file = answering.root / where / name, answering.root / "file"
    file.write_text("")
    made = [
        lambda: os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)),
        path.mkdir,
        lambda: path.symlink_to("x"),
        lambda: os.mkfifo(path),
        lambda: os.link(file, path),
        lambda: file.rename(path),
        lambda: renameat2(file, path, RENAME_EXCHANGE),
        path.unlink,
        path.rmdir,
        lambda: path.rename(answering.root / "elsewhere"),
    ]
    refused = (EPERM, EROFS, EEXIST, EISDIR, ENOENT, EINVAL, ENOTDIR)
    for number_, make in enumerate(made):
        assert errno_of(make) in refused, number_
    assert name not in os.listdir(answering.root / "drafts")
    assert file.exists()


def test_a_name_that_another_program_has_given_is_reached_and_can_be_removed(
    tmp_path: Path,
) -> None:
    with Answering(tmp_path) as daemon:
        database = Database.open(daemon.database_path)
        with database.txn() as txn:
            tree.create(txn, ROOT, b".status", tree.New(0o100644, 0, 0), 1)
        database.close()
        wait_until(lambda: os.stat(daemon.root / ".status").st_ino < 1 << 52)
        names = [".find", ".memories", ".recall", ".status"]
        assert sorted(os.listdir(daemon.root)) == names
        (daemon.root / ".status").write_text("mine\n")
        (daemon.root / ".status").rename(daemon.root / "mine")
        assert (daemon.root / ".status").read_text().startswith("412 passages\n")
        assert (daemon.root / "mine").read_text() == "mine\n"


# What was learned


def test_the_state_of_a_file_is_an_attribute_that_is_not_listed(answering: Answering) -> None:
    path = answering.root / "notes.md"
    os.setxattr(path, "user.geniuz.label.channel", b"claude")
    assert os.getxattr(path, STATE) == b"learned"
    assert answering.asked()[-1] == f"state 1 {number(path)}"
    assert os.listxattr(path) == ["user.geniuz.label.channel"]
    assert errno_of(lambda: os.setxattr(path, STATE, b"x")) == EPERM
    assert errno_of(lambda: os.removexattr(path, STATE)) == EPERM
    for other in (answering.root, answering.root / "drafts", answering.root / ".status"):
        assert errno_of(lambda other=other: os.getxattr(other, STATE)) == ENODATA  # type: ignore[misc]


def test_the_status_is_made_when_it_is_opened(answering: Answering) -> None:
    before = answering.asked()
    assert os.stat(answering.root / ".status").st_size == 0
    assert answering.asked() == before
    assert run("cat", answering.root / ".status").startswith(b"412 passages\n")
    assert answering.asked() == [*before, "status 1 "]
