"""How options and arguments name folders and places, and what a shell offers for them.

Promises: whatever is wrong with the folders, a shell that asks gets fewer names and no error.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from geniuzfs.errors import GeniuzError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Items = list[CompletionItem]


def in_folder(help_: str, name: str = "name") -> Callable[[Any], Any]:
    """The option `--in`, which gives the command the parameter `name`."""
    return click.option("--in", name, metavar="NAME", help=help_, shell_complete=folders)


def folders(_: click.Context, __: click.Parameter, begun: str) -> "Items":
    """Folders that can be named."""
    from geniuzfs import runtime

    return _offered(begun, lambda: (each.name for each in runtime.geniuz().folders()))


def archived(_: click.Context, __: click.Parameter, begun: str) -> "Items":
    """Folders that can be restored."""
    from geniuzfs import runtime

    return _offered(begun, lambda: (each.name for each in runtime.geniuz().arranging.archived()))


def mounted(_: click.Context, __: click.Parameter, begun: str) -> "Items":
    """Mount points in use."""
    from geniuzfs import runtime

    return _offered(begun, lambda: map(str, runtime.geniuz().mounted()))


def directories(_: click.Context, __: click.Parameter, begun: str) -> "Items":
    """Directories: the shell knows them itself."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(begun, type="dir")]


def words(*known: str) -> "Callable[[click.Context, click.Parameter, str], Items]":
    """Any of these."""
    return lambda _, __, begun: _offered(begun, lambda: known)


def _offered(begun: str, names: Callable[[], Iterable[str]]) -> "Items":
    from click.shell_completion import CompletionItem

    try:
        known = list(names())
    except GeniuzError:
        return []
    begins = begun.casefold()
    return [
        CompletionItem(name)
        for name in known
        if name.casefold().startswith(begins) and name.isprintable()
    ]
