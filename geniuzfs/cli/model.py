"""geniuzfs model: which model turns texts into vectors."""

from pathlib import Path

import click

from geniuzfs.cli import cli, output
from geniuzfs.config import Config


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
    for one in listed:
        place = str(one.directory or models.DEFAULT_NAME)
        trouble = f": {one.missing}" if one.missing else ""
        click.echo(f"{'*' if one.chosen else ' '} {one.id}  {place}{trouble}")


@model.command()
# Not click.Path: "default" is not one, and models.use says better what is wrong.
@click.argument("directory", metavar="DIR|default")
def use(directory: str) -> None:
    """Use the model in DIR, or the one that is shipped.

    DIR holds tokenizer.json, one model*.onnx and model.json, the model's card. What is
    known is embedded anew in the background; meanwhile the earlier model answers.
    """
    from geniuzfs.embed import models

    place = None if directory == models.DEFAULT_NAME else Path(directory)
    click.echo(f"chosen: {models.use(Config.from_environment().home, place)}")


@model.command()
@click.argument("name")
def download(name: str) -> None:
    """Fetch the model NAME from Hugging Face into the data directory; it is not chosen yet.

    Needs huggingface-hub: pip install "geniuzfs[download]"
    """
    from geniuzfs.embed import download as downloads

    place = downloads.download(Config.from_environment().home, name)
    click.echo(f"{place}\nto use it: geniuzfs model use '{place}'")
