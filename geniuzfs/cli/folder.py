"""geniuzfs folder: folders are listed, made, named, put away and brought back."""

from pathlib import Path
from typing import Any

import click

from geniuzfs import runtime
from geniuzfs.api import Folder, Geniuz
from geniuzfs.cli import cli, here, naming, output
from geniuzfs.errors import GeniuzError

_named = click.argument("name", shell_complete=naming.folders)
_directory = click.argument(
    "directory", metavar="DIR", type=Path, shell_complete=naming.directories
)


@cli.group()
def folder() -> None:
    """Arrange your folders.

    A folder is a directory with a memory.db, in the data directory or in one that was added.
    NAME is a folder's name, whatever its case, or the path of its directory.

    A command that is given no name means the first that applies: the folder of GENIUZ_DB,
    the one that a file .geniuz-folder here or above names, the one chosen by "folder use",
    "My memory". "recall" then asks the one that was chosen so, or all folders where none was;
    "learn", "check" and "mount" take all of them.
    """


@folder.command("list")
@click.option("--archived", is_flag=True, help="Those that were archived, instead.")
@output.as_json
def list_folders(archived: bool, as_json: bool) -> None:
    """Show the folders, the pinned ones first; * marks the one that is meant here."""
    geniuz = runtime.geniuz()
    arranging = geniuz.arranging
    folders = arranging.archived() if archived else geniuz.folders()
    not_used = [] if archived else arranging.seen().warnings()
    rows = _objects(geniuz, folders)
    if as_json:
        output.tell_json({"folders": rows, "not_used": not_used})
        return
    if output.to_people():
        output.table([_columns(row) for row in rows])
        rows = []
    for row in rows:
        mark, pinned = "*" if row["meant"] else " ", " (pinned)" if row["pinned"] else ""
        about = f": {row['description']}" if row["description"] else ""
        output.tell(f"{mark} {row['name']}{about}{pinned}  {row['path']}")
    for line in not_used:
        output.tell(output.bad(f"! {line}"))


def _columns(row: dict[str, Any]) -> tuple[str, ...]:
    name, pinned = output.heading(row["name"]), "pinned" if row["pinned"] else ""
    mark, path = output.good("*" if row["meant"] else " "), output.dim(row["path"])
    return mark, name, row["description"], pinned, path


@folder.command()
@click.argument("name")
@click.option(
    "--at",
    "directory",
    metavar="DIR",
    type=Path,
    shell_complete=naming.directories,
    help="In this directory, which is added; else in the data directory.",
)
@output.as_json
def new(name: str, directory: Path | None, as_json: bool) -> None:
    """Make a folder called NAME."""
    geniuz = runtime.geniuz()
    geniuz.begin()
    made = geniuz.arranging.new(name, directory)
    _tell(geniuz, [made], as_json, f"made: {made.path}")


@folder.command()
@_directory
@output.as_json
def add(directory: Path, as_json: bool) -> None:
    """Look for folders in DIR too, and in the directories in it."""
    geniuz = runtime.geniuz()
    geniuz.begin()
    added = geniuz.arranging.add(directory)
    _tell(geniuz, added, as_json, "\n".join(f"added: {one.name}  {one.path}" for one in added))


@folder.command()
@click.argument("name", required=False, shell_complete=naming.folders)
@click.option("--none", "forget", is_flag=True, help="Choose none any more.")
@output.as_json
def use(name: str | None, forget: bool, as_json: bool) -> None:
    """Choose the folder that commands mean; without NAME, show which one they mean here."""
    geniuz = runtime.geniuz()
    if name is not None and forget:
        raise click.UsageError("give a NAME or --none, not both")
    if name is not None or forget:
        geniuz.arranging.use(None if name is None else geniuz.arranging.called(name))
    meant = geniuz.arranging.meant(None, here())
    _tell(geniuz, [meant], as_json, f"commands here mean: {meant.name}")


@folder.command()
@click.argument("text", required=False)
@naming.in_folder("This folder.")
@output.as_json
def describe(text: str | None, name: str | None, as_json: bool) -> None:
    """Say what a folder is about; without TEXT, show it."""
    geniuz = runtime.geniuz()
    meant = geniuz.arranging.meant(name, here())
    if text is not None:
        meant = geniuz.arranging.describe(meant, text)
    _tell(geniuz, [meant], as_json, f"{meant.name}: {meant.identity.description}")


@folder.command()
@_named
@click.argument("new_name", metavar="NEW")
@output.as_json
def rename(name: str, new_name: str, as_json: bool) -> None:
    """Call the folder NAME NEW; its directory keeps its own name."""
    geniuz = runtime.geniuz()
    renamed = geniuz.arranging.rename(geniuz.arranging.called(name), new_name)
    _tell(geniuz, [renamed], as_json, f"renamed: {renamed.name}")


@folder.command()
@_named
@click.option("--off", is_flag=True, help="Not any more.")
@output.as_json
def pin(name: str, off: bool, as_json: bool) -> None:
    """Have a folder come first in every list."""
    geniuz = runtime.geniuz()
    pinned = geniuz.arranging.called(name)
    geniuz.arranging.pin(pinned, pinned=not off)
    _tell(geniuz, [pinned], as_json, f"{'not pinned' if off else 'pinned'}: {pinned.name}")


@folder.command()
@_named
@_directory
@output.as_json
def move(name: str, directory: Path, as_json: bool) -> None:
    """Move a folder's directory into DIR, on the same disk or another.

    To another disk it is copied and compared; the original is sealed against writes and put into
    archive/ beside it, with whatever else its directory holds. If this is killed, the next
    command finishes or undoes it.
    """
    geniuz = runtime.geniuz()
    with output.telling("copying") as told:
        moved = geniuz.arranging.move(geniuz.arranging.called(name), directory, told)
    _tell(geniuz, [moved], as_json, f"moved: {moved.name}  {moved.path}")


@folder.command()
@_named
@output.as_json
def archive(name: str, as_json: bool) -> None:
    """Put a folder away, into archive/ beside it. Nothing in it changes."""
    geniuz = runtime.geniuz()
    put_away = geniuz.arranging.called(name)
    directory = geniuz.arranging.archive(put_away)
    put_away = put_away._replace(path=directory / put_away.path.name)
    _tell(geniuz, [put_away], as_json, f"archived: {directory}")


@folder.command()
@click.argument("name", shell_complete=naming.archived)
@output.as_json
def restore(name: str, as_json: bool) -> None:
    """Bring an archived folder back."""
    geniuz = runtime.geniuz()
    restored = geniuz.arranging.restore(name)
    _tell(geniuz, [restored], as_json, f"restored: {restored.name}  {restored.path}")


def _tell(geniuz: Geniuz, folders: list[Folder], as_json: bool, said: str) -> None:
    if as_json:
        output.tell_json({"folders": _objects(geniuz, folders)})
    else:
        output.tell(said)


def _objects(geniuz: Geniuz, folders: list[Folder]) -> list[dict[str, Any]]:
    try:
        meant = geniuz.arranging.meant(None, here()).path
    except GeniuzError:  # what is meant is not there: commands that need it say so
        meant = None
    pinned = geniuz.arranging.pinned()
    return [
        {
            "name": one.name,
            "uuid": one.identity.id,
            "description": one.identity.description,
            "created_at": one.identity.created_at,
            "path": str(one.path),
            "pinned": one.identity.id in pinned,
            "meant": one.path == meant,
        }
        for one in folders
    ]
