"""geniuzfs mcp: the server for agents, and its entry in their clients' configuration."""

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from geniuzfs.cli import cli, here, naming, output
from geniuzfs.errors import GeniuzError, UsageError

if TYPE_CHECKING:
    from geniuzfs.mcp.clients import Client
    from geniuzfs.mcp.door import Door

PORT = 8321

_client = click.option(
    "--client",
    "names",
    metavar="NAME",
    multiple=True,
    shell_complete=lambda *asked: naming.words(*_clients())(*asked),
    help="This client, by the name that status shows; several times. Default: all that are here.",
)


@cli.group()
def mcp() -> None:
    """Serve your folders to agents, by the Model Context Protocol."""


@mcp.command()
@naming.in_folder("Serve this folder, and no other.")
@click.option("--read-only", is_flag=True, help="Offer nothing that changes anything.")
@click.option("--http", "by_http", is_flag=True, help="By HTTP on this machine, not by stdio.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Of --http. Default: {PORT}; 0: any.")
@click.option(
    "--token-file",
    type=Path,
    help="Of --http: holds the token that clients must send; made if it is not there.",
)
@click.option("--json", "as_json", is_flag=True, help="Of --http: say where in one JSON object.")
def serve(
    name: str | None,
    read_only: bool,
    by_http: bool,
    port: int | None,
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Serve one client on standard input and output, until it closes them.

    With --http serve any number at http://127.0.0.1:8321/mcp: each must send the token, which is
    printed where it is in no file.
    """
    if find_spec("mcp") is None:
        raise UsageError("the MCP server needs its extra: pip install 'geniuzfs[mcp]'")
    if not by_http and (port is not None or token_file is not None or as_json):
        raise UsageError("--port, --token-file and --json go with --http")
    from geniuzfs.mcp import starting

    def door() -> "Door":
        return _door(name, read_only)

    if by_http:
        _serve_http(door(), PORT if port is None else port, token_file, as_json)
    else:
        if os.isatty(0):
            output.complain("waiting for a client: geniuzfs mcp install has them start this")
        starting.serve(door, read_only=read_only, at_once=name is not None)


@mcp.command()
@_client
@naming.in_folder("Serve this folder, and no other.")
@click.option("--read-only", is_flag=True, help="Offer nothing that changes anything.")
@output.as_json
def install(names: tuple[str, ...], name: str | None, read_only: bool, as_json: bool) -> None:
    """Have clients start the server: put an entry into their configuration files.

    Everything else in the file stays; the file as it was is kept beside it. A file that can't be
    read without loss, such as JSON with comments, is left alone, and what to add is shown.
    """
    from geniuzfs.mcp import entries

    if name is not None:
        from geniuzfs import runtime

        name = runtime.geniuz().folder(name).name
    options = [*(["--in", name] if name is not None else []), *["--read-only"] * read_only]
    command = [*_program(), "mcp", "serve", *options]
    home = os.environ.get("GENIUZ_HOME")
    environment = {"GENIUZ_HOME": os.path.abspath(home)} if home else {}

    def put(client: "Client", file: Path) -> str:
        made = entries.entry(client, command, environment)
        return "added" if entries.install(client, file, made) else "unchanged"

    _each(names, put, as_json)


@mcp.command()
@_client
@output.as_json
def uninstall(names: tuple[str, ...], as_json: bool) -> None:
    """Take the entry out of clients' configuration files."""
    from geniuzfs.mcp import entries

    def take(client: "Client", file: Path) -> str:
        return "removed" if entries.uninstall(client, file) else "unchanged"

    _each(names, take, as_json)


@mcp.command()
@output.as_json
def status(as_json: bool) -> None:
    """Show each client's configuration file, and the entry in it."""
    from geniuzfs.mcp import entries
    from geniuzfs.mcp.clients import CLIENTS

    rows: list[dict[str, Any]] = []
    for client in CLIENTS.values():
        file = client.file(os.environ)
        try:
            looked = entries.look(client, file)
            state = "installed" if looked.entry else "not installed" if looked.exists else "no file"
            command = _command(looked.entry)
        except GeniuzError as error:
            state, command = f"can't be read: {error}", []
        rows.append({"client": client.name, "file": str(file), "state": state, "command": command})
    if as_json:
        output.tell_json({"clients": rows})
    else:
        shown = [" ".join(row["command"]) for row in rows]
        output.table(
            [
                (row["client"], row["state"], row["file"], command)
                for row, command in zip(rows, shown, strict=True)
            ]
        )


def _door(name: str | None, read_only: bool) -> "Door":
    from geniuzfs import logs, runtime
    from geniuzfs.mcp.door import Door

    logs.set_up(debug=False)
    geniuz = runtime.geniuz()
    geniuz.begin()
    only = None if name is None else geniuz.folder(name).identity.id
    return Door(geniuz, only, here(), read_only=read_only)


def _serve_http(door: "Door", port: int, token_file: Path | None, as_json: bool) -> None:
    from geniuzfs.mcp import http, server

    secret = http.token(token_file)
    listening = http.listening(port)
    url = f"http://{http.HOST}:{listening.getsockname()[1]}{http.PATH}"

    def tell() -> None:
        if as_json:
            output.tell_json({"url": url, "token": None if token_file else secret})
        else:
            shown = f"token: in {token_file}" if token_file else f"Authorization: Bearer {secret}"
            output.tell(f"serving at {url}\n{shown}")

    http.serve(server.made(door), listening, secret, tell)


def _each(names: tuple[str, ...], do: Callable[["Client", Path], str], as_json: bool) -> None:
    """Do it for every client that is meant, and tell what came of it; the first that is refused
    gives the exit code.
    """
    from geniuzfs.mcp.clients import CLIENTS

    for unknown in set(names) - CLIENTS.keys():
        raise UsageError(f"there is no client {unknown!r}: it may be {', '.join(CLIENTS)}")
    rows: list[dict[str, str]] = []
    refused: GeniuzError | None = None
    for client in CLIENTS.values():
        file = client.file(os.environ)
        if client.name in names or (not names and _is_here(client, file)):
            try:
                rows.append({"client": client.name, "did": do(client, file), "file": str(file)})
            except GeniuzError as error:
                refused = refused or error
                output.complain(f"{client.name}: {error}")
    if not rows and refused is None:
        raise UsageError(f"no client is here: name one: --client {', '.join(CLIENTS)}")
    if as_json:
        output.tell_json({"clients": rows})
    else:
        output.table([(row["client"], row["did"], row["file"]) for row in rows])
    if refused is not None:
        sys.exit(refused.exit_code)


def _clients() -> list[str]:
    from geniuzfs.mcp.clients import CLIENTS

    return list(CLIENTS)


def _is_here(client: "Client", file: Path) -> bool:
    """Whether a client seems to be installed: it has its file, or a directory of its own."""
    return file.exists() or (file.parent.exists() and file.parent != Path.home())


def _program() -> list[str]:
    """What starts this program, whatever directory and PATH a client has."""
    started = Path(sys.argv[0])
    if started.name == "geniuzfs" and os.access(started, os.X_OK):
        return [str(started.absolute())]  # not where a link points: that may go at an upgrade
    return [sys.executable, "-m", "geniuzfs"]


def _command(entry: dict[str, Any] | None) -> list[str]:
    if entry is None:
        return []
    arguments = entry.get("args", [])
    held = arguments if isinstance(arguments, list) else [arguments]
    return [str(part) for part in (entry.get("command", ""), *held)]
