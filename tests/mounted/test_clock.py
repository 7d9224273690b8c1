"""The clock is set back under a mount: what was saved stays, and no age is negative."""

import os
from pathlib import Path

from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from tests.clocks import Clock
from tests.daemon import Daemon
from tests.embed.fake import FakeEmbedder
from tests.mounted.clocked import set_clock

NOW_NS = 1_800_000_000 * 10**9
HOUR_NS = 3600 * 10**9


def test_files_go_on_by_the_clock_that_there_is(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o700)
    set_clock(tmp_path / "home", NOW_NS)
    with Daemon(tmp_path, program="tests.mounted.clocked") as daemon:
        old, new = daemon.root / "old.md", daemon.root / "new.md"
        old.write_text("Written before the change.")
        set_clock(daemon.home, NOW_NS - 24 * HOUR_NS)
        assert "the oldest waits for 0 s\n" in (daemon.root / ".status").read_text()
        new.write_text("Written after the change.")
        assert os.stat(old).st_mtime_ns == NOW_NS
        assert os.stat(new).st_mtime_ns == NOW_NS - 24 * HOUR_NS
        with open(old, "a") as file:
            file.write(" And more.")
        assert os.stat(old).st_mtime_ns == os.stat(old).st_ctime_ns == NOW_NS - 24 * HOUR_NS
        assert old.read_text() == "Written before the change. And more."
        answer = (daemon.root / ".recall" / "change since:2h").read_text()
        assert "old.md" in answer
        assert "new.md" in answer


def test_memories_keep_their_thread_and_windows_hold(tmp_path: Path) -> None:
    clock = Clock(NOW_NS)
    config = Config.from_environment(
        {"HOME": str(tmp_path), "GENIUZ_HOME": str(tmp_path / "home"), "XDG_RUNTIME_DIR": "/run"}
    )
    geniuz = Geniuz(config, clock, FakeEmbedder())
    first = geniuz.keep(None, "The renewal is signed.")
    clock.now -= 24 * HOUR_NS
    second = geniuz.keep(None, "The renewal was signed by Priya.", parent=first.memory.id)
    assert second.memory.parent == first.memory.id
    assert second.memory.created_at < first.memory.created_at
    with geniuz.learning(None) as learning:
        *_, last = learning.until_done()  # it ends, though all is from the future
        assert (last.sources, last.passages) == (0, 0)

    def hits(text: str) -> int:
        return len(geniuz.recall(None, geniuz.parse(text)).hits)

    assert (hits("renewal since:2h"), hits("renewal until:1h")) == (2, 0)
    clock.now += 48 * HOUR_NS
    assert (hits("renewal since:2h"), hits("renewal until:1h")) == (0, 2)
    geniuz.close()
