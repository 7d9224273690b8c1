"""How a server starts: the client's greeting is answered while the SDK is being imported.

Promises: `initialize` is answered 0.1 s after the start, where the SDK alone takes 0.6 s to import.
Imports nothing that takes time itself.
"""

from collections.abc import Callable
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

from geniuzfs.mcp import greeting
from geniuzfs.mcp.wire import Wire

if TYPE_CHECKING:
    from geniuzfs.mcp.door import Door


def serve(door: "Callable[[], Door]", *, read_only: bool, at_once: bool) -> None:
    """Serve on standard input and output, until the input ends. `door` is called when the client
    has been greeted; `at_once`: before, as it may refuse, which takes 0.1 s.
    """
    made = door() if at_once else None
    wire = Wire.claim()
    importing = Thread(target=import_module, args=("geniuzfs.mcp.stdio",), daemon=True)
    importing.start()
    try:
        first = wire.first()
        if first is None:
            return
        greeted = greeting.answer(first.text, read_only=read_only)
        if greeted is not None:
            wire.write(greeted.answer)
        importing.join()
        from geniuzfs.mcp import server, stdio

        stdio.serve(
            server.made(made or door()), wire, first, None if greeted is None else greeted.id
        )
    except BrokenPipeError:  # the client has gone
        pass
