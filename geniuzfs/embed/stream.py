"""Frames over a socket, whole or not at all."""

import socket
import time

from geniuzfs.embed import wire


def send(connection: socket.socket, message: wire.Message) -> None:
    """Raises OSError."""
    connection.sendall(wire.encode(message))


def receive(connection: socket.socket, until: float | None = None) -> wire.Message | None:
    """The next message; None when the other end closed between two. Raises wire.Malformed,
    ConnectionResetError when it closed in the middle of one, and TimeoutError when the
    message is not there by `until` (time.monotonic()).
    """
    prefix = _exactly(connection, wire.PREFIX_BYTES, until)
    if not prefix:
        return None
    head, body = wire.lengths(prefix)
    rest = _exactly(connection, head + body, until)
    if len(prefix) + len(rest) < wire.PREFIX_BYTES + head + body:
        raise ConnectionResetError("the connection ended in the middle of a frame")
    return wire.decode(rest[:head], rest[head:])


def _exactly(connection: socket.socket, size: int, until: float | None) -> bytes:
    """So many bytes, or none when the other end closed before the first of them."""
    found = bytearray(size)
    view, filled = memoryview(found), 0
    while filled < size:
        if until is not None:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
        got = connection.recv_into(view[filled:])
        if not got:
            if filled:
                raise ConnectionResetError("the connection ended in the middle of a frame")
            return b""
        filled += got
    return bytes(found)
