"""How soon does the MCP server greet its client, and how long does a recall through it take?

Cold starts, in turns with those of a bare Python and of one that imports the SDK: `greeted` is
until the answer to `initialize` was read, `listed` until that to `tools/list`, which is when the
SDK is there. Recalls are of a folder as tests.bench.recall makes it, with the same made-up model in
place of the helper, and in turns: the same question through the mount's `.recall`, on stdio, by
HTTP.

    python -m tests.bench.mcp [--json] [--quick] [--keep DIR]

DIR keeps the folder.
"""

import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run by its path, as a program

from tests.bench.corpus import Corpus
from tests.bench.recall import ask, folder, percentiles, timed
from tests.bench.report import machine
from tests.daemon import Daemon

PROGRAM = "tests.bench.made_up"
PASSAGES = 10_000
GREETING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class Stdio:
    """A server on stdio."""

    def __init__(self, home: Path, program: str = "geniuzfs") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", program, "mcp", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(home),
        )

    def ask(self, method: str, params: object) -> Any:
        """The result of a request."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(message(method, params)).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())["result"]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait() == 0


def message(method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def environment(home: Path) -> dict[str, str]:
    root = Path(__file__).resolve().parents[2]
    return {**os.environ, "GENIUZ_HOME": str(home), "PYTHONPATH": str(root)}


def recalled(question: str) -> dict[str, object]:
    """The parameters of a call."""
    return {"name": "recall", "arguments": {"query": question}}


def cold(home: Path) -> dict[str, float]:
    """One start, in seconds."""
    found: dict[str, float] = {}

    def start() -> None:
        servers.append(Stdio(home))
        servers[0].ask("initialize", GREETING)

    servers: list[Stdio] = []
    found["greeted"] = timed(start)
    found["listed"] = found["greeted"] + timed(servers[0].ask, "tools/list", {})
    servers[0].close()
    for name, code in (("python", "pass"), ("the sdk", "import mcp")):
        command = [sys.executable, "-c", code]
        found[name] = timed(lambda command=command: subprocess.run(command, check=True))
    return found


@contextmanager
def by_http(home: Path) -> Iterator[Callable[[str], None]]:
    """Asks a question by HTTP, on one connection."""
    process = subprocess.Popen(
        [sys.executable, "-m", PROGRAM, "mcp", "serve", "--http", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        env=environment(home),
    )
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    connection = http.client.HTTPConnection(said["url"].split("/")[2])
    headers = {
        "Authorization": f"Bearer {said['token']}",
        "Content-Type": "application/json",
        "Accept": "application/json",
    }

    def asked(question: str) -> None:
        body = json.dumps(message("tools/call", recalled(question)))
        connection.request("POST", "/mcp", body, headers)
        assert json.loads(connection.getresponse().read())["result"]["isError"] is False

    try:
        yield asked
    finally:
        connection.close()
        process.terminate()
        process.wait()


def recalls(count: int, keep: Path, asked: int) -> dict[str, dict[str, float]]:
    """The same questions by each way, in milliseconds."""
    questions = [question for question, _ in Corpus(2).questions(asked)]
    took: dict[str, list[float]] = {"mount": [], "stdio": [], "http": []}
    with (
        tempfile.TemporaryDirectory(prefix="geniuzfs-mcp-", dir=keep) as held,
        ExitStack() as open_,
    ):
        home = Path(held) / "home"
        home.mkdir()
        shutil.copy(folder(count, keep), home / "memory.db")
        quiet = {"GENIUZ_LEARN": "0"}
        daemon = open_.enter_context(Daemon(Path(held), environment=quiet, program=PROGRAM))
        server = Stdio(home, PROGRAM)
        open_.callback(server.close)
        server.ask("initialize", GREETING)
        ways: dict[str, Callable[[str], object]] = {
            "mount": lambda question: ask(daemon.root, question),
            "stdio": lambda question: server.ask("tools/call", recalled(question)),
            "http": open_.enter_context(by_http(home)),
        }
        for number, question in enumerate(questions):
            for name, way in ways.items():
                seconds = timed(way, question)
                if number > 5:
                    took[name].append(seconds)
    return {name: percentiles(seconds) for name, seconds in took.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="1,000 passages and few rounds")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    passages, asked, starts = (1_000, 16, 2) if given.quick else (PASSAGES, 206, 20)
    with tempfile.TemporaryDirectory(prefix="geniuzfs-corpus-") as made:
        keep = given.keep or Path(made)
        cold(keep / "cold")  # the data directory is made, the files are in the page cache
        rounds = [cold(keep / "cold") for _ in range(starts)]
        starting = {name: percentiles([each[name] for each in rounds]) for name in rounds[0]}
        results = {"cold start": starting, "recall": recalls(passages, keep, asked)}
    if given.json:
        print(json.dumps({"machine": machine(), "passages": passages, "results": results}))
        return
    for title, figures in results.items():
        print(f"{title}, ms")
        for name, found in figures.items():
            print(f"  {name:8} {found}")


if __name__ == "__main__":
    main()
