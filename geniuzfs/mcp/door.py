"""Which folder a call means.

Hides: that a server may be kept to one folder, whatever it is called by now; and that the directory
in which the client started it may have chosen one. Decides nothing else: api.Geniuz does.
"""

import logging
from pathlib import Path
from threading import Lock

from geniuzfs.api import Folder, Geniuz
from geniuzfs.api.opened import Opened
from geniuzfs.errors import GeniuzError, NotFound
from geniuzfs.mcp.schemas import Arguments
from geniuzfs.model import FolderId

_log = logging.getLogger(__name__)


class Door:
    """What all calls of one server share. May be used from several threads.

    `only`: the folder that it is kept to; `here`: the directory that it was started in.
    """

    def __init__(
        self,
        geniuz: Geniuz,
        only: FolderId | None = None,
        here: Path | None = None,
        *,
        read_only: bool = False,
    ) -> None:
        self.geniuz = geniuz
        self.only = only
        self.here = here
        self.read_only = read_only
        self._lock = Lock()
        self._opened: dict[FolderId, Opened] = {}

    def name(self, given: Arguments) -> str | None:
        """The name of the folder that is meant, None: the one that was chosen. Raises NotFound."""
        if self.only is None:
            named: str | None = getattr(given, "folder", None)
            return named
        return self._only(self.only).name

    def folder(self, given: Arguments) -> Folder:
        """The folder that is meant. Raises as Arranging.meant."""
        if self.only is not None:
            return self._only(self.only)
        return self.geniuz.arranging.meant(self.name(given), self.here)

    def opened(self, given: Arguments) -> Opened:
        """The folder that is meant, held open. Raises as `folder`."""
        return self.held(self.folder(given))

    def held(self, folder: Folder) -> Opened:
        """That folder, held open. Raises what opening it does."""
        id_ = folder.identity.id
        with self._lock:
            if id_ not in self._opened:
                self._opened[id_] = self.geniuz.opened_as(folder)
            return self._opened[id_]

    def close(self) -> None:
        """Give back what calls have opened."""
        for opened in self._opened.values():
            opened.close()
        self.geniuz.close()

    def folders(self) -> list[Folder]:
        """Those that can be meant."""
        return self.geniuz.folders() if self.only is None else [self._only(self.only)]

    def warm(self) -> None:
        """Have the folders' index in memory before the first question: 0.1 s at 10,000 passages,
        most of it numpy. The model is not started: a client may start a server and never ask.
        """
        try:
            query = self.geniuz.parse("?", [("mode", "words"), ("limit", "1")])
            self.geniuz.recall(self.name(Arguments()), query, here=self.here)
        except GeniuzError as error:
            _log.info("not warmed: %s", error)
        except Exception:  # noqa: BLE001 - whoever asks is told; the server must not end of it
            _log.exception("not warmed")

    def _only(self, id_: FolderId) -> Folder:
        for folder in self.geniuz.folders():
            if folder.identity.id == id_:
                return folder
        raise NotFound("the folder that this server is kept to is not there any more")
