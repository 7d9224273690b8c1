"""Files that are written whole, and what a disk that refuses becomes."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from geniuzfs import durable
from geniuzfs.errors import AlreadyExists, ReadOnly, StoreFault, StoreFull


def test_a_file_is_replaced_whole_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text("before")
    with path.open() as earlier:
        durable.write(path, "äfter")
        assert earlier.read() == "before"
    assert path.read_text("utf-8") == "äfter"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["record"]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.mkdir()
    with pytest.raises(StoreFault, match="record"):
        durable.write(path, "x")
    assert os.listdir(tmp_path) == ["record"]


def test_what_is_removed_may_be_gone_already(tmp_path: Path) -> None:
    path = tmp_path / "record"
    durable.write(path, "x")
    durable.rename(path, tmp_path / "other")
    durable.remove(path)
    durable.remove(tmp_path / "other")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, StoreFull), (errno.EROFS, ReadOnly), (errno.EIO, StoreFault)],
)
def test_errors_of_the_disk_become_ours_and_name_the_place(
    tmp_path: Path, number: int, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match=str(tmp_path)), durable.translating(tmp_path):
        raise OSError(number, os.strerror(number))


def test_what_came_there_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "backup"

    def make(what_comes: str | None) -> None:
        with durable.staged(path):
            if what_comes is not None:
                path.write_text(what_comes)

    for what_comes in ("another's", None):
        with pytest.raises(AlreadyExists, match="nothing is written over it"):
            make(what_comes)
        assert os.listdir(tmp_path) == ["backup"]
        assert path.read_text() == "another's"


def test_a_directory_that_can_not_be_synced_is_no_failure() -> None:
    """As those of /proc, and of some network disks."""
    durable.sync(Path("/proc/self"))


def test_a_link_in_the_place_of_a_new_file_is_not_followed(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (tmp_path / ".backup.new").symlink_to(mine)

    def make() -> None:
        with durable.staged(tmp_path / "backup"):
            pass

    with pytest.raises(StoreFault, match=r"\.backup\.new"):
        make()
    with pytest.raises(StoreFault):
        durable.write(tmp_path / "backup", "x")
    assert mine.read_text() == "mine"


def test_of_several_who_write_one_file_each_does(tmp_path: Path) -> None:
    path = tmp_path / "record"
    texts = ["short", "long" * 2_000]

    def writes(text: str) -> None:
        for _ in range(100):
            durable.write(path, text)
            assert path.read_text() in texts

    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(writes, text) for text in texts]:
            done.result()
    assert os.listdir(tmp_path) == ["record"]
