"""The environment, as the program reads it."""

from pathlib import Path

import pytest

from geniuzfs.config import DEFAULT_CONTENT_LIMIT, Config
from geniuzfs.errors import UsageError


def test_the_defaults_are_in_the_home_directory() -> None:
    config = Config.from_environment({"HOME": "/home/you"})
    assert config.home == Path("/home/you/.geniuz")
    assert config.mountpoint == Path("/home/you/Memory")
    assert config.content_limit == DEFAULT_CONTENT_LIMIT
    assert config.database is None
    assert config.fast_wait


def test_every_setting_is_read() -> None:
    config = Config.from_environment(
        {
            "HOME": "/home/you",
            "GENIUZ_HOME": "/data/./geniuz",
            "GENIUZ_MOUNT": "/mnt/notes/",
            "GENIUZ_DB": "/data/work/memory.db",
            "GENIUZ_CONTENT_LIMIT": "1048576",
            "GENIUZ_FAST_WAIT": "0",
        }
    )
    assert config.home == Path("/data/geniuz")
    assert config.mountpoint == Path("/mnt/notes")
    assert config.database == Path("/data/work/memory.db")
    assert config.content_limit == 1048576
    assert not config.fast_wait


@pytest.mark.parametrize("value", ["64M", "-1", "0", "many"])
def test_a_limit_that_is_no_number_of_bytes_is_an_error(value: str) -> None:
    with pytest.raises(UsageError, match="GENIUZ_CONTENT_LIMIT"):
        Config.from_environment({"HOME": "/", "GENIUZ_CONTENT_LIMIT": value})
