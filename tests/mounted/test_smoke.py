"""A mount answers, keeps what it is given, and ends in good order."""

from tests.daemon import Daemon


def test_what_is_written_is_read_back_after_a_remount(mount: Daemon) -> None:
    (mount.root / "drafts").mkdir()
    (mount.root / "drafts" / "plan.md").write_bytes(b"Tea at four.\n")
    assert mount.stop() == 0
    mount.start()
    assert (mount.root / "drafts" / "plan.md").read_bytes() == b"Tea at four.\n"
