"""Memories as files: a mount that keeps every byte and learns what the text says.

For programs: `with geniuzfs.open() as mem:`, see there. What else is named here is imported when it
is first used: `import geniuzfs` alone takes no time.
"""

TYPE_CHECKING = False  # what checks types takes it for True; to import typing takes 5 ms
if TYPE_CHECKING:
    from geniuzfs.api.filed import Earlier, File, Page, Put, Read, Source, Sources
    from geniuzfs.api.histories import Undone
    from geniuzfs.api.keeping import Held
    from geniuzfs.api.opened import Opened
    from geniuzfs.errors import BadPath, GeniuzError, NotText
    from geniuzfs.errors import Conflict as ConflictError
    from geniuzfs.errors import NotFound as NotFoundError
    from geniuzfs.errors import UsageError as InvalidRequest
    from geniuzfs.recall.hits import Answer, Hit

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "BadPath",
    "ConflictError",
    "Earlier",
    "File",
    "GeniuzError",
    "Held",
    "Hit",
    "InvalidRequest",
    "NotFoundError",
    "NotText",
    "Opened",
    "Page",
    "Put",
    "Read",
    "Source",
    "Sources",
    "Undone",
    "open",
]

_PLACES = {
    "Answer": "recall.hits",
    "BadPath": "errors",
    "ConflictError": "errors",
    "Earlier": "api.filed",
    "File": "api.filed",
    "GeniuzError": "errors",
    "Held": "api.keeping",
    "Hit": "recall.hits",
    "InvalidRequest": "errors",
    "NotFoundError": "errors",
    "NotText": "errors",
    "Opened": "api.opened",
    "Page": "api.filed",
    "Put": "api.filed",
    "Read": "api.filed",
    "Source": "api.filed",
    "Sources": "api.filed",
    "Undone": "api.histories",
}
"""Name → the module that has it."""

_OWN_NAMES = {
    "ConflictError": "Conflict",
    "InvalidRequest": "UsageError",
    "NotFoundError": "NotFound",
}
"""What is called otherwise in its module."""


def open(folder: str | None = None) -> "Opened":
    """A folder of memories, by its name; None: the one that a command of `geniuzfs` means in this
    directory. Made, with the data directory, where nothing was used before. Close it, or use it in
    a `with`. Raises NotFoundError for the name; all that can be raised is a GeniuzError.
    """
    from geniuzfs import runtime

    return runtime.opened(folder)


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'geniuzfs' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"geniuzfs.{_PLACES[name]}")
    held: object = getattr(module, _OWN_NAMES.get(name, name))
    return held
