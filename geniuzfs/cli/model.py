"""geniuzfs model: which model turns texts into vectors."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from geniuzfs.cli import cli, naming, output
from geniuzfs.config import Config

if TYPE_CHECKING:
    from geniuzfs.embed.models import Listed


@cli.group()
def model() -> None:
    """Choose the model that finds by meaning."""


@model.command("list")
@output.as_json
def list_models(as_json: bool) -> None:
    """Show the models that can be chosen; the chosen one is marked."""
    from geniuzfs.embed import models

    listed = models.listed(Config.from_environment().home)
    if as_json:
        rows = [
            {**one._asdict(), "directory": one.directory and str(one.directory)} for one in listed
        ]
        output.tell_json({"models": rows})
        return
    for one in [] if output.to_people() else listed:
        place = str(one.directory or models.DEFAULT_NAME)
        trouble = f": {one.missing}" if one.missing else ""
        output.tell(f"{'*' if one.chosen else ' '} {one.id}  {place}{trouble}")
    if output.to_people():
        output.table([_columns(one) for one in listed])


def _columns(one: "Listed") -> tuple[str, ...]:
    place = output.dim(str(one.directory or "default"))
    return (
        output.good("*" if one.chosen else " "),
        output.heading(one.id),
        place,
        output.bad(one.missing or ""),
    )


@model.command()
# Not click.Path: "default" is not one, and models.use says better what is wrong.
@click.argument("directory", metavar="DIR|default", shell_complete=naming.directories)
@output.as_json
def use(directory: str, as_json: bool) -> None:
    """Use the model in DIR, or the one that is shipped.

    DIR holds tokenizer.json, one model*.onnx and model.json, the model's card. What is
    known is embedded anew in the background; meanwhile the earlier model answers.
    """
    from geniuzfs.embed import models

    place = None if directory == models.DEFAULT_NAME else Path(directory)
    chosen = models.use(Config.from_environment().home, place)
    if as_json:
        output.tell_json({"model": chosen})
    else:
        output.tell(f"chosen: {chosen}")


@model.command()
@click.argument("name")
@output.as_json
def download(name: str, as_json: bool) -> None:
    """Fetch the model NAME from Hugging Face into the data directory; it is not chosen yet.

    Needs huggingface-hub: pip install "geniuzfs[download]"
    """
    from geniuzfs.embed import download as downloads

    place = downloads.download(Config.from_environment().home, name)
    if as_json:
        output.tell_json({"name": name, "directory": str(place)})
    else:
        output.tell(f"{place}\nto use it: geniuzfs model use '{place}'")
