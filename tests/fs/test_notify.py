"""What a service manager is told, and where."""

import os
import uuid
from pathlib import Path

import pytest

from geniuzfs.fs.notify import Manager as Told
from tests.manager import Manager


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_it_is_told_at_its_socket(kind: str, tmp_path: Path) -> None:
    address = str(tmp_path / "notify") if kind == "path" else f"@geniuzfs-{uuid.uuid4()}"
    with Manager(address) as manager:
        Told(manager.environment).tell(READY=1, STATUS="2 folders at\n/home/you\nSTOPPING=1")
        assert manager.hear() == {"READY": "1", "STATUS": "2 folders at /home/you STOPPING=1"}


def test_nobody_is_told_where_nobody_listens(tmp_path: Path) -> None:
    assert not Told({})
    Told({}).tell(READY=1)
    Told({"NOTIFY_SOCKET": str(tmp_path / "gone")}).tell(READY=1)


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "60000000"}, 60.0),
        ({"WATCHDOG_USEC": "1500000", "WATCHDOG_PID": str(os.getpid())}, 1.5),
        ({"WATCHDOG_USEC": "1500000", "WATCHDOG_PID": "1"}, None),  # another process is watched
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_the_watchdog(environment: dict[str, str], seconds: float | None) -> None:
    assert Told(environment).watchdog_seconds == seconds
