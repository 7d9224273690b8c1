"""Folders are checked and repaired.

Hides: which damage is mended in place and for which a new file is made. Promises: a check changes
nothing; a repair loses no byte that can still be read: what can't be mended stays in the damaged
file, which is put aside whole (store.aside), and what the new one lacks is named. The new one takes
its place only when nothing is wrong with it. Refuses: to make a new file while another process has
the folder open.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from geniuzfs.errors import Busy, GeniuzError, StoreDamaged
from geniuzfs.folders.registry import Folder
from geniuzfs.learn import lessons
from geniuzfs.model import Problem
from geniuzfs.store import aside, check, forgetting, learned, salvage
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import View

_UNREADABLE = {"sound_pages", "can_be_read"}
"""The rules whose problems only a new file can end."""

_AS_BEFORE = "memories_can_be_read"
"""What can't be mended and is in the new file as it was in the damaged one: nothing is worse."""

_GROUND = {"sound_pages", "schema_is_whole"}
"""While these have problems, files can't be asked what they lack."""


class Checked(NamedTuple):
    """What a check of one folder found first, and what of it a repair has left; `lost`: what could
    not be read any more, a line each, and is in the damaged file alone, which is `kept` then.
    """

    folder: Folder
    problems: list[Problem]
    left: list[Problem]
    lost: list[str]
    kept: Path | None


def look(folder: Folder) -> Checked:
    """Look, and change nothing."""
    problems = _problems(folder.path)
    return Checked(folder, problems, problems, [], None)


def repair(folder: Folder, now_ns: int, *, rebuild: bool) -> Checked:
    """Mend what can be mended; with `rebuild` have all that was learned made anew. What keeps
    another process from being mended now is a problem that is left.
    """
    problems = _problems(folder.path)
    lost: list[str] = []
    kept: Path | None = None
    left = list(problems)
    if not _needs_new(problems):
        left = _in_place(folder.path, now_ns, problems, lost, rebuild=rebuild)
    if _needs_new(left):
        try:
            missing, kept = _made_anew(folder.path, now_ns)
            lost += missing
            left = _problems(folder.path)
        except (Busy, StoreDamaged) as error:
            left = [*left, Problem("repair", str(error), mendable=isinstance(error, Busy))]
    return Checked(folder, problems, left, lost, kept)


def _problems(path: Path) -> list[Problem]:
    try:
        database = Database.open(path)
        try:
            with database.snapshot() as view:
                found = list(check.problems(view))
            if _needs_new(found):
                database.leave_log()
            return found
        finally:
            database.close()
    except GeniuzError as error:
        return [Problem("can_be_read", str(error), mendable=isinstance(error, StoreDamaged))]


def _needs_new(problems: list[Problem]) -> bool:
    return any(
        one.rule in _UNREADABLE and (one.mendable or one.rule == "sound_pages") for one in problems
    )


def _in_place(
    path: Path, now_ns: int, problems: list[Problem], lost: list[str], *, rebuild: bool
) -> list[Problem]:
    """What is left. What comes up only when others are mended is added to `problems`, and what is
    missing in files to `lost`.
    """

    def met(view: View, found: list[Problem]) -> None:
        problems.extend(one for one in found if one not in problems)
        if not any(one.rule in _GROUND for one in found):
            lost.extend(line for line in salvage.missing(view) if line not in lost)

    try:
        database = Database.open(path)
        try:
            left = check.repair(database, now_ns, met)
            if rebuild:
                with database.txn() as txn:
                    learned.rebuild(txn, lessons.passage_hash)
                left = check.repair(database, now_ns)
            if forgetting.unfinished(database.view) is not None:
                forgetting.erase(database, _once)
                left = [one for one in left if one.rule != "erasures_are_finished"]
            return left
        finally:
            database.close()
    except GeniuzError as error:
        return [Problem("can_be_read", str(error), mendable=isinstance(error, StoreDamaged))]


def _made_anew(path: Path, now_ns: int) -> tuple[list[str], Path]:
    """A new file of what can be read takes the place of this one: what it lacks, and where the
    damaged one is. Raises Busy, and StoreDamaged when nothing can be read: then all is as before.
    """
    with aside.alone(path) as apart:
        new = Database.open(apart.new, create=True)
        try:
            lost = salvage.salvage(apart.copy, new)
            left = [one for one in check.repair(new, now_ns) if one.rule != _AS_BEFORE]
        finally:
            new.close()
        if left:
            raise StoreDamaged(f"what can be read of it is not sound: {left[0].detail}")
        when = datetime.fromtimestamp(now_ns // 10**9, UTC).strftime("%Y%m%d-%H%M%S")
        return lost, aside.swap(apart, when)


def _once(step: Callable[[], None]) -> None:
    step()
