"""The entry of this server in a client's configuration file: put in, taken out, looked at.

Hides: JSON and TOML. Promises: everything else in the file means what it meant before, which is
checked before anything is written; the file is replaced whole or not at all, and as it was before
it lies beside it (`BACKUP`); comments in TOML stay. Refuses: a file that it can't read without
loss, as one of JSON with comments, and says what to add by hand; one that its client writes
meanwhile.
"""

import json
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from geniuzfs import durable
from geniuzfs.errors import Busy, UsageError
from geniuzfs.mcp.clients import Client

NAME = "geniuzfs"
"""The entry's name."""

BACKUP = ".before-geniuzfs"
"""What the file's name is followed by in that of its backup."""

_INDENT = 2


class Looked(NamedTuple):
    """What a file says."""

    exists: bool
    entry: dict[str, Any] | None
    """Ours, if it is there."""


def entry(client: Client, command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """The entry that starts `command`."""
    typed = {"type": "stdio"} if client.typed else {}
    held = {"env": environment} if environment else {}
    return {**typed, "command": command[0], "args": command[1:], **held}


def look(client: Client, file: Path) -> Looked:
    """Raises UsageError for a file that can't be read."""
    text = _text(file)
    if text is None:
        return Looked(exists=False, entry=None)
    servers = _values(client, file, text).get(client.key)
    found = servers.get(NAME) if isinstance(servers, dict) else None
    return Looked(exists=True, entry=found if isinstance(found, dict) else None)


def install(client: Client, file: Path, made: dict[str, Any]) -> bool:
    """Have the file hold that entry, and whether it did not before. Raises UsageError and Busy."""
    by_hand = f"; add it to {client.key!r} by hand: {json.dumps({NAME: made})}"
    return _change(client, file, made, by_hand)


def uninstall(client: Client, file: Path) -> bool:
    """Have the file hold no entry of ours, and whether it did. Raises UsageError and Busy."""
    if _text(file) is None:
        return False
    return _change(client, file, None, f"; take {NAME!r} out of {client.key!r} by hand")


def _change(client: Client, file: Path, made: dict[str, Any] | None, by_hand: str) -> bool:
    file = file.resolve()  # not the link to it that a collection of dotfiles has put there
    text = _text(file)
    try:
        before = _values(client, file, text or "")
        wanted = _with(client, file, before, made)
        if wanted == before:
            return False
        held = text or ""
        written = _in_toml(client, held, wanted, made) if client.toml else _in_json(held, wanted)
        if _values(client, file, written) != wanted:
            raise UsageError(f"{file} can't be changed without loss")
    except UsageError as error:
        raise UsageError(f"{error}: nothing was changed{by_hand}") from error
    with durable.translating(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
    if text is not None:
        durable.write(file.with_name(file.name + BACKUP), text)
    if _text(file) != text:
        raise Busy(f"{file} was written just now by somebody else: nothing was changed, try again")
    durable.write(file, written)
    return True


def _text(file: Path) -> str | None:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} can't be read: {error}") from error


def _values(client: Client, file: Path, text: str) -> dict[str, Any]:
    """What a file says, as values. An empty one says nothing. Raises UsageError."""
    if not text.strip():
        return {}
    try:
        values = tomllib.loads(text) if client.toml else _json(text)
    except (ValueError, RecursionError) as error:
        kind = "TOML" if client.toml else "plain JSON (comments?)"
        raise UsageError(f"{file} is no {kind}: {error}") from error
    if not isinstance(values, dict):
        raise UsageError(f"{file} is no object")
    return values


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key stands twice in an object")
    return values


def _with(
    client: Client, file: Path, before: dict[str, Any], made: dict[str, Any] | None
) -> dict[str, Any]:
    """What the file is to say."""
    servers = before.get(client.key, {})
    if not isinstance(servers, dict):
        raise UsageError(f"{file}: {client.key!r} is no object")
    others = {name: held for name, held in servers.items() if name != NAME}
    if made is not None:
        return {**before, client.key: {**servers, NAME: made}}
    if NAME not in servers:
        return before
    if client.toml and not others:  # an empty table may have no line of its own
        return {key: held for key, held in before.items() if key != client.key}
    return {**before, client.key: others}


def _in_json(text: str, wanted: dict[str, Any]) -> str:
    """`wanted`, indented as `text` is."""
    _, _, second = text.partition("\n")
    blank = second[: len(second) - len(second.lstrip(" \t"))]
    return json.dumps(wanted, ensure_ascii=False, indent=blank or _INDENT) + "\n"


def _in_toml(client: Client, text: str, wanted: dict[str, Any], made: dict[str, Any] | None) -> str:
    """`text` with the entry, or without it."""
    import tomlkit  # keeps comments and order
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
        if client.key not in document:
            document[client.key] = tomlkit.table(is_super_table=True)
        servers: Any = document[client.key]
        if client.key not in wanted:
            del document[client.key]
        elif made is None:
            del servers[NAME]
        else:
            servers[NAME] = made
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise UsageError(f"the TOML can't be changed: {error}") from error
