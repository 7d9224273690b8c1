"""What the mount table says, and where no database may lie."""

from pathlib import Path

import pytest

from geniuzfs.errors import UnsafePlace
from geniuzfs.folders import mounts

TABLE = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:26 / /mnt/share rw - nfs4 server:/export rw
31 22 0:27 / /mnt/with\\040blank\\134 rw - fuse.geniuzfs /home/you/.geniuz rw
32 30 0:28 / /mnt/share/local rw - ext4 /dev/vdb rw
33 22 0:29 / /mnt/ntfs rw - fuseblk /dev/sdc rw
34 22 0:30 / /mnt/host rw - 9p host rw
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(TABLE)
    return path


def test_escaped_names_are_read(table: Path) -> None:
    found = mounts.mounts(table)
    assert found[2].target == Path("/mnt/with blank\\")
    assert found[2].source == "/home/you/.geniuz"


@pytest.mark.parametrize("place", ["/mnt/share/x", "/mnt/with blank\\/x", "/mnt/host"])
def test_network_and_fuse_places_are_refused(table: Path, place: str) -> None:
    with pytest.raises(UnsafePlace, match="GENIUZ_HOME"):
        mounts.check_safe(Path(place), table)


@pytest.mark.parametrize("place", ["/home/you", "/mnt/share/local/x", "/mnt/ntfs/x", "/mnt/shared"])
def test_local_disks_are_fine(table: Path, place: str) -> None:
    mounts.check_safe(Path(place), table)


def test_the_mounts_of_one_data_directory_are_told_from_others(table: Path) -> None:
    assert [mount.target.name for mount in mounts.ours(Path("/home/you/.geniuz"), table)] == [
        "with blank\\"
    ]
    assert mounts.ours(Path("/home/me/.geniuz"), table) == []


def test_a_path_that_mount_options_cannot_hold_is_not_the_source() -> None:
    assert mounts.source(Path("/home/you/a,b")) == "geniuzfs"
    assert mounts.source(Path("/home/jürgen")) == "geniuzfs"
