"""A folder held open for a program, with a model that needs no helper."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from geniuzfs.api import Geniuz
from geniuzfs.api.opened import Opened
from geniuzfs.config import Config
from geniuzfs.ports import SystemClock
from tests.embed.fake import FakeEmbedder


@pytest.fixture
def geniuz(tmp_path: Path, embedder: FakeEmbedder) -> Iterator[Geniuz]:
    """The program on a data directory of its own; the test fails when a folder ends unsound."""
    environment = {"HOME": str(tmp_path), "GENIUZ_HOME": str(tmp_path / "home")}
    made = Geniuz(Config.from_environment(environment), SystemClock(), embedder)
    yield made
    assert [problem for each in made.check(None, repair=False) for problem in each.problems] == []
    made.close()


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def mem(geniuz: Geniuz) -> Iterator[Opened]:
    """ "My memory"."""
    with geniuz.opened(None) as opened:
        yield opened
