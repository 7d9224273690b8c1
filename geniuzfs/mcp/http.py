"""The server by streamable HTTP, on this machine alone.

Hides: uvicorn. Promises: nobody is served who does not send the token; a page in a browser is not,
whatever name it has given this machine (DNS rebinding): `Host` must be a loopback name and
`Origin`, where there is one, such a page. At most `AT_ONCE` requests are read at a time and a
request takes at most `SECONDS`, so that memory stays bounded whatever clients do; others wait.
Keeps no session: each request stands for itself. Raises UsageError for a token file that can't be
used or a port that is taken.
"""

import contextlib
import hmac
import logging
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.jsonrpc import JSONRPCError
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from geniuzfs import durable
from geniuzfs.errors import UsageError
from geniuzfs.mcp.messages import parsed, too_long
from geniuzfs.mcp.wire import LONGEST

HOST = "127.0.0.1"
PATH = "/mcp"

AT_ONCE = 8
SECONDS = 60.0

TOKEN_LEAST = 16
"""Characters of a token that somebody else has made."""

_CONNECTIONS = 1_000
"""Beyond them the answer is 503."""

_log = logging.getLogger(__name__)


def token(file: Path | None) -> str:
    """The one in that file, or a new one, which is put there, readable for its owner alone.
    Raises UsageError.
    """
    if file is None:
        return secrets.token_urlsafe(32)
    try:
        held = file.read_text("utf-8").strip()
    except FileNotFoundError:
        made = secrets.token_urlsafe(32)
        durable.write(file, made + "\n")
        return made
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} can't be read: {error}") from error
    if len(held) < TOKEN_LEAST or not held.isascii() or not held.isprintable() or " " in held:
        raise UsageError(f"{file} must hold a token: {TOKEN_LEAST} letters and digits or more")
    return held


def listening(port: int) -> socket.socket:
    """A socket on that port, on any for 0. Raises UsageError where it is taken."""
    try:
        made = socket.create_server((HOST, port))
    except OSError as error:
        raise UsageError(f"port {port} can't be had: {error.strerror}: try --port 0") from error
    # Each connection has it from here. Without, an answer waits 40 ms for the client's kernel to
    # acknowledge its headers.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def serve(server: Server[Any], door: socket.socket, secret: str, ready: Callable[[], None]) -> None:
    """Until SIGINT or SIGTERM. `ready` is called when requests are answered."""
    with contextlib.suppress(KeyboardInterrupt):
        anyio.run(_serve, server, door, secret, ready)


async def _serve(
    server: Server[Any], door: socket.socket, secret: str, ready: Callable[[], None]
) -> None:
    port = door.getsockname()[1]
    manager = StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        security_settings=_security(port),
        max_request_body_size=LONGEST,
    )
    async with manager.run():
        config = uvicorn.Config(
            _Guard(manager.handle_request, secret),
            log_config=None,
            access_log=False,
            lifespan="off",
            http="h11",
            ws="none",
            server_header=False,
            limit_concurrency=_CONNECTIONS,
            timeout_graceful_shutdown=5,
        )
        ready()
        await uvicorn.Server(config).serve(sockets=[door])


def _security(port: int) -> TransportSecuritySettings:
    names = (HOST, "localhost")
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[f"{name}:{port}" for name in names],
        allowed_origins=[f"http://{name}:{port}" for name in names],
    )


class _Guard:
    """What stands before the SDK: path, token, size, form, and how many at once."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Any], secret: str) -> None:
        self._app = app
        self._secret = f"Bearer {secret}".encode()
        self._places = anyio.Semaphore(AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        if refused is not None:
            await refused(scope, receive, send)
            return
        async with self._places:
            with anyio.move_on_after(SECONDS) as limit:
                await self._serve(scope, receive, send)
        if limit.cancelled_caught:
            _log.warning("a request took more than %d s and was given up", SECONDS)

    def _refused(self, scope: Scope) -> Response | None:
        if scope["path"] != PATH:
            return Response("Not Found", status_code=404)
        sent = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(sent) != 1 or not hmac.compare_digest(sent[0], self._secret):
            return Response("Unauthorized", status_code=401, headers={"WWW-Authenticate": "Bearer"})
        if scope["method"] != "POST":  # no stream from the server: it never speaks first
            return Response("Method Not Allowed", status_code=405, headers={"Allow": "POST"})
        return None

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        if body is None:
            await _answer(too_long(LONGEST), 413)(scope, receive, send)
            return
        message = parsed(body)
        if isinstance(message, JSONRPCError) and message.id is None:
            await _answer(message, 400)(scope, receive, send)
            return
        await self._app(scope, _again(body, receive), send)


async def _body(receive: Receive) -> bytes | None:
    """All of a request's; None where it is too long. What a client that has gone has sent."""
    held = bytearray()
    while True:
        message = await receive()
        held += message.get("body", b"")
        if len(held) > LONGEST:
            return None
        if message["type"] != "http.request" or not message.get("more_body", False):
            return bytes(held)


def _again(body: bytes, receive: Receive) -> Receive:
    """What the SDK receives: the body that was read, then what comes after it."""
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Message:
        return whole.pop() if whole else await receive()

    return next_message


def _answer(error: JSONRPCError, status: int) -> Response:
    written = error.model_dump_json(by_alias=True, exclude_unset=True)
    return Response(written, status_code=status, media_type="application/json")
