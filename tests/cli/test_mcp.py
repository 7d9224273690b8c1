"""geniuzfs mcp install, uninstall, status: clients' own files, which nothing else may happen to."""

import json
import os
import stat
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geniuzfs import durable
from geniuzfs.errors import Busy
from geniuzfs.mcp import entries
from geniuzfs.mcp.clients import CLIENTS, Client

OTHERS = '{\n\t"theme": "dark",\n\t"é": [1, 2.5, null],\n\t"KEY": {"other": {"command": "x"}}\n}\n'

every_client = pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda one: one.name)
in_json = pytest.mark.parametrize(
    "client", [one for one in CLIENTS.values() if not one.toml], ids=lambda one: one.name
)


def run(
    home: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """geniuzfs mcp, as a user whose home is `home`."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-m", "geniuzfs", "mcp", *arguments],
        env={**kept, "HOME": str(home), **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )


def values(file: Path) -> dict[str, object]:
    text = file.read_text()
    held: dict[str, object] = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    return held


def servers(client: Client, file: Path) -> dict[str, dict[str, object]]:
    held = values(file)[client.key]
    assert isinstance(held, dict)
    return held


@every_client
def test_install_and_uninstall_where_there_is_no_file(client: Client, tmp_path: Path) -> None:
    done = run(tmp_path, "install", "--client", client.name, "--read-only", "--json")
    assert done.returncode == 0, done.stderr
    file = client.file({"HOME": str(tmp_path)})
    assert json.loads(done.stdout) == {
        "clients": [{"client": client.name, "did": "added", "file": str(file)}]
    }
    entry = servers(client, file)["geniuzfs"]
    arguments = entry["args"]
    assert isinstance(arguments, list)
    assert arguments[-3:] == ["mcp", "serve", "--read-only"]
    assert os.access(str(entry["command"]), os.X_OK)
    assert ("type" in entry) == client.typed
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = run(tmp_path, "install", "--client", client.name, "--read-only")
    assert again.stdout.split()[:2] == [client.name, "unchanged"]
    assert run(tmp_path, "uninstall").returncode == 0
    assert values(file) == ({} if client.toml else {client.key: {}})


@in_json
def test_everything_else_in_the_file_stays(client: Client, tmp_path: Path) -> None:
    file = client.file({"HOME": str(tmp_path)})
    file.parent.mkdir(parents=True, exist_ok=True)
    before = OTHERS.replace("KEY", client.key)
    file.write_text(before)
    assert run(tmp_path, "install").returncode == 0
    assert "\n\t" in file.read_text()
    changed = values(file)
    assert set(servers(client, file)) == {"other", "geniuzfs"}
    assert file.with_name(file.name + entries.BACKUP).read_text() == before
    assert run(tmp_path, "uninstall").returncode == 0
    assert values(file) == json.loads(before)
    assert values(file.with_name(file.name + entries.BACKUP)) == changed


TOML = """\
# how I like it
model = "gpt"   # the good one

[mcp_servers.other] # mine
command = "x"
args = [
  "a", # first
]

[tools]
web = true
"""


@pytest.mark.parametrize("text", [TOML, "", TOML.partition("[")[0], TOML.partition("[tools]")[0]])
def test_comments_and_order_in_toml_stay(tmp_path: Path, text: str) -> None:
    file = tmp_path / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text(text)
    made = run(tmp_path, "install")
    assert made.returncode == 0, made.stderr
    added = file.read_text().splitlines()
    assert [line for line in text.splitlines() if line and line not in added] == []
    assert set(servers(CLIENTS["codex"], file)) >= {"geniuzfs"}
    assert run(tmp_path, "uninstall").returncode == 0
    lines = [line for line in file.read_text().splitlines() if line]
    assert lines == [line for line in text.splitlines() if line]


@pytest.mark.parametrize(
    "text",
    [
        '{\n  // how I like it\n  "context_servers": {}\n}\n',
        '{"context_servers": {},}',
        '{"context_servers": {}, "context_servers": {"other": {}}}',
        '{"context_servers": []}',
        "[]",
        "{",
        "\ufeff{}",
        '{"x": 1e999, "y": NaN',
        "[" * 100_000,
    ],
)
def test_a_file_that_cannot_be_read_without_loss_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / ".config" / "zed" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    for command in ("install", "uninstall"):
        done = run(tmp_path, command, "--client", "zed")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert "nothing was changed" in done.stderr
        assert "by hand" in done.stderr
        assert str(file) in done.stderr
        assert file.read_text() == text
        assert os.listdir(file.parent) == [file.name]


def test_one_that_is_refused_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor" / "mcp.json").write_text("// mine")
    (tmp_path / ".gemini").mkdir()
    done = run(tmp_path, "install")
    assert done.returncode == 2
    assert done.stdout.split()[:2] == ["gemini", "added"]
    assert "cursor" in done.stderr


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles.json"
    dotfiles.write_text("{}")
    (tmp_path / ".claude.json").symlink_to(dotfiles)
    assert run(tmp_path, "install", "--client", "claude-code").returncode == 0
    assert (tmp_path / ".claude.json").is_symlink()
    assert "geniuzfs" in dotfiles.read_text()


def test_variables_that_move_a_clients_file_are_followed(tmp_path: Path) -> None:
    moved = {"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/d"}
    found = {
        client.name: str(client.file({"HOME": "/home/you", **moved}))
        for client in CLIENTS.values()
        if client.variable
    }
    assert found == {
        "claude-desktop": "/x/Claude/claude_desktop_config.json",
        "claude-code": "/d/.claude.json",
        "vscode": "/x/Code/User/mcp.json",
        "codex": "/c/config.toml",
        "zed": "/x/zed/settings.json",
    }


def test_the_entry_names_the_folder_and_the_data_directory(tmp_path: Path) -> None:
    environment = {"GENIUZ_HOME": str(tmp_path / "data")}
    subprocess.run(
        [sys.executable, "-m", "geniuzfs", "folder", "new", "Work"],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
    )
    arguments = ("install", "--client", "cursor", "--in", "work")
    assert run(tmp_path, *arguments, environment=environment).returncode == 0
    entry = servers(CLIENTS["cursor"], tmp_path / ".cursor" / "mcp.json")["geniuzfs"]
    assert isinstance(entry["args"], list)
    assert entry["args"][-2:] == ["--in", "Work"]
    assert entry["env"] == environment
    status = json.loads(run(tmp_path, "status", "--json").stdout)["clients"]
    (cursor,) = (row for row in status if row["client"] == "cursor")
    assert (cursor["state"], cursor["command"][-1]) == ("installed", "Work")
    refused = run(tmp_path, *arguments[:-1], "nowhere", environment=environment)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)


def test_what_is_asked_wrongly_is_told_in_one_line(tmp_path: Path) -> None:
    for arguments in (["install", "--client", "emacs"], ["install"], ["uninstall"]):
        done = run(tmp_path, *arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert "claude-code" in done.stderr


def test_without_the_extra_serve_says_what_is_missing(tmp_path: Path) -> None:
    hidden = (
        "import sys, importlib.util as u; find = u.find_spec;"
        "u.find_spec = lambda name, *a: None if name == 'mcp' else find(name, *a);"
        "sys.argv[1:] = ['mcp', 'serve']; from geniuzfs.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "geniuzfs: the MCP server needs its extra: pip install 'geniuzfs[mcp]'\n"


def test_a_file_that_its_client_writes_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mcp.json"
    file.write_text("{}")
    write = durable.write

    def slowly(path: Path, text: str) -> None:
        write(path, text)
        file.write_text('{"written": "meanwhile"}')

    monkeypatch.setattr(durable, "write", slowly)
    with pytest.raises(Busy, match="nothing was changed"):
        entries.install(CLIENTS["cursor"], file, {"command": "x"})
    assert file.read_text() == '{"written": "meanwhile"}'


held_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), held_json), st.sampled_from([None, 1, 2, 4, "\t"]))
def test_install_and_uninstall_leave_any_json_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    held: dict[str, object],
    indent: int | str | None,
) -> None:
    file = tmp_path_factory.mktemp("any") / "mcp.json"
    held = {**held, "mcpServers": {"other": held}}
    file.write_text(json.dumps(held, indent=indent))
    assert entries.install(CLIENTS["cursor"], file, {"command": "x", "args": []})
    assert entries.uninstall(CLIENTS["cursor"], file)
    assert json.loads(file.read_text()) == held
