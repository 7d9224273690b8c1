"""Which file a path means, in mounts of one folder and of all."""

from pathlib import Path

import pytest

from geniuzfs import runtime
from geniuzfs.api import Geniuz, placing
from geniuzfs.config import DEFAULT_CONTENT_LIMIT, Config
from geniuzfs.errors import NotFound, UsageError
from tests.daemon import Daemon


def placed(
    geniuz: Geniuz, path: str, name: str | None = None, here: Path | None = None
) -> tuple[str, bytes]:
    folder, inner = placing.place(geniuz.arranging, geniuz.config.home, path, name, here)
    return folder.name, inner


def geniuz_of(daemon: Daemon) -> Geniuz:
    return runtime.geniuz(Config(daemon.home, daemon.root, DEFAULT_CONTENT_LIMIT, False, (0, 0)))


def test_in_a_mount_of_all_folders_the_first_name_is_the_folder(tmp_path: Path) -> None:
    with Daemon(tmp_path, alone=None) as daemon:
        geniuz, root = geniuz_of(daemon), daemon.root
        (root / "Work" / "drafts").mkdir(parents=True)
        (tmp_path / "link").symlink_to(root / "Work")
        assert placed(geniuz, f"{root}/work/removed/plan.md") == ("Work", b"removed/plan.md")
        assert placed(geniuz, f"{tmp_path}/link/plan.md") == ("Work", b"plan.md")
        assert placed(geniuz, "../plan.md", here=root / "Work" / "drafts") == ("Work", b"plan.md")
        assert placed(geniuz, "..", here=root / "Work" / "drafts") == ("Work", b"")
        assert placed(geniuz, "plan.md", here=tmp_path) == ("My memory", b"plan.md")
        assert placed(geniuz, "/a//./b", here=root / "Work") == ("My memory", b"a/b")
        # With a folder's name paths are counted from its top.
        assert placed(geniuz, "plan.md", "Work", root / "My memory") == ("Work", b"plan.md")
        assert placed(geniuz, f"{root}/Work/plan.md", "work") == ("Work", b"plan.md")
        for path, name in ((f"{root}/Work/plan.md", "My memory"), (str(root), None)):
            with pytest.raises(UsageError):
                placed(geniuz, path, name)
        with pytest.raises(UsageError, match="leads out of the folder"):
            placed(geniuz, "../plan.md", "Work")
        with pytest.raises(NotFound):
            placed(geniuz, f"{root}/Nothing/plan.md")


def test_a_mount_of_one_folder_says_which(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        geniuz, root = geniuz_of(daemon), daemon.root
        geniuz.arranging.use(geniuz.arranging.new("Work"))
        assert placed(geniuz, f"{root}/removed/plan.md") == ("My memory", b"removed/plan.md")
        assert placed(geniuz, str(root)) == ("My memory", b"")
        assert placed(geniuz, "plan.md", here=root) == ("My memory", b"plan.md")
        assert placed(geniuz, "plan.md") == ("Work", b"plan.md")
        with pytest.raises(UsageError, match="in the folder 'My memory', not in 'Work'"):
            placed(geniuz, f"{root}/plan.md", "Work")
