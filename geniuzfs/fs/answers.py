"""What the generated files need somebody to answer."""

from typing import Protocol

from geniuzfs.model import FolderId, InodeNumber, Scope


class Answers(Protocol):
    """Answers questions. Every method blocks, is called in a thread, several at once, and
    must not touch the mount.
    """

    def answer(self, scope: Scope, query: str) -> bytes:
        """The answer as text. Raises UsageError for a malformed operator."""

    def found(self, scope: Scope, query: str) -> list[bytes]:
        """The files of the same answer, best first, each once: paths from the folder's top, or,
        where `scope` is every folder, from the folder's name. Raises UsageError.
        """

    def status_text(self, scope: Scope) -> bytes:
        """What is mounted, learned, waiting: text."""

    def state(self, folder: FolderId, inode: InodeNumber) -> bytes:
        """What learning has made of a file: one word."""
