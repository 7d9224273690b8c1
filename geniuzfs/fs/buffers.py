"""The bytes of one open file, shared by all who have it open.

Hides: which pieces are in memory, which were changed, which are holes.
Promises: reads see every write at once; what has been written since the last
save can be put down in one transaction, and a save that fails changes nothing.
Refuses: more content than `limit`, with nothing changed. Pure: it loads through
a function it is given and never saves by itself.
"""

from collections.abc import Callable, Mapping

from geniuzfs.errors import FileTooLarge
from geniuzfs.model import CHUNK, Piece

CLEAN_PIECES = 64
"""Unchanged pieces that are kept (4 MiB); above, the oldest are dropped and loaded again."""


WRITTEN = 16
"""Places whose writing is remembered until the next save. A text is written in one or a few."""


class _Written:
    """A place that was written, and by whom."""

    __slots__ = ("begin", "by", "end")

    def __init__(self, begin: int, end: int, by: object) -> None:
        self.begin, self.end, self.by = begin, end, by


class Buffer:
    """Bytes 0 to `size` of a file; `stored` of them are in pieces, the rest are holes."""

    __slots__ = (
        "_held",
        "_limit",
        "_load",
        "_pieces",
        "_saved_size",
        "_sent",
        "_size_before",
        "_unsaved",
        "_written",
        "_written_before",
        "changed",
        "only_grown",
        "size",
        "stored",
    )

    def __init__(
        self, size: int, held: Mapping[int, int], load: Callable[[int, int], bytes], limit: int
    ) -> None:
        """`held`: piece number → bytes in it; `load(number, bytes)` fetches one."""
        self.size = size
        self.stored = sum(held.values())
        self.changed = False
        """Something is not saved: bytes, or the size alone."""
        self.only_grown = True
        """What is not saved only follows what is."""
        self._saved_size = self._size_before = size
        self._written: list[_Written] = []
        self._written_before: list[_Written] = []
        self._held = dict(held)
        self._load = load
        self._limit = limit
        self._pieces: dict[int, Piece] = {}
        self._unsaved: set[int] = set()
        self._sent: set[int] = set()

    def read(self, offset: int, length: int) -> Piece:
        """The bytes from `offset`, at most `length`, fewer at the end of the file."""
        end = min(offset + length, self.size)
        if offset >= end:
            return b""
        first, last = offset // CHUNK, (end - 1) // CHUNK
        if first == last:
            return self._part(first, offset - first * CHUNK, end - first * CHUNK)
        parts = bytearray()
        for number in range(first, last + 1):
            begin = number * CHUNK
            parts += self._part(number, max(offset - begin, 0), min(end - begin, CHUNK))
        return parts

    def growth(self, offset: int, length: int) -> int:
        """Stored bytes that writing there would add."""
        end, added, held = offset + length, 0, self._held
        for number in range(offset // CHUNK, (end - 1) // CHUNK + 1):
            reach = min(end - number * CHUNK, CHUNK)
            have = held.get(number, 0)
            if reach > have:
                added += reach - have
        return added

    def write(self, offset: int, data: bytes, by: object = None) -> None:
        """Put `data` at `offset`, written `by` one. Raises FileTooLarge, with nothing changed."""
        if not data:
            return
        if self.stored + self.growth(offset, len(data)) > self._limit:
            raise FileTooLarge(f"a file may hold {self._limit} bytes")
        self.changed = True
        self.only_grown = self.only_grown and offset >= self._saved_size
        end, done = offset + len(data), 0
        last = self._written[-1] if self._written else None
        if last is not None and last.end == offset and last.by is by:
            last.end = end
        elif len(self._written) < WRITTEN:
            self._written.append(_Written(offset, end, by))
        while done < len(data):
            number, at = divmod(offset + done, CHUNK)
            count = min(CHUNK - at, len(data) - done)
            self._put(number, at, data if count == len(data) else data[done : done + count])
            done += count
        self.size = max(self.size, end)

    def truncate(self, size: int) -> None:
        """Cut to `size` bytes, or grow to it by a hole."""
        if size < self.size:
            number, rest = divmod(size, CHUNK)
            for gone in [n for n in self._held if n > number or (n == number and not rest)]:
                self._set(gone, b"")
            if self._held.get(number, 0) > rest:
                self._set(number, bytes(self._part(number, 0, rest)))
        self.only_grown = self.only_grown and size >= self._saved_size
        self.size = size
        self._written = [each for each in self._written if each.begin < size]
        self.changed = True

    def load_all(self) -> None:
        """Bring every piece into memory: the file is about to lose its last name."""
        for number in self._held:
            self._pieces[number] = self._piece(number)
            self._unsaved.add(number)
        self.changed = True

    def adopt(self, pieces: Mapping[int, Piece]) -> None:
        """Take pieces that were loaded already."""
        self._pieces.update(pieces)

    def replaces(self, offset: int) -> bool:
        """Whether writing there replaces something of what was saved last."""
        return offset < self._saved_size

    def disturbs(self, offset: int, end: int, by: object) -> bool:
        """Whether writing from `offset` to `end` replaces what another than `by` has written since
        then, as far as that is known: of many places, WRITTEN.
        """
        return any(
            offset < each.end and each.begin < end and each.by is not by for each in self._written
        )

    def unsaved_bytes(self) -> int:
        """The size of what a save would put down."""
        return sum(len(self._pieces[number]) for number in self._unsaved)

    def begin_save(self) -> dict[int, Piece]:
        """The pieces to put down; an empty one is to be removed. Writing may go
        on: it leaves what is handed out here alone.
        """
        pieces = {number: self._pieces[number] for number in self._unsaved}
        self._sent, self._unsaved, self.changed = self._unsaved, set(), False
        self._size_before, self._saved_size = self._saved_size, self.size
        self._written_before, self._written = self._written, []
        return pieces

    def end_save(self, *, saved: bool) -> None:
        """Close what begin_save opened; without `saved`, it is all still to be saved."""
        if not saved:
            self._unsaved |= self._sent
            self._saved_size, self.changed = self._size_before, True
            self._written = self._written_before + self._written
        elif not self.changed:
            self.only_grown = True
        self._sent = set()
        self._shed()

    def _part(self, number: int, begin: int, end: int) -> Piece:
        """Bytes `begin` to `end` of a piece, with zeros where it holds none."""
        piece = self._piece(number)
        if begin == 0 and end == len(piece) and isinstance(piece, bytes):
            return piece
        part = piece[begin:end]
        missing = end - begin - len(part)
        return part + bytes(missing) if missing else part

    def _piece(self, number: int) -> Piece:
        piece = self._pieces.get(number)
        if piece is None:
            have = self._held.get(number, 0)
            piece = self._load(number, have) if have else b""
            self._pieces[number] = piece
            self._shed()
        return piece

    def _put(self, number: int, at: int, data: bytes) -> None:
        have = self._held.get(number, 0)
        if at == 0 and len(data) >= have:
            self._set(number, data)
            return
        piece = self._piece(number)
        if isinstance(piece, bytes) or number in self._sent:
            piece = bytearray(piece)
        if at > len(piece):
            piece += bytes(at - len(piece))
        piece[at : at + len(data)] = data
        self._set(number, piece)

    def _set(self, number: int, piece: Piece) -> None:
        self._pieces[number] = piece
        self._unsaved.add(number)
        self.stored += len(piece) - self._held.get(number, 0)
        if piece:
            self._held[number] = len(piece)
        else:
            self._held.pop(number, None)

    def _shed(self) -> None:
        """Let go of the pieces loaded first that a save has put down or never changed."""
        excess = len(self._pieces) - CLEAN_PIECES
        if excess <= 0:
            return
        busy = self._unsaved | self._sent
        for number in [n for n in self._pieces if n not in busy][:excess]:
            del self._pieces[number]
