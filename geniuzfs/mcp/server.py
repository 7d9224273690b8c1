"""The server: requests of the protocol, whatever they come by, and the answers to them.

Hides: the SDK's server. Promises: what blocks runs in one of `THREADS` threads, so the wire is
read and answered meanwhile; a name that is not there is an error of the protocol (-32602), and what
a tool refuses is an answer of the tool.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from geniuzfs import __version__
from geniuzfs.errors import GeniuzError, NotFound
from geniuzfs.mcp import offering, tools
from geniuzfs.mcp.door import Door
from geniuzfs.mcp.fence import one_line
from geniuzfs.mcp.greeting import NAME, instructions

THREADS = 4
"""Calls that are worked on at once. Questions to one folder take turns, so more gain nothing."""

_NOT_FOUND = -32002
"""The protocol's code for a resource that is not there."""

_log = logging.getLogger(__name__)

Context = ServerRequestContext[Any]
Paged = types.PaginatedRequestParams | None
T = TypeVar("T")


def made(door: Door) -> Server[Any]:
    """The server on that door."""
    offered = tools.offered(door)
    listed = list(tools.listed(door))
    threads = anyio.CapacityLimiter(THREADS)

    async def in_thread(call: Callable[..., T], *arguments: Any) -> T:
        return await anyio.to_thread.run_sync(call, *arguments, limiter=threads)

    async def asked(call: Callable[..., T], *arguments: Any) -> T:
        """For what has no answer of its own that is an error, as tools have."""
        try:
            return await in_thread(call, *arguments)
        except NotFound as error:
            raise MCPError(_NOT_FOUND, one_line(str(error))) from error
        except GeniuzError as error:
            raise MCPError(types.INVALID_PARAMS, one_line(str(error))) from error
        except Exception as error:  # the server goes on, and the client is told no internals
            _log.exception("%s failed", call.__name__)
            raise MCPError(types.INTERNAL_ERROR, "it failed: see the server's log") from error

    async def list_tools(_: Context, params: Paged) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = offered.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name[:60]!r}")
        return await in_thread(tools.call, door, tool, params.arguments)

    async def list_resources(_: Context, params: Paged) -> types.ListResourcesResult:
        cursor = None if params is None else params.cursor
        return await asked(offering.listed, door, cursor)

    async def list_templates(_: Context, params: Paged) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=list(offering.TEMPLATES))

    async def read_resource(
        _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await asked(offering.read, door, params.uri)

    async def list_prompts(_: Context, params: Paged) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=list(offering.PROMPTS))

    async def get_prompt(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        return await asked(offering.prompt, door, params.name, params.arguments)

    @asynccontextmanager
    async def warming(_: Server[Any]) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(in_thread, door.warm)
            yield
        door.close()

    return Server(
        NAME,
        version=__version__,
        instructions=instructions(read_only=door.read_only),
        lifespan=warming,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
