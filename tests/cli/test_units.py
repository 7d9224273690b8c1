"""The units of systemd: filled in, found sound by systemd itself, and removed again."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geniuzfs.cli import units

TEMPLATES = sorted((Path(__file__).parents[2] / "systemd").iterdir())
SETTINGS = {"GENIUZ_HOME": '/data/50% "mine" $HOME', "GENIUZ_LEARN": "", "HOME": "/home/you"}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a user's units, which is not there yet; and nobody to run them."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "config" / "systemd" / "user"


def test_every_template_is_known() -> None:
    known = {units.MOUNT, units.ANOTHER, units.SOCKET, units.HELPER, units.REPLICA}
    assert {path.name for path in TEMPLATES} == known


def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd-analyze is missing: apt-get install systemd")
    for template in TEMPLATES:
        text = units.filled(template.name, url="file:///backup/50%", environment=SETTINGS)
        (tmp_path / template.name).write_text(text)
    (tmp_path / "geniuzfs@home-you-Work.service").write_text((tmp_path / units.ANOTHER).read_text())
    name, text = units.drop_in("geniuzfs@home-you-Work.service", ["mount", "--in", "50% $HOME"])
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text(text)
    named = [path for path in tmp_path.iterdir() if path.is_file() and path.name != units.ANOTHER]
    (tmp_path / "run").mkdir(mode=0o700)
    done = subprocess.run(
        [verify, "--user", "--man=no", "verify", *map(str, named)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "run"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_unit_has_no_gap_left_and_names_this_program_and_its_settings() -> None:
    for template in TEMPLATES:
        text = units.filled(template.name, url="s3://x", environment=SETTINGS)
        assert text.startswith(units.MARK)
        assert not re.search(r"@[A-Z]+@", text)
        if template.suffix == ".service":
            assert f"ExecStart={units.program()[0]} -P -m geniuzfs " in text
            assert r'Environment="GENIUZ_HOME=/data/50%% \"mine\" $HOME"' in text
            assert "GENIUZ_LEARN" not in text


def test_the_mounts_differ_by_the_place_alone() -> None:
    one, another = (units.filled(name) for name in (units.MOUNT, units.ANOTHER))
    differing = set(one.splitlines()) ^ set(another.splitlines())
    assert {re.sub(r"=.*|^#.*", "", line) for line in differing} == {
        "",
        "Description",
        "ExecStart",
        "ExecStopPost",
    }


def test_nothing_bars_the_mount_from_fusermount3() -> None:
    """In a user's manager each of these either implies NoNewPrivileges or hides the mount."""
    barring = r"^(NoNew|Restrict(?!art)|SystemCall|Lock|Memory|Protect|Private|Bind|ReadOnly)"
    for name in (units.MOUNT, units.ANOTHER):
        found = re.findall(rf"{barring}\w*=", units.filled(name), re.MULTILINE)
        assert found == []


@given(
    st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\r"), min_size=1)
)
def test_a_word_is_one_word_whatever_it_holds(word: str) -> None:
    quoted = units.quoted(word)
    inner = quoted[1:-1] if quoted.startswith('"') else quoted
    assert quoted == inner or quoted.endswith('"')
    assert not set(quoted) & set("\n\r")
    ends = {"n": "\n", "r": "\r"}
    plain = re.sub(r'\\(["\\nr])', lambda found: ends.get(found[1], found[1]), inner)
    plain = plain.replace("%%", "%")
    assert plain == word
    assert quoted != inner or not set(word) & set(" \"'\\%;")


def test_what_is_removed_is_what_was_written(config: Path) -> None:
    mine = config / "geniuzfs.service.d" / "mine.conf"
    mine.parent.mkdir(parents=True)
    mine.write_text("[Service]\n")
    own = config / "geniuzfs-own.service"
    own.write_text("[Service]\n")
    another = units.drop_in("geniuzfs@home-you-Work.service", ["mount"])
    texts = {name: units.filled(name) for name in (units.MOUNT, units.ANOTHER, units.SOCKET)}
    texts |= dict([another, units.drop_in(units.MOUNT, ["mount"])])
    assert units.write(texts)
    assert not units.write(texts)
    assert {path.relative_to(config) for path in units.written()} == set(map(Path, texts))
    units.remove(units.written())
    assert sorted(path for path in config.rglob("*") if path.is_file()) == [own, mine]
    assert not (config / another[0]).parent.exists()
