"""geniuzfs diff"""

import difflib

import click

from geniuzfs import runtime
from geniuzfs.cli import cli, here, naming, output


@cli.command()
@click.argument("path")
@click.argument("versions", nargs=-1, metavar="[VERSION [OTHER]]")
@naming.in_folder("In this folder; PATH is counted from its top.")
@output.as_json
def diff(path: str, versions: tuple[str, ...], name: str | None, as_json: bool) -> None:
    """Compare a version of a file with what is there now, or with another.

    VERSION is a name that "geniuzfs history PATH" shows, or its beginning; without one, the last.
    """
    if len(versions) > 2:
        raise click.UsageError("two versions can be compared, not more")
    geniuz = runtime.geniuz()
    (one, old), (other, new) = geniuz.histories.texts(name, path, versions, here())
    lines = _lines(old, new, one, other)
    if as_json:
        output.tell_json({"from": one, "to": other, "same": old == new, "diff": lines})
    elif lines:
        output.tell("\n".join(lines))


def _lines(old: bytes, new: bytes, one: str, other: str) -> list[str]:
    if old == new:
        return []
    if b"\0" in old or b"\0" in new:
        return [f"{one} and {other} are not text, and differ"]
    before, after = (text.decode("utf-8", "surrogateescape").split("\n") for text in (old, new))
    return list(difflib.unified_diff(before, after, one, other, lineterm=""))
