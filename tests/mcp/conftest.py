"""A server in this process, without a transport."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.mcp.door import Door
from geniuzfs.ports import SystemClock
from tests.embed.fake import FakeEmbedder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data directory that is not there yet."""
    return tmp_path / "home"


@pytest.fixture
def geniuz(home: Path) -> Iterator[Geniuz]:
    """The program on that; the test fails when a folder ends unsound."""
    environment = {"HOME": str(home.parent), "GENIUZ_HOME": str(home)}
    made = Geniuz(Config.from_environment(environment), SystemClock(), FakeEmbedder())
    made.opened(None).close()
    yield made
    assert [problem for each in made.check(None, repair=False) for problem in each.problems] == []
    made.close()


@pytest.fixture
def door(geniuz: Geniuz) -> Iterator[Door]:
    """To all folders."""
    made = Door(geniuz)
    yield made
    made.close()
