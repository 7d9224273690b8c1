"""Vectors from an Ollama, played by a small HTTP server on this machine."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from geniuzfs.embed.ollama import Ollama
from geniuzfs.errors import ModelUnavailable, TooLate, UsageError
from geniuzfs.model import ModelId

DIGEST = "0123456789abcdef" * 4


class Server(ThreadingHTTPServer):
    """Answers as Ollama does; `answer` and `digest` can be changed, `asked` is what came."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.digest = DIGEST
        self.answer: Any = None
        self.status = 200
        self.asked: list[dict[str, Any]] = []
        self.released = threading.Event()
        self.released.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}#tiny"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        assert self.path == "/api/tags"
        name = {"name": "tiny:latest", "digest": f"sha256:{self.server.digest}"}
        self._say(200, {"models": [{"name": "other"}, name]})

    def do_POST(self) -> None:
        assert self.path == "/api/embed"
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(asked)
        self.server.released.wait(10)
        rows = [[float(len(text)), 3.0, 0.0] for text in asked["input"]]
        answer = {"embeddings": rows} if self.server.answer is None else self.server.answer
        self._say(self.server.status, answer)

    def _say(self, status: int, what: Any) -> None:
        body = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.released.set()
        made.shutdown()
        thread.join()


def test_vectors_have_length_1_and_the_id_names_model_and_digest(server: Server) -> None:
    ollama = Ollama.at(server.url)
    model = ollama.model()
    assert model == "ollama:tiny@0123456789ab"
    rows = ollama.passages(["four", "a"], model)
    assert rows.dtype == np.float32
    assert rows == pytest.approx(np.array([[0.8, 0.6, 0], [1 / 10**0.5, 3 / 10**0.5, 0]]))
    assert ollama.query("four", model, 10) == pytest.approx([0.8, 0.6, 0])
    assert server.asked[0] == {"model": "tiny", "input": ["four", "a"], "truncate": True}


def test_many_texts_go_in_several_requests(server: Server) -> None:
    ollama = Ollama.at(server.url)
    rows = ollama.passages(["x" * (1 + number % 7) for number in range(150)], ollama.model())
    assert len(rows) == 150
    assert [len(asked["input"]) for asked in server.asked] == [32, 32, 32, 32, 22]
    assert ollama.passages([], ollama.model()).shape[0] == 0


def test_another_pull_of_the_model_is_another_model(server: Server) -> None:
    ollama = Ollama.at(server.url)
    old = ollama.model()
    server.digest = "ff" * 32
    with pytest.raises(ModelUnavailable, match="is now"):
        ollama.passages(["text"], old)
    assert ollama.model() == "ollama:tiny@ffffffffffff"


def test_a_model_that_is_not_pulled_is_said(server: Server) -> None:
    with pytest.raises(ModelUnavailable, match="ollama pull large"):
        Ollama.at(server.url.replace("tiny", "large")).model()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [],
        {"embeddings": []},
        {"embeddings": [[0.0, 0.0]]},
        {"embeddings": [[1.0], [1.0, 2.0]]},
        {"embeddings": [["a"]]},
        {"embeddings": [[float("inf")]]},
        {"embeddings": None},
    ],
)
def test_an_answer_that_is_no_vector_is_none(server: Server, answer: Any) -> None:
    ollama = Ollama.at(server.url)
    server.answer = answer
    with pytest.raises(ModelUnavailable):
        ollama.query("text", ollama.model(), 10)


def test_a_refusal_is_said(server: Server) -> None:
    ollama = Ollama.at(server.url)
    server.status, server.answer = 500, {"error": "out of memory"}
    with pytest.raises(ModelUnavailable, match="out of memory"):
        ollama.passages(["text"], ollama.model())


def test_a_late_answer_is_too_late(server: Server) -> None:
    ollama = Ollama.at(server.url)
    model = ollama.model()
    server.released.clear()
    with pytest.raises(TooLate):
        ollama.query("text", model, 0.1)
    with pytest.raises(TooLate):
        ollama.query("text", model, 0.0)


def test_an_ollama_that_does_not_run_is_said() -> None:
    with Server() as gone:
        url = gone.url
    with pytest.raises(ModelUnavailable, match="can't be reached"):
        Ollama.at(url).query("text", ModelId("ollama:tiny@1"), 5)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com#m",
        "http://192.168.1.1:11434#m",
        "http://0.0.0.0:11434#m",
        "http://127.0.0.1.example.com#m",
        "http://localhost.example.com#m",
        "http://[2001:db8::1]#m",
        "https://127.0.0.1#m",
        "http://127.0.0.1:11434",
        "http://127.0.0.1:11434/api#m",
        "http://127.0.0.1:no#m",
        "127.0.0.1:11434#m",
        "http://127.0.0.1@example.com#m",
        "http://[::1#m",
        "",
    ],
)
def test_nothing_but_this_machine_is_asked(url: str) -> None:
    with pytest.raises(UsageError):
        Ollama.at(url)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "[::1]", "localhost", "LOCALHOST"])
def test_this_machine_has_several_names(host: str) -> None:
    Ollama.at(f"http://{host}:11434#nomic-embed-text")
