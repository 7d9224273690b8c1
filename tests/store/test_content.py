"""A save lands whole, and counts right whoever saved before."""

import itertools

import pytest

from geniuzfs.errors import NotFound
from geniuzfs.model import CHUNK, ROOT, Inode, InodeNumber
from geniuzfs.store import content, tree
from geniuzfs.store.connection import Database


@pytest.fixture
def file(database: Database) -> InodeNumber:
    with database.txn() as txn:
        return tree.create(txn, ROOT, b"file", tree.New(0o100644, 0, 0), 1).number


def save(database: Database, number: InodeNumber, size: int, pieces: dict[int, bytes]) -> Inode:
    """Save as one who believes that these are all the pieces there are."""
    with database.txn() as txn:
        content.save(txn, number, content.Save(size, 7, 8, pieces))
    found = tree.inode(database.view, number)
    assert found is not None
    return found


def test_a_save_sets_bytes_size_and_times(database: Database, file: InodeNumber) -> None:
    found = save(database, file, 5, {0: b"hello"})
    assert (found.size, found.stored, found.mtime_ns, found.ctime_ns) == (5, 5, 7, 8)
    assert content.read(database.view, file) == b"hello"
    assert content.piece(database.view, file, 0) == b"hello"
    assert content.lengths(database.view, file) == {0: 5}


def test_holes_cost_nothing_and_read_as_zeros(database: Database, file: InodeNumber) -> None:
    found = save(database, file, 1 << 40, {3: b"x"})
    assert (found.size, found.stored) == (1 << 40, 1)
    assert content.piece(database.view, file, 0) == b""
    assert content.read(database.view, file) == bytes(3 * CHUNK) + b"x"


def test_pieces_that_are_not_saved_stay(database: Database, file: InodeNumber) -> None:
    size = 2 * CHUNK + 3
    save(database, file, size, {0: b"a" * CHUNK, 1: b"b" * CHUNK, 2: b"end"})
    found = save(database, file, size, {1: b"B" * CHUNK})
    assert found.stored == size
    assert content.read(database.view, file) == b"a" * CHUNK + b"B" * CHUNK + b"end"


def test_an_empty_piece_takes_its_row_away(database: Database, file: InodeNumber) -> None:
    save(database, file, CHUNK + 1, {0: b"a", 1: b"b"})
    found = save(database, file, CHUNK + 1, {0: b""})
    assert (found.stored, content.lengths(database.view, file)) == (1, {1: 1})
    assert save(database, file, 0, {0: b"", 1: b""}).stored == 0
    assert content.read(database.view, file) == b""


def test_a_file_that_is_gone_takes_no_save(database: Database, file: InodeNumber) -> None:
    with database.txn() as txn:
        tree.remove(txn, ROOT, b"file", 2, directory=False)
    with pytest.raises(NotFound):
        save(database, file, 1, {0: b"x"})


SIZES = (0, 1, 100, CHUNK, CHUNK + 1, 3 * CHUNK)


def pieces_of(size: int, byte: bytes) -> dict[int, bytes]:
    starts = range(0, size, CHUNK)
    return {start // CHUNK: byte * min(size - start, CHUNK) for start in starts}


@pytest.mark.parametrize(("mine", "theirs"), list(itertools.product(SIZES, SIZES)))
def test_a_save_over_one_that_the_saver_does_not_know_of_counts_right(
    database: Database, file: InodeNumber, mine: int, theirs: int
) -> None:
    """The fixture checks that sizes and sums hold."""
    save(database, file, theirs, pieces_of(theirs, b"t"))
    save(database, file, mine, pieces_of(mine, b"m"))
    assert content.read(database.view, file)[:mine] == b"m" * mine


@pytest.mark.parametrize("theirs", SIZES)
def test_a_cut_cuts_what_another_has_stored_meanwhile(
    database: Database, file: InodeNumber, theirs: int
) -> None:
    save(database, file, theirs, pieces_of(theirs, b"t"))
    found = save(database, file, 50, {})
    assert (found.size, found.stored) == (50, min(theirs, 50))
    assert content.read(database.view, file) == b"t" * min(theirs, 50)
