"""A mount that several tests share, each in a directory of its own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon import Daemon


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A mount for everybody, with device nodes and setuid in force, where root makes it."""
    options = ["--allow-other", "-o", "dev,suid"] if os.geteuid() == 0 else []
    with Daemon(tmp_path_factory.mktemp("shared"), *options) as daemon:
        yield daemon


@pytest.fixture
def here(shared: Daemon, request: pytest.FixtureRequest) -> Path:
    """A new directory of the shared mount, in which everybody may write."""
    name: str = request.node.name
    directory = shared.root / name.translate({ord("["): "-", ord("]"): None})
    directory.mkdir()
    directory.chmod(0o777)
    return directory
