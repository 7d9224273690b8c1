"""Is this database sound, and if not, can it be made so?

The oracle: every test that touches storage ends with `problems(view)` being
empty, and `geniuzfs check` is the same for users. A repair loses no byte that a
user wrote; what has no mend is left for a person to judge.
"""

from collections.abc import Callable, Iterator

from geniuzfs.errors import AlreadyExists, UsageError
from geniuzfs.model import Problem
from geniuzfs.store import invariants, learned, recorded
from geniuzfs.store.connection import Database
from geniuzfs.store.invariants import Found
from geniuzfs.store.transactions import Txn, View

# In this order a repair makes sense: the ground first, then inodes, what belongs to them, their
# names, and the counts last.
RULES: tuple[Callable[[View], Iterator[Found]], ...] = (
    invariants.sound_pages,
    invariants.schema_is_whole,
    invariants.migrations_are_recorded,
    invariants.types_are_known,
    invariants.the_top_is_a_directory,
    invariants.symlinks_point,
    invariants.pieces_belong_to_files,
    invariants.attributes_belong_to_inodes,
    invariants.due_marks_belong_to_inodes,
    invariants.names_are_in_directories,
    invariants.names_stand_for_inodes,
    invariants.names_are_valid,
    invariants.directories_have_one_name,
    invariants.inodes_are_reached,
    invariants.sizes_hold,
    invariants.links_are_counted,
    invariants.memories_can_be_read,
    learned.sources_are_files_or_memories,
    learned.rows_are_taught,
    learned.everything_was_looked_at,
    learned.passages_are_said,
    learned.passages_are_indexed,
    learned.passages_have_vectors,
    recorded.pieces_belong_to_versions,
    recorded.versions_belong_to_histories,
    recorded.histories_have_a_place,
    recorded.versions_hold,
    invariants.references_hold,
    invariants.erasures_are_finished,
)


def problems(view: View) -> Iterator[Problem]:
    """All that is wrong. What lies behind a problem may show only when that is mended."""
    for rule, found in _found(view):
        yield Problem(rule, found.detail, found.mend is not None)


def repair(
    database: Database, now_ns: int, met: Callable[[View, list[Problem]], None] | None = None
) -> list[Problem]:
    """Mend what can be mended, in rounds, since one mend may bring up the next problem;
    each round is one transaction. Returns what is left. `met` is told what each round finds, before
    it is mended.
    """
    met = met or (lambda _view, _problems: None)
    with database.snapshot() as view:
        left = list(problems(view))
        met(view, left)
    for _ in RULES:
        if not any(problem.mendable for problem in left):
            break
        with database.txn() as txn:
            _mend(txn, now_ns)
        before = left
        with database.snapshot() as view:
            left = list(problems(view))
            met(view, left)
        if left == before:
            break
    return left


def _mend(txn: Txn, now_ns: int) -> None:
    """Whatever is found. A mend that fails is undone, alone."""
    for _, found in _found(txn):
        if found.mend is not None:
            txn.run("SAVEPOINT mend")
            try:
                found.mend(txn, now_ns)
            except (AlreadyExists, UsageError):
                txn.run("ROLLBACK TO mend")
            txn.run("RELEASE mend")


def _found(view: View) -> Iterator[tuple[str, Found]]:
    for rule in RULES:
        found = list(rule(view))
        yield from ((rule.__name__, one) for one in found)
        if any(one.blocks for one in found):
            return
