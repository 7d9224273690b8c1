"""The server on standard input and output.

Hides: how messages wait. Promises: what was asked before the input ended is answered before the
server ends (`LAST_SECONDS` permitting); a client that sends without reading is read no further when
`WAITING` of its requests, or `WAITING_BYTES` of them, are unanswered, so that memory stays bounded;
what is no message is answered with an error, and the next one is read. Raises nothing when the
client goes.
"""

import logging
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel.server import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types.jsonrpc import JSONRPCError, JSONRPCMessage, JSONRPCRequest, JSONRPCResponse

from geniuzfs.mcp.messages import parsed, too_long
from geniuzfs.mcp.wire import LONGEST, WRITES, Line, Wire

WAITING = 16
WAITING_BYTES = LONGEST
"""Requests that are worked on or wait to be written, and their bytes."""

LAST_SECONDS = 10.0

_log = logging.getLogger(__name__)

ToServer = MemoryObjectSendStream[SessionMessage | Exception]
FromServer = MemoryObjectReceiveStream[SessionMessage]


def serve(server: Server[Any], wire: Wire, first: Line | None, greeted: int | str | None) -> None:
    """Until the input ends. `first`: a line that was read already; `greeted`: the id of the request
    in it, where that was answered already.
    """
    anyio.run(_Session(server, wire, first, greeted).run)


class _Session:
    def __init__(
        self, server: Server[Any], wire: Wire, first: Line | None, greeted: int | str | None
    ) -> None:
        self._server = server
        self._wire = wire
        self._first = first
        self._greeted = greeted
        self._unanswered: defaultdict[int | str, deque[int]] = defaultdict(deque)
        """The bytes of each request, by its id, which a client may use twice."""
        self._count = 0
        self._bytes = 0
        self._changed = anyio.Event()
        self._writing = anyio.Lock()

    async def run(self) -> None:
        to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, to_server, tasks.cancel_scope)
            tasks.start_soon(self._write, from_server, tasks.cancel_scope)
            options = self._server.create_initialization_options()
            await self._server.run(incoming, outgoing, options)
            tasks.cancel_scope.cancel()

    async def _read(self, to_server: ToServer, scope: anyio.CancelScope) -> None:
        """Give the server what comes; ends with the input, when all of it is answered."""
        async with to_server:
            with _until_gone(scope):
                line = self._first
                while line is not None:
                    await self._take(line, to_server)
                    line = await self._next()
                with anyio.move_on_after(LAST_SECONDS):
                    await self._until(0)

    async def _take(self, line: Line, to_server: ToServer) -> None:
        message = too_long(LONGEST) if line.too_long else parsed(line.text)
        if isinstance(message, JSONRPCError) and message.id is None:
            await self._send(message)
            return
        metadata = None
        if isinstance(message, JSONRPCRequest):
            await self._until(WAITING - 1)
            self._began(message.id, len(line.text))
            settled = partial(self._settled, message.id)
            metadata = ServerMessageMetadata(on_request_unanswered=settled)
        await to_server.send(SessionMessage(message, metadata))

    async def _next(self) -> Line | None:
        while (line := self._wire.next()) is None:
            await _ready(anyio.wait_readable, self._wire.incoming)
            if not self._wire.fill():
                return self._wire.next()
        return line

    async def _write(self, from_server: FromServer, scope: anyio.CancelScope) -> None:
        async with from_server:
            with _until_gone(scope):
                async for each in from_server:
                    await self._answer(each.message)

    async def _answer(self, message: JSONRPCMessage) -> None:
        id_ = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else None
        if id_ is not None and id_ == self._greeted:
            self._greeted = None
            if isinstance(message, JSONRPCError):
                _log.warning("the greeting was answered, and then found wrong: %s", message.error)
        else:
            await self._send(message)
        if id_ is not None:
            self._ended(id_)

    async def _send(self, message: JSONRPCMessage) -> None:
        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        pieces = memoryview(data)
        async with self._writing:
            for begin in range(0, len(data), WRITES):
                if not self._wire.takes():
                    await _ready(anyio.wait_writable, self._wire.outgoing)
                self._wire.write(pieces[begin : begin + WRITES])

    def _began(self, id_: int | str, size: int) -> None:
        self._unanswered[id_].append(size)
        self._count += 1
        self._bytes += size

    async def _settled(self, id_: int | str) -> None:
        """A request was cancelled: nobody answers it."""
        self._ended(id_)

    def _ended(self, id_: int | str) -> None:
        sizes = self._unanswered.get(id_)
        if not sizes:  # cancelled, and answered all the same
            return
        self._bytes -= sizes.popleft()
        self._count -= 1
        if not sizes:
            del self._unanswered[id_]
        self._changed.set()

    async def _until(self, most: int) -> None:
        """Wait until at most so many requests, and not too many bytes, are unanswered."""
        while self._count > most or (self._count and self._bytes > WAITING_BYTES):
            self._changed = anyio.Event()
            await self._changed.wait()


@contextmanager
def _until_gone(scope: anyio.CancelScope) -> Iterator[None]:
    """Whoever finds that the client has gone ends the session."""
    try:
        yield
    except OSError as error:
        _log.info("the client has gone: %s", error)
        scope.cancel()


async def _ready(wait: Any, descriptor: int) -> None:
    """Wait for a pipe, socket or terminal; a file is always ready, and epoll refuses it."""
    try:
        await wait(descriptor)
    except PermissionError:
        await anyio.lowlevel.checkpoint()
