"""Folders are replicated as they change, by Litestream, and brought back from there.

Promises: what was saved longer ago than a second or two is in the replica, whatever is killed.
Refuses: to replicate into a mount, and to guess which folder of a replica is meant.
"""

import uuid
from contextlib import suppress
from pathlib import Path

from geniuzfs import durable
from geniuzfs.api.arranging import Arranging
from geniuzfs.errors import NotFound, UsageError
from geniuzfs.folders import registry, replicas, restoring
from geniuzfs.folders.restoring import Restored
from geniuzfs.model import FolderId
from geniuzfs.ports import Clock
from geniuzfs.store import copying


class Replicating:
    """The use cases, on the data directory `home`."""

    def __init__(self, home: Path, clock: Clock, arranging: Arranging) -> None:
        self._home = home
        self._clock = clock
        self._arranging = arranging

    def command(self, url: str) -> list[str]:
        """What replicates every folder there is now to `url`, until it is ended: a program and its
        arguments. Writes the configuration that it reads. Raises UsageError and NotFound.
        """
        directory = self._home / replicas.DIRECTORY
        text = replicas.configuration(self._arranging.seen().folders, url, self._home)
        program = replicas.program()
        with durable.translating(directory):
            directory.mkdir(mode=0o700, exist_ok=True)
        durable.write(directory / "litestream.yml", text)
        return [
            program, "replicate", "-config", str(directory / "litestream.yml"), "-no-expand-env"
        ]  # fmt: skip

    def restore(
        self, url: str, which: str | None, until_ns: int | None, name: str | None
    ) -> Restored:
        """Make a folder of what the replica holds of the folder `which`, a UUID or the name of one
        that is here or in the replica, as it is or as it was at `until_ns`; of the only one, where
        none is named. See folders.restoring. Raises NotFound and UsageError.
        """
        id_ = self._id(url, which)

        def make(path: Path) -> None:
            fetched = path.with_name(f"{path.name}-replica")  # goes with what is beside the copy
            replicas.restore(url, id_, until_ns, fetched, self._home)
            copying.restore(fetched, path)

        return restoring.restore(self._home, self._clock, make, name)

    def _id(self, url: str, which: str | None) -> FolderId:
        held = replicas.held(url)
        if which is None:
            if held is not None and len(held) == 1:
                return held[0]
            several = "it holds " + (", ".join(held) or "none") if held is not None else ""
            raise UsageError(f"say which folder of the replica with --in: {several or 'its UUID'}")
        with suppress(ValueError):
            return FolderId(str(uuid.UUID(which)).upper())
        try:
            return registry.named(self._arranging.seen(), which).identity.id
        except NotFound as error:
            known = "" if held is None else f": it holds {', '.join(held) or 'none'}"
            raise NotFound(
                f"{error}; a folder that is not here is named by its UUID{known}"
            ) from None
