"""Helpers of a test's own: real processes in directories of their own, always ended."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from geniuzfs.config import Config
from geniuzfs.embed.client import LOG, Helper
from tests.daemon import wait_until

Make = Callable[..., Helper]


def configured(directory: Path, **settings: str) -> Config:
    """What the environment with these settings says, with all places below `directory`."""
    home, runtime = directory / "home", directory / "run"
    for place in (home, runtime):
        place.mkdir(exist_ok=True)
    return Config.from_environment(
        {
            "HOME": str(directory),
            "GENIUZ_HOME": str(home),
            "XDG_RUNTIME_DIR": str(runtime),
            "GENIUZ_THREADS": "2",
            **settings,
        }
    )


def end(helper: Helper) -> None:
    """kill -9 to the helper's process, if there is one."""
    state = helper.state(10)
    if state is not None:
        os.kill(state.pid, signal.SIGKILL)
        wait_until(lambda: helper.state(10) is None)


def _ended(made: list[Helper], directory: Path) -> None:
    for helper in made:
        end(helper)
        helper.close()
    log = directory / "home" / LOG
    said = log.read_text() if log.exists() else ""
    assert " ERROR " not in said, said
    assert "Traceback" not in said, said


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes clients of one and the same helper, as the settings say."""
    made: list[Helper] = []

    def one(**settings: str) -> Helper:
        made.append(Helper(configured(tmp_path, **settings)))
        return made[-1]

    yield one
    _ended(made[-1:], tmp_path)
    for helper in made:
        helper.close()


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Helper]:
    """A client of a helper that has the shipped model; for tests that leave it alive."""
    directory = tmp_path_factory.mktemp("shipped")
    helper = Helper(configured(directory))
    helper.query("warm", helper.model(), 60)
    yield helper
    _ended([helper], directory)
