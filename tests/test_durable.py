"""Files that are written whole, and what a disk that refuses becomes."""

import errno
import os
from pathlib import Path

import pytest

from geniuzfs import durable
from geniuzfs.errors import ReadOnly, StoreFault, StoreFull


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
