"""What a kept memory is called: its address, or the beginning of its ID. Pure."""

import re
from typing import NamedTuple

SHORT = 8
"""Characters of an ID that people are shown."""

LEAST = 4
"""Characters of an ID that name a memory at least, where nothing else could be meant."""

_ID = rf"[0-9A-Fa-f]{{{LEAST}}}[0-9A-Fa-f-]{{0,{36 - LEAST}}}"
_ADDRESS = re.compile(rf"(?:({_ID}):)?({_ID})")


class Address(NamedTuple):
    """Beginnings of a folder's ID ("": any folder) and of a memory's, in upper case."""

    folder: str
    memory: str


def address(text: str) -> Address | None:
    """`13625F6B:3487B9B0`, or an ID or its beginning alone; None for other text."""
    found = _ADDRESS.fullmatch(text)
    return Address((found[1] or "").upper(), found[2].upper()) if found else None


def is_meant(text: str) -> bool:
    """Whether a question of this text alone means a memory and not the word: `cafe` is one."""
    found = address(text)
    return found is not None and len(found.memory) >= SHORT
