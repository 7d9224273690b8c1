"""Which text of a file this program has seen: whether what it puts replaces one that it never read.

Hides: what counts as having seen, and for how long that is of interest. Promises: a put is blind
where another process wrote what is there, within WINDOW_SECONDS, and this one has seen another text
of that file; or has seen none, while the one that wrote still runs and neither has started the
other. Refuses: to guess where it is not known who wrote: that is never blind.
"""

from geniuzfs.api.filed import version
from geniuzfs.model import NOBODY, Inode, InodeNumber, Writer
from geniuzfs.processes import Process, Processes
from geniuzfs.store import content, versions
from geniuzfs.store.transactions import View

WINDOW_SECONDS = 3600
"""As in a mount (fs.readers)."""

_MOST = 10_000


class Witness:
    """What one holder of a folder has read and written. May be used from several threads."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._processes = Processes()
        self._seen: dict[InodeNumber, str] = {}

    @property
    def writer(self) -> Writer:
        """Who this is."""
        return self._process.writer

    def saw(self, file: InodeNumber, version_: str) -> None:
        """It has read or written this."""
        if len(self._seen) >= _MOST:
            self._seen.clear()
        self._seen[file] = version_

    def is_blind(self, view: View, file: Inode | None, now_ns: int) -> bool:
        """Whether to put another text there would replace what it never saw."""
        by = NOBODY if file is None else versions.written_by(view, file.number)
        if file is None or not by.pid or by[1:] == self.writer[1:]:
            return False
        if now_ns - file.mtime_ns > WINDOW_SECONDS * 10**9:
            return False
        seen = self._seen.get(file.number)
        if seen is not None:
            return seen != version(content.read(view, file.number), file.size)
        other = self._processes.of(by.pid)
        return other.writer[1:] == by[1:] and not self._process.is_kin(other)
