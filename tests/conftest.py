"""Fixtures that every kind of test uses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from geniuzfs.model import ROOT
from geniuzfs.store import check, tree
from geniuzfs.store.connection import Database
from tests.daemon import Daemon


@pytest.fixture(scope="session", autouse=True)
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test learns unless it says so, and none meets the helper of whoever runs the tests."""
    runtime = tmp_path_factory.mktemp("runtime", numbered=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENIUZ_LEARN", "0")
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        yield


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A fresh database with a top directory; the test fails when it ends unsound."""
    opened = Database.open(tmp_path / "memory.db", create=True)
    try:
        with opened.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
        assert tree.inode(opened.view, ROOT) is not None
        yield opened
        with opened.snapshot() as view:
            assert list(check.problems(view)) == []
    finally:
        opened.close()


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Daemon]:
    """ "My memory" mounted as the root of a mount of its own."""
    with Daemon(tmp_path) as daemon:
        yield daemon
