"""geniuzfs forget"""

import sys
from typing import TYPE_CHECKING

import click

from geniuzfs import runtime
from geniuzfs.api import Geniuz
from geniuzfs.cli import cli, here, naming, output
from geniuzfs.errors import UsageError

if TYPE_CHECKING:
    from geniuzfs.api.forgetting import Forgotten


@cli.command()
@click.argument("path", required=False)
@click.option("--memory", "id_", metavar="ID", help="A kept memory: its address, or its ID.")
@naming.in_folder("In this folder; PATH is counted from its top.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@output.as_json
def forget(path: str | None, id_: str | None, name: str | None, yes: bool, as_json: bool) -> None:
    """Erase a file, a directory or a kept memory for good.

    PATH is one in a mount, or from the top of the folder that is meant; it may be removed already,
    with earlier versions that are kept. Gone are its bytes, its names (all of them, where it has
    several), its history, what was learned from it and nothing else says, and what earlier saves
    have left in the database and its log. Backups, archives and copies that were made before are
    not touched.

    Without PATH and --memory it erases what an earlier "forget" was kept from erasing.
    """
    if path is not None and id_ is not None:
        raise UsageError("name a PATH or --memory ID, not both")
    geniuz = runtime.geniuz()
    if path is None and id_ is None:
        _finish(geniuz, name, as_json)
    elif id_ is not None:
        held = geniuz.open_memory(name, id_, here=here())
        _ask(f"the memory {held.address} ({held.memory.gist[:60]})", yes)
        _tell(geniuz.forgetting.memory(held), held.address, as_json)
    elif path is not None:
        folder, within, found = geniuz.forgetting.find(path, name, here=here())
        counted = _counted(found.files, found.directories, len(found.removed))
        _ask(f"{within} of {folder.name!r} ({counted})", yes)
        _tell(geniuz.forgetting.file(folder, within), within, as_json)


def _ask(what: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("this can't be undone: say --yes where nobody can be asked")
    click.confirm(f"Erase {output.shown(what)} for good?", abort=True, err=True)


def _finish(geniuz: Geniuz, name: str | None, as_json: bool) -> None:
    finished = geniuz.forgetting.finish(name)
    if as_json:
        output.tell_json({"finished": [folder.name for folder in finished]})
        return
    for folder in finished:
        output.tell(f"{folder.name}: what was forgotten is erased")
    if not finished:
        output.tell("nothing that was forgotten waits to be erased")


def _tell(gone: "Forgotten", what: str, as_json: bool) -> None:
    apart = [str(path) for path in gone.apart]
    if as_json:
        told = {"folder": gone.folder.name, "forgotten": what, "files": gone.files}
        told |= {"removed_before": gone.removed, "directories": gone.directories}
        told |= {"memories": gone.memories}
        output.tell_json({**told, "passages": gone.passages, "not_touched": apart})
        return
    counted = "1 memory" if gone.memories else _counted(gone.files, gone.directories, gone.removed)
    output.tell(f"erased: {what} ({counted}, {_number(gone.passages, 'passage')} of it alone)")
    output.tell("backups and copies that were made before may still hold it")
    for each in apart:
        output.tell(f"not touched: {each}")


def _counted(files: int, directories: int, removed: int) -> str:
    counted = [_number(files, "file")] if files or directories or not removed else []
    if directories:
        counted.append(f"{directories} director{'y' if directories == 1 else 'ies'}")
    if removed:
        counted.append(f"{_number(removed, 'file')} removed before")
    return ", ".join(counted)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
