"""What an erased text may have left in the raw bytes of a database, and how to look for it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from geniuzfs.store import vectors
from geniuzfs.store.connection import Database


def at_once(step: Callable[[], None]) -> None:
    """For who has the folder alone: nothing is tried twice."""
    step()


def raw(directory: Path) -> bytes:
    """Every byte of the database, its log and whatever else lies beside them."""
    return b"\n".join(each.read_bytes() for each in sorted(directory.glob("memory.db*")))


def traces(database: Database, texts: list[str]) -> dict[str, bytes]:
    """What is kept of these texts, in each of its forms."""
    found: dict[str, bytes] = {}
    for text in texts:
        found[text] = text.encode()
        for word in text.replace(".", "").split():
            if len(word) > 5:
                found[word] = word.encode()
        vector = database.view.row(
            "SELECT vector FROM vectors JOIN passages ON passages.id = passage WHERE text = ?",
            (text,),
        )
        if vector is not None:
            found["vector16"] = bytes(vector[0])
            numbers = np.frombuffer(vector[0], "<f2").astype(np.float32).reshape(1, -1)
            found["vector8"] = vectors.coded(numbers)[1].tobytes()
    return found
