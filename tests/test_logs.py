"""Log lines in a file, on standard error, and in the journal."""

import logging
import os
import re
import subprocess
import sys

import pytest

from geniuzfs.logs import Recent

PROGRAM = """
import logging
from geniuzfs import logs
logs.set_up(debug=False)
log = logging.getLogger("geniuzfs.test")
log.debug("not told")
log.info("begun")
log.warning("two\\nlines")
try:
    raise ValueError("why")
except ValueError:
    log.exception("failed")
logging.getLogger("other").info("not told")
"""


def logged(journal: str | None) -> list[str]:
    """What PROGRAM logs; `journal`: what JOURNAL_STREAM says, of the descriptor that it gets."""
    read, write = os.pipe()
    status = os.fstat(write)
    environment = {key: value for key, value in os.environ.items() if key != "JOURNAL_STREAM"}
    if journal is not None:
        environment["JOURNAL_STREAM"] = journal.format(status.st_dev, status.st_ino)
    with os.fdopen(read) as reading:
        subprocess.run([sys.executable, "-c", PROGRAM], env=environment, stderr=write, check=True)
        os.close(write)
        return reading.read().splitlines()


def test_the_journal_is_told_levels_and_no_times() -> None:
    lines = logged("{}:{}")
    assert lines[:3] == ["<6>geniuzfs.test: begun", "<4>geniuzfs.test: two", "<4>lines"]
    assert lines[3] == "<3>geniuzfs.test: failed"
    assert lines[-1] == "<3>ValueError: why"
    assert all(line.startswith("<3>") for line in lines[3:])


@pytest.mark.parametrize("journal", [None, "", "1:1", "{}:0"], ids=str)
def test_others_are_told_times_and_no_levels(journal: str | None) -> None:
    begun, *_ = logged(journal)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d [\d:,]+ INFO geniuzfs\.test: begun", begun)


def test_what_was_said_last_is_at_hand() -> None:
    recent = Recent()
    log = logging.Logger("apart")
    log.addHandler(recent)
    log.info("begun")
    assert not recent.counts
    log.warning("late by %d s", 3)
    log.error("gone")
    assert recent.counts == {"warnings": 1, "errors": 1}
    assert recent.last is not None
    assert recent.last[1] == "ERROR: gone"
