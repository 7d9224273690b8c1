"""Bytes into messages of JSON-RPC, the same for every transport.

Promises: what is no message is answered as JSON-RPC says, with one line, and none of it is
repeated; the id is named where there is one. Refuses: batches, which MCP has given up.
"""

from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCMessage
from mcp_types.jsonrpc import JSONRPCNotification, JSONRPCRequest, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import from_json

ID_LONGEST = 1_000
"""Characters or digits in a request's id: it is held until the answer, and repeated in it."""


def parsed(text: bytes) -> JSONRPCMessage | JSONRPCError:
    """A message, or the error that answers these bytes."""
    try:
        value = from_json(text, allow_inf_nan=False)
    except (ValueError, RecursionError):
        return _error(PARSE_ERROR, "that is no JSON in UTF-8")
    return _message(value)


def too_long(most: int) -> JSONRPCError:
    """What answers a message of more than `most` bytes."""
    return _error(INVALID_REQUEST, f"a message has at most {most:,} bytes")


def _message(value: object) -> JSONRPCMessage | JSONRPCError:
    if isinstance(value, list):
        return _error(INVALID_REQUEST, "send one message at a time, not a batch")
    try:
        message = jsonrpc_message_adapter.validate_python(value, by_name=False)
    except (ValidationError, RecursionError):
        return _error(INVALID_REQUEST, "that is no message of JSON-RPC 2.0")
    if isinstance(message, JSONRPCNotification) and isinstance(value, dict) and "id" in value:
        # Else a request with an id of another type would wait for its answer for ever.
        return _error(INVALID_REQUEST, "an id is a whole number or a string")
    if isinstance(message, JSONRPCRequest) and len(str(message.id)) > ID_LONGEST:
        return _error(INVALID_REQUEST, f"an id has at most {ID_LONGEST:,} characters")
    return message


def _error(code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=message))
