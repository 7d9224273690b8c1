"""What is due in one folder, learned in small steps, newest first.

Hides: which files are not learned, and how much is done at a time. Promises: a step is
prepared outside any transaction and written in one, together with the mark that it is done; whoever
else learns the same file meanwhile, it is learned once. A crash leaves what was due still due.
"""

import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from geniuzfs.learn.ignore import Ignored
from geniuzfs.model import InodeNumber, PassageId
from geniuzfs.names import is_short_lived, is_temporary
from geniuzfs.store import content, passages, paths, postings, tree
from geniuzfs.store.connection import Database
from geniuzfs.store.passages import NotKnown, Waiting
from geniuzfs.store.terms import Terms
from geniuzfs.store.transactions import Txn, View

if TYPE_CHECKING:
    from geniuzfs.learn.lessons import Prepared

FILES_A_STEP = 32
PASSAGES_A_STEP = 64
"""A step's transaction holds the write lock for some 3 ms then."""

SMALL_SEGMENTS = 2 * postings.MOST
"""Small segments that recall puts up with: each costs it 0.1 ms."""

LEARNINGS_KEPT = 100_000

PASSING_BY_NS = 60_000_000_000
"""`tmp1a2b3c4d` is what many programs call a file that they rename a moment later."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Aside(Protocol):
    """Carries out what holds no lock, where and with the priority that its maker wants."""

    def __call__(self, work: Callable[[], T]) -> T: ...


def here(work: Callable[[], T]) -> T:
    """At once, in this thread."""
    return work()


class _Work(NamedTuple):
    """What a step is to write."""

    directories: list[InodeNumber]
    prepared: "list[tuple[int, Prepared]]"


class Backlog:
    """Learns the words of a folder's files and memories. For one thread at a time."""

    def __init__(self, database: Database, aside: Aside = here) -> None:
        self._database = database
        self._aside = aside
        self._rules: list[tuple[bytes, bytes]] = []
        self._ignored = Ignored({})

    def catch_up(self, seconds: float) -> None:
        """Learn the words of what is due, for about `seconds` at most."""
        end = time.monotonic() + seconds
        while self.step() and time.monotonic() < end:
            pass
        self._tidy_small()

    def step(self) -> bool:
        """Learn some of what is due; False when nothing is. Raises Busy."""
        work = self._aside(self._prepare)
        if work is None:
            return False
        with self._database.txn() as txn:
            for directory in work.directories:
                passages.look_again(txn, directory, paths.files_beneath(txn, directory))
            new: list[tuple[PassageId, Terms]] = []
            for since_ns, each in work.prepared:
                new += self._learn(txn, since_ns, each)
            passages.index(txn, sorted(new, key=lambda one: one[0]))
        return True

    def waiting(self) -> Waiting:
        """How much is due."""
        return passages.waiting(self._database.view)

    # What only the one learner of a folder does

    def begin(self) -> None:
        """Clear what a learner that was killed has left."""
        with self._database.txn() as txn:
            postings.drop_unfinished(txn)

    def tidy(self) -> bool:
        """Merge some of the index; False when there is nothing to do."""
        merged = self._aside(self._merged)
        if merged is None:
            return False
        steps = merged.steps()
        written: int | None = None
        while (step := self._aside(lambda: next(steps, None))) is not None:
            with self._database.txn() as txn:
                written = step.write(txn, written)
        with self._database.txn() as txn:
            passages.prune_learnings(txn, LEARNINGS_KEPT)
        return True

    def _tidy_small(self) -> None:
        """Who asks between any two saves leaves a segment each time; the learner, which waits for
        a pause, may not come to merge them. Small ones alone, so in one transaction.
        """
        merged = self._merged(SMALL_SEGMENTS, postings.WHOLE)
        for step in merged.steps() if merged is not None else ():
            with self._database.txn() as txn:
                step.write(txn, None)

    def _merged(
        self, most: int = postings.MOST, largest: int = postings.LARGEST
    ) -> postings.Merged | None:
        with self._database.snapshot() as view:
            ids = postings.to_merge(view, most, largest)
            return postings.merge(view, ids) if ids else None

    def _prepare(self) -> _Work | None:
        """A step's work; None when nothing is due."""
        with self._database.snapshot() as view:
            directories = passages.due_rules(view)
            files = [] if directories else self._files(view)
            memories = [] if directories or files else passages.due_memories(view, FILES_A_STEP)
            if not directories and not files and not memories:
                return None
            self._read_rules(view)
            return _Work(directories, list(self._prepared(view, files, memories)))

    def _files(self, view: View) -> list[tuple[InodeNumber, int]]:
        """The newest that are due, without those that are passing by: they hold nothing up."""
        limit = FILES_A_STEP
        while True:
            due = passages.due(view, limit)
            found = [one for one in due if not self._is_passing_by(view, *one)]
            if found or len(due) < limit:
                return found[:FILES_A_STEP]
            limit *= 4

    def _prepared(
        self, view: View, files: list[tuple[InodeNumber, int]], memories: list[str]
    ) -> "Iterator[tuple[int, Prepared]]":
        # Here, since a question finds nothing due most of the time: 40 ms of a command's start.
        from geniuzfs.learn import lessons

        held = 0
        for inode, since_ns in files:
            prepared = lessons.of_file(view, inode, self._covers)
            yield since_ns, prepared
            held += prepared.passages
            if held >= PASSAGES_A_STEP:
                return
        for uuid in memories:
            prepared = lessons.of_memory(view, uuid)
            yield 0, prepared
            held += prepared.passages
            if held >= PASSAGES_A_STEP:
                return

    def _learn(
        self, txn: Txn, since_ns: int, prepared: "Prepared"
    ) -> list[tuple[PassageId, Terms]]:
        key, lesson = prepared
        if key.inode is not None and not passages.is_due(txn, key.inode, since_ns):
            return []
        if key.memory is not None and not passages.is_memory_due(txn, key.memory):
            return []  # learned by another process, or forgotten, meanwhile
        new: list[tuple[PassageId, Terms]] = []
        if lesson is not None:
            txn.run("SAVEPOINT lesson")
            try:
                new += passages.learn(txn, key, lesson)
            except NotKnown:  # another file's change took a text along; the next step works it out
                txn.run("ROLLBACK TO lesson")
                txn.run("RELEASE lesson")
                return []
            txn.run("RELEASE lesson")
        if key.inode is not None and self._is_rules(txn, key.inode):
            directory = tree.parent_of(txn, key.inode)
            passages.look_again(txn, directory, paths.files_beneath(txn, directory))
        passages.done(txn, key)
        return new

    # Which files are not learned

    def _is_passing_by(self, view: View, inode: InodeNumber, since_ns: int) -> bool:
        """A file that has the name of an unfinished save stays due until it has stayed."""
        if time.time_ns() - since_ns > PASSING_BY_NS:
            return False
        return is_short_lived(paths.path(view, inode) or b"")

    def _covers(self, path: bytes) -> bool:
        if is_temporary(path):
            return True
        return bool(self._rules) and self._ignored.covers(path.decode("utf-8", "surrogateescape"))

    def _read_rules(self, view: View) -> None:
        rules = [(where, content.read(view, inode)) for where, inode in paths.rules(view)]
        if rules != self._rules:
            self._rules = rules
            self._ignored = Ignored(
                {
                    where.decode("utf-8", "surrogateescape"): text.decode("utf-8", "replace")
                    for where, text in rules
                }
            )

    def _is_rules(self, view: View, inode: InodeNumber) -> bool:
        path = paths.path(view, inode)
        return path is not None and path.rpartition(b"/")[2] == paths.RULES
