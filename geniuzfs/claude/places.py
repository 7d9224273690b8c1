"""Paths beneath /memories, and where in the folder they lie.

Hides: that what Claude calls /memories is the folder's top. Promises: what is no path of a file is
refused before anything is touched, as it stands or decoded, however often it was encoded. A path
is used as it stands: a file may be called `a%20b.md`. Refuses: every `..`.
"""

from urllib.parse import unquote

from anthropic.lib.tools import ToolError

from geniuzfs.api import requests
from geniuzfs.api.directories import TOP
from geniuzfs.errors import BadPath

ROOT = "/memories"
"""What Claude calls the folder's top."""

_SHOWN = 300
"""Characters of a path that is refused."""


def path_of(given: object) -> str:
    """As Claude is told it back: without slashes that are too many. Raises ToolError."""
    if not isinstance(given, str):
        raise ToolError("Error: a path is missing, or no string")
    path = "/" + "/".join(name for name in given.split("/") if name)
    if not given.startswith("/") or not f"{path}/".startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with {ROOT}, got: {given[:_SHOWN]}")
    _check(path)
    return path


def _check(path: str) -> None:
    decoded, before = path, ""
    while decoded != before:
        if ".." in decoded.replace("\\", "/").split("/"):
            raise ToolError(f"Path {path[:_SHOWN]} would escape {ROOT} directory")
        try:
            if (place := place_of(decoded)) != TOP:
                requests.path(place)
        except BadPath as error:
            raise ToolError(f"Error: Beneath {ROOT}, {error}") from error
        decoded, before = unquote(decoded), decoded


def place_of(path: str) -> str:
    """Where it lies in the folder."""
    return path[len(ROOT) :] or TOP
