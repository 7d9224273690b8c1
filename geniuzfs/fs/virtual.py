"""The generated files that the kernel knows, under numbers of their own.

Hides: how they are numbered and for how long they live. Promises: a number means the same
file as long as the kernel may name it or somebody has it open, and is never given out again.
None of them is in the database. What quotes or names files is the owner's alone: it says
nothing of whom the files' own modes let in.
"""

import stat
from collections.abc import Iterable
from typing import ClassVar, TypeVar

import pyfuse3
from pyfuse3 import EntryAttributes, ReaddirToken

from geniuzfs.errors import Stale
from geniuzfs.fs.attrs import attributes
from geniuzfs.model import Inode, InodeNumber, Scope

VIRTUAL = 1 << 52
"""Their numbers, and those of their handles, start here: real ones have 52 bits."""


DOTS = 2
"""Names that a listing begins with: the directory and the one above. Cookies of others follow."""


class Virtual:
    """A generated file. `scope`: where it asks; `within` and `name`: what it is called there."""

    first: ClassVar[int] = VIRTUAL
    """Where numbers of this kind start."""
    mode: ClassVar[int]
    __slots__ = ("id", "lookups", "name", "opens", "scope", "time_ns", "within")

    def __init__(self, scope: Scope, within: bytes, name: bytes) -> None:
        self.id = 0
        self.scope = scope
        self.within = within
        self.name = name
        self.lookups = 0
        self.opens = 0
        self.time_ns = 0
        """The time that it shows; 0: that of the mount."""

    @property
    def size(self) -> int:
        return 0


class Directory(Virtual):
    """One that is listed empty, so that who walks the tree asks nothing."""

    mode = stat.S_IFDIR | 0o555
    __slots__ = ()


class Recall(Directory):
    """`.recall`"""

    __slots__ = ()


class Find(Directory):
    """`.find`"""

    __slots__ = ()


class Found(Directory):
    """`.find/<query>`, which lists what it finds."""

    mode = stat.S_IFDIR | 0o500
    __slots__ = ()


class Text(Virtual):
    """A file that is empty until it is opened. `text` is there while it is open."""

    # Not 0444: tar never opens a file that is empty and that everybody may read.
    mode = stat.S_IFREG | 0o400
    __slots__ = ("answered", "text", "version")

    def __init__(self, scope: Scope, within: bytes, name: bytes) -> None:
        super().__init__(scope, within, name)
        self.text: bytes | None = None
        self.answered = 0.0
        """trio's time at which `text` came."""
        self.version: object = ()
        """That of the folder when `text` was asked for."""

    @property
    def size(self) -> int:
        return len(self.text or b"")

    def fill(self, text: bytes, now: float) -> bool:
        """Take the text, at trio's time `now`. False: another opener has brought it already."""
        if self.text is not None:
            return False
        self.text, self.answered = text, now
        return True

    def close(self) -> None:
        """Nobody has it open any more: the next one asks anew."""
        self.text, self.version = None, ()


class Answer(Text):
    """`.recall/<query>`"""

    __slots__ = ()


class Status(Text):
    """`.status`"""

    mode = stat.S_IFREG | 0o444
    __slots__ = ()


class Ask(Virtual):
    """`.recall/ask`"""

    mode = stat.S_IFREG | 0o600
    __slots__ = ()


class Link(Virtual):
    """`.find/<query>/01 notes.md`"""

    mode = stat.S_IFLNK | 0o777
    __slots__ = ("target",)

    def __init__(self, scope: Scope, within: bytes, name: bytes) -> None:
        super().__init__(scope, within, name)
        self.target = b""

    @property
    def size(self) -> int:
        return len(self.target)


_V = TypeVar("_V", bound=Virtual)
_Key = tuple[type[Virtual], Scope, bytes, bytes]


class Virtuals(dict[int, Virtual]):
    """Number → generated file."""

    def __init__(self) -> None:
        super().__init__()
        self._named: dict[_Key, Virtual] = {}
        self._next = 0

    def __missing__(self, id_: int) -> Virtual:
        raise Stale(f"generated file {id_} is not known")

    def called(self, kind: type[_V], scope: Scope, within: bytes, name: bytes) -> _V:
        """The file of that name; a new one where the kernel knows none."""
        known = self._named.get((kind, scope, within, name))
        return known if isinstance(known, kind) else self.renewed(kind, scope, within, name)

    def renewed(self, kind: type[_V], scope: Scope, within: bytes, name: bytes) -> _V:
        """A new file under that name. Who has the one before open keeps it."""
        made = kind(scope, within, name)
        made.id, self._next = kind.first + self._next, self._next + 1
        self[made.id] = self._named[kind, scope, within, name] = made
        return made

    def forget(self, counts: Iterable[tuple[int, int]]) -> None:
        """The kernel gives back lookups: (number, how many)."""
        for id_, count in counts:
            node = self.get(id_)
            if node is not None:
                node.lookups -= count
                self.let_go(node)

    def let_go(self, node: Virtual) -> None:
        """Drop a file that nobody can name any more."""
        if node.lookups <= 0 and node.opens <= 0:
            self.pop(node.id, None)
            key: _Key = (type(node), node.scope, node.within, node.name)
            if self._named.get(key) is node:
                del self._named[key]


def list_dots(token: ReaddirToken, own: EntryAttributes, start: int) -> bool:
    """Tell `token` the first DOTS names of a directory with these attributes, those that come after
    cookie `start`. False when it takes no more.
    """
    return all(
        start >= cookie or pyfuse3.readdir_reply(token, name, own, cookie)
        for cookie, name in enumerate((b".", b".."), 1)
    )


def shown(node: Virtual, owner: tuple[int, int], time_ns: int) -> EntryAttributes:
    """The attributes of `node`. The kernel may keep none of them: the size comes with open(2),
    and without a timeout of 0 all tools would read answers as empty.
    """
    links = 2 if stat.S_ISDIR(node.mode) else 1
    number, size, (uid, gid) = InodeNumber(node.id), node.size, owner
    inode = Inode(number, node.mode, uid, gid, links, 0, size, size, time_ns, time_ns, time_ns)
    made = attributes(node.id, inode)
    made.entry_timeout = made.attr_timeout = 0
    return made
