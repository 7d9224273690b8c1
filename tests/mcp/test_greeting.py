"""What is said before the SDK is there is what the SDK would say."""

import json
from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import version
from mcp_types.jsonrpc import jsonrpc_message_adapter

from geniuzfs.mcp import greeting, server
from geniuzfs.mcp.door import Door
from tests.mcp.serving import request

CLIENT = {"name": "test", "version": "1", "title": "A test"}
META = "io.modelcontextprotocol/"


def initialize(wanted: str) -> dict[str, Any]:
    capabilities = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}
    return {"protocolVersion": wanted, "capabilities": capabilities, "clientInfo": CLIENT}


def discover(wanted: str) -> dict[str, Any]:
    meta = {"protocolVersion": wanted, "clientInfo": CLIENT, "clientCapabilities": {"roots": {}}}
    return {"_meta": {META + key: value for key, value in meta.items()}}


def by_sdk(door: Door, message: object) -> Any:
    """What the SDK's server answers."""

    async def answered() -> Any:
        to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](1)
        outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](1)
        made = server.made(door)
        async with anyio.create_task_group() as tasks:
            options = made.create_initialization_options()
            tasks.start_soon(made.run, incoming, outgoing, options)
            await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_python(message)))
            answer = await from_server.receive()
            to_server.close()
        from_server.close()
        return json.loads(answer.message.model_dump_json(by_alias=True, exclude_unset=True))

    return anyio.run(answered)


@pytest.mark.parametrize("wanted", [*greeting.HANDSHAKES, "2019-01-01", "2026-07-28"])
@pytest.mark.parametrize("read_only", [False, True])
def test_initialize_is_answered_as_the_sdk_answers_it(
    door: Door, wanted: str, read_only: bool
) -> None:
    door.read_only = read_only
    message = request("first", "initialize", initialize(wanted))
    greeted = greeting.answer(json.dumps(message).encode(), read_only=read_only)
    assert greeted is not None
    assert json.loads(greeted.answer) == by_sdk(door, message)
    assert ("keep" in json.loads(greeted.answer)["result"]["instructions"]) != read_only


def test_discover_is_answered_as_the_sdk_answers_it(door: Door) -> None:
    message = request(7, "server/discover", discover(greeting.MODERN[-1]))
    greeted = greeting.answer(json.dumps(message).encode(), read_only=False)
    assert greeted is not None
    assert json.loads(greeted.answer) == by_sdk(door, message)


def test_the_versions_are_those_of_the_sdk() -> None:
    assert greeting.HANDSHAKES == version.HANDSHAKE_PROTOCOL_VERSIONS
    assert greeting.MODERN == version.MODERN_PROTOCOL_VERSIONS


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"initialize","params":{}}',
        b'{"jsonrpc":"2.0","id":true,"method":"initialize","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}',
        json.dumps(request(1, "server/discover", discover("2031-01-01"))).encode(),
        json.dumps(request(1, "initialize", initialize("1") | {"capabilities": []})).encode(),
        json.dumps(request(1, "initialize", initialize("1") | {"clientInfo": {}})).encode(),
    ],
)
def test_whatever_is_no_greeting_is_left_to_the_sdk(line: bytes) -> None:
    assert greeting.answer(line, read_only=False) is None
