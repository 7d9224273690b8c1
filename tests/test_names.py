"""Names that editors and tools give while they save, and names that people give."""

import pytest

from geniuzfs.names import is_short_lived, is_temporary

TEMPORARY = (
    b"note.md~ note.mz~ .note.md.swp .note.md.swx .note.md.swo x.swp 4913 .note.md.un~ .#note.md "
    b"#note.md# a.bak a.orig a.rej a.tmp .svc.md.A1b2C3 index.lock db-journal db-wal db-shm "
    b"tmp_obj_x1 .DS_Store ._a .nfs0001 .fuse_hidden01 a.part a.crdownload a.kate-swp "
    b".goutputstream-ABC123 .git .git/config a/.git/refs/heads/main sub/.hg/x .svn/y"
).split()
KEPT = (
    b"note.md 4913.md #1 a# tmp template.md sediment.md .bashrc .config .gitignore .geniuzignore "
    b"swp lock git/a partial.md .notes.config .a.backup wal-notes"
).split()


@pytest.mark.parametrize("name", TEMPORARY)
def test_names_that_tools_give_are_temporary(name: bytes) -> None:
    assert is_temporary(name)


@pytest.mark.parametrize("name", KEPT)
def test_names_that_people_give_are_not(name: bytes) -> None:
    assert not is_temporary(name)


def test_names_that_are_temporary_only_for_a_while() -> None:
    for name in (b"tmpab12cd_9", b"sedA1b2C3", b"XXa1B2c3", b"dir/tmpmyideas"):
        assert is_short_lived(name)
        assert not is_temporary(name)
    for name in (b"tmp", b"sediment", b"template.md", b"XX", b"sed.md"):
        assert not is_short_lived(name)
