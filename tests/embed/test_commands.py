"""`geniuzfs model`: choosing, listing, downloading."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from geniuzfs.embed import cards, download, models
from geniuzfs.errors import ModelUnavailable, UsageError
from tests.embed.fake import tiny_model

NAME = "paraphrase-multilingual-MiniLM-L12-v2"


def run(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    # Only these commands: whatever else there is needs not be loadable.
    program = (
        "import sys; from geniuzfs import cli; from geniuzfs.cli import model, serve\ncli.main()"
    )
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "GENIUZ_HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def test_use_and_list(home: Path, tmp_path: Path) -> None:
    made = tiny_model(tmp_path / "tiny")
    card = cards.read(made)
    done = run(home, "model", "use", str(made))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"chosen: {card.id}\n", "")
    assert models.chosen(home) == card.id
    done = run(home, "model", "list")
    assert done.stdout == f"  {cards.DEFAULT.id}  default\n* {card.id}  {made}\n"
    done = run(home, "model", "list", "--json")
    assert json.loads(done.stdout) == {
        "models": [
            {"id": cards.DEFAULT.id, "directory": None, "chosen": False, "missing": None},
            {"id": card.id, "directory": str(made), "chosen": True, "missing": None},
        ]
    }
    assert run(home, "model", "use", "default").stdout == f"chosen: {cards.DEFAULT.id}\n"
    assert models.chosen(home) == cards.DEFAULT.id


def test_a_directory_without_a_card_is_refused_in_one_line(home: Path, tmp_path: Path) -> None:
    made = tiny_model(tmp_path / "tiny")
    (made / cards.FILE).unlink()
    done = run(home, "model", "use", str(made))
    assert done.returncode == UsageError.exit_code
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("geniuzfs: ")
    assert "query_prefix" in line
    assert models.chosen(home) == cards.DEFAULT.id


def test_the_helper_is_a_hidden_command(home: Path) -> None:
    assert "serve-model" not in run(home, "--help").stdout
    assert run(home, "serve-model", "--help").returncode == 0


class Hub(ThreadingHTTPServer):
    """What Hugging Face answers to a download of one file, from a directory."""

    daemon_threads = True

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.directory = directory


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        repository, found, file = self.path.partition("/resolve/main/")
        path = self.server.directory / Path(file).name
        known = found and repository.endswith(NAME) and path.is_file()
        content = path.read_bytes() if known else b""
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", "0" * 40)
        if not known:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    made = tiny_model(tmp_path / "offered")
    (made / "model.onnx").rename(made / Path(download.OFFERS[NAME].weights).name)
    with Hub(made) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def endpoint(hub: Hub) -> dict[str, str]:
    return {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "NO_PROXY": "127.0.0.1",
    }


def test_download_makes_a_directory_with_a_card(home: Path, hub: Hub) -> None:
    done = run(home, "model", "download", NAME, HF_HOME=str(home / "hf"), **endpoint(hub))
    place = home / "models" / NAME
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, str(place)), done.stderr
    card = models.checked(place)
    assert (card.name, card.pooling, card.max_tokens, card.dimension) == (NAME, "mean", 512, 384)
    assert cards.is_of_geniuz(card.id)
    assert (card.query_prefix, card.passage_prefix) == ("", "")
    assert sorted(path.name for path in place.iterdir()) == [
        "model.json",
        "model.onnx",
        "tokenizer.json",
    ]
    assert [path.name for path in place.parent.iterdir()] == [NAME]
    # It is there: nothing is fetched again.
    assert run(home, "model", "download", NAME, HF_ENDPOINT="http://127.0.0.1:1").returncode == 0
    assert f"  {card.id}  {place}\n" in run(home, "model", "list").stdout


def test_a_download_that_breaks_off_leaves_nothing(home: Path, hub: Hub) -> None:
    (hub.directory / Path(download.OFFERS[NAME].weights).name).unlink()
    done = run(home, "model", "download", NAME, HF_HOME=str(home / "hf"), **endpoint(hub))
    assert done.returncode == ModelUnavailable.exit_code
    assert len(done.stderr.splitlines()) == 1
    assert "can't be fetched" in done.stderr
    assert list((home / "models").iterdir()) == []


def test_without_the_extra_one_line_says_what_to_install(home: Path, tmp_path: Path) -> None:
    # A package of that name that can't be imported, before the one that is installed.
    broken = tmp_path / "first" / "huggingface_hub"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('not here')")
    done = run(home, "model", "download", NAME, PYTHONPATH=str(broken.parent))
    assert done.returncode == ModelUnavailable.exit_code
    assert done.stderr == (
        'geniuzfs: huggingface-hub is not installed: pip install "geniuzfs[download]"\n'
    )


def test_a_name_that_is_not_offered_is_refused(home: Path) -> None:
    done = run(home, "model", "download", "no-such-model")
    assert done.returncode == UsageError.exit_code
    assert NAME in done.stderr
