"""`geniuzfs mcp serve` for tests: a process, spoken to in lines or by the SDK's client."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Self

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.daemon import wait_until

ENDED_SECONDS = 30

COMMAND = [sys.executable, "-m", "geniuzfs", "mcp", "serve"]


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of a server on the data directory `home`."""
    return {**os.environ, "GENIUZ_HOME": str(home), **(more or {})}


class Spoken:
    """`with Spoken(home) as server:` a server on stdio, greeted unless `greet` is False."""

    def __init__(self, home: Path, *options: str, greet: bool = True) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home),
        )
        self._greet = greet
        self._id = 0
        self.log = b""
        self.may_log = b""
        """What lines of its log may contain without failing the test."""

    def send(self, *messages: object) -> None:
        """Each on a line; bytes as they are."""
        assert self.process.stdin is not None
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server has ended"
        received: dict[str, Any] = json.loads(line)
        return received

    def ask(self, method: str, params: object = None) -> dict[str, Any]:
        """Send a request; the next message."""
        self._id += 1
        self.send(request(self._id, method, params))
        return self.receive()

    def call(self, tool: str, **arguments: object) -> dict[str, Any]:
        """The result of a tool, which may be an error of the tool."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        result: dict[str, Any] = answer["result"]
        return result

    def end(self) -> list[dict[str, Any]]:
        """Close its input; what it still says. Fails unless it ends well."""
        rest, self.log = self.process.communicate(timeout=ENDED_SECONDS)
        assert self.process.returncode == 0, self.log
        return [json.loads(line) for line in rest.splitlines()]

    def __enter__(self) -> Self:
        if self._greet:
            assert "result" in self.ask("initialize", INITIALIZE)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None and self.process.returncode is None:
                self.end()
        finally:
            self.process.kill()
            self.process.communicate()
        if kind is None:
            # As of a mount: what is not caught up while another writes is told, and no fault.
            lines = [each for each in self.log.splitlines() if b" INFO " not in each]
            unexpected = [each for each in lines if not self.may_log or self.may_log not in each]
            assert unexpected == []


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def request(id_: int | str, method: str, params: object = None) -> dict[str, object]:
    """A request as a message."""
    held = {} if params is None else {"params": params}
    return {"jsonrpc": "2.0", "id": id_, "method": method, **held}


def error_text(result: Mapping[str, Any]) -> str:
    """What a tool that refuses says."""
    assert result["isError"], result
    text: str = result["content"][0]["text"]
    assert "\n" not in text
    assert "Traceback" not in text
    return text


@contextmanager
def http_server(home: Path, *options: str) -> Iterator[tuple[str, str]]:
    """A server by HTTP: its URL and token."""
    process = subprocess.Popen(
        [*COMMAND, "--http", "--port", "0", "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
    )
    try:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        yield said["url"], said["token"]
        assert process.poll() is None
        # Whatever was asked of it, however many asked.
        wait_until(lambda: len(os.listdir(f"/proc/{process.pid}/fd")) < 40)
        assert resident_mb(process.pid) < 400
    finally:
        process.terminate()
        _, log = process.communicate(timeout=ENDED_SECONDS)
    assert b"Traceback" not in log


@asynccontextmanager
async def over_stdio(home: Path, *options: str, mode: str = "auto") -> AsyncIterator[Client]:
    """The SDK's client, on a server of its own."""
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], *options], env=environment(home)
    )
    async with Client(parameters, mode=mode) as client:
        yield client


@asynccontextmanager
async def over_http(url: str, token: str, mode: str = "auto") -> AsyncIterator[Client]:
    """The SDK's client, on a server by HTTP."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def resident_mb(pid: int) -> float:
    """What a process has in memory."""
    status = Path(f"/proc/{pid}/status").read_text()
    held = dict(line.split(":", 1) for line in status.splitlines())
    return int(held["VmRSS"].split()[0]) / 1024
