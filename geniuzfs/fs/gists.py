"""What kept memories are called in `.memories/`, and what a new name there asks for.

Pure. Promises: a name of at most 255 bytes, cut between characters, that no terminal acts on and
that says which memory it is to whoever has only the name.
"""

import re
from datetime import datetime
from typing import NamedTuple

from geniuzfs.addresses import SHORT, Address
from geniuzfs.errors import UsageError
from geniuzfs.model import NAME_MAX, Memory
from geniuzfs.store.memories import kept_ns

SUFFIX = ".md"

_ID = r"[0-9A-Fa-f]{8}[0-9A-Fa-f-]{0,28}"
_NAMED = re.compile(rf"(?:.*~)?(?:({_ID}):)?({_ID})(?:\.md)?", re.DOTALL)
_REPLY = re.compile(rf"[Rr][Ee]:? ({_ID})(?:$|[: ]\s*)(.*)", re.DOTALL)

# The slash, what a terminal would act on or show the wrong way round, and halves of a character.
_UNSAFE = re.compile(r"[/\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Wanted(NamedTuple):
    """What the name of a new file asks for. `parent`: the ID of the memory to be continued."""

    gist: str
    parent: str | None


def name(memory: Memory) -> bytes:
    """`2026-10-06 Priya signs~3487B9B0.md`, of the local day."""
    day = datetime.fromtimestamp(kept_ns(memory.created_at) / 1e9).date().isoformat()
    end = f"~{_UNSAFE.sub('_', memory.id[:SHORT].upper())}{SUFFIX}".encode()
    gist = _UNSAFE.sub("_", " ".join(memory.gist.split()))
    begin = f"{day} {gist}".encode()[: NAME_MAX - len(end)].decode("utf-8", "ignore")
    return begin.encode() + end


def named(name_: bytes) -> Address | None:
    """The memory that a name there means, as far as it says so: `3487B9B0`, anything that ends in
    `~3487B9B0`, or `13625F6B:3487B9B0`, each with or without `.md`.
    """
    found = _NAMED.fullmatch(name_.decode("utf-8", "replace"))
    return Address((found[1] or "").upper(), found[2].upper()) if found else None


def wanted(name_: bytes) -> Wanted:
    """A new name is the gist of what is written to it. `re 3487B9B0 and so on` continues that
    memory; without more, the gist is made of the text. Raises UsageError for what is not UTF-8.
    """
    try:
        text = name_.decode().removesuffix(SUFFIX)
    except UnicodeDecodeError as error:
        raise UsageError("a gist must be UTF-8") from error
    reply = _REPLY.fullmatch(text)
    return Wanted(reply[2], reply[1]) if reply else Wanted(text, None)
