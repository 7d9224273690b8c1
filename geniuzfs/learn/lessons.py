"""What a file or a kept memory has to say, ready to be stored.

Hides: which bytes are text and what else than bytes a lesson depends on. Promises: the
same bytes under the same name make the same lesson; texts that are known already are not
worked out again; nothing is written here.
"""

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import NamedTuple

from geniuzfs.kinds import told_kinds
from geniuzfs.learn.dialogue import spoken
from geniuzfs.learn.paragraphs import Passage, split
from geniuzfs.learn.states import State, read_text
from geniuzfs.model import InodeNumber, MemoryId
from geniuzfs.store import content, memories, passages, paths, tree
from geniuzfs.store.passages import DIALOGUE, KINDS, NO_DAY, QUESTION, Key, Lesson, Said, Text
from geniuzfs.store.terms import terms
from geniuzfs.store.transactions import View

LARGEST = 8 * 1_000_000
"""Bytes beyond which a file is not read at all: 2,000,000 characters have at most so many."""

_GIST_MAX = 4_000
"""Characters of a gist that a memory is found by: another tool may write one of any length."""

_VERSION = b"1"
"""Of how texts are split: with another one, everything is looked at again."""

_QUESTION_MARKS = ("?", "\uff1f", "\u061f", "\u037e", "\u2047", "\u2048")

_TAG = re.compile(r"<!--.*?-->|</?[A-Za-z][^<>]*>", re.DOTALL)
_SIGN = re.compile(r"[A-Za-z0-9]|[^\x00-\x7f]")

_YEAR = re.compile(r"\d{4}")
_COUNT = re.compile(r"(?<![0-9A-Za-z])[0-9]{1,3}(?![0-9A-Za-z])")
_JOINED = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

Covers = Callable[[bytes], bool]
"""Whether a path, relative to the folder's top, is not to be learned."""


class Prepared(NamedTuple):
    """A source and its lesson; None: what was learned from it still holds."""

    key: Key
    lesson: Lesson | None

    @property
    def passages(self) -> int:
        return len(self.lesson.said) if self.lesson is not None else 0


def of_file(view: View, inode: InodeNumber, covers: Covers) -> Prepared:
    """The lesson of a file. `view` must be one snapshot."""
    key = Key(inode)
    found = tree.inode(view, inode)
    path = paths.path(view, inode)
    if found is None or path is None:
        return Prepared(key, None)
    if covers(path):
        return _changed(view, key, b"", b"", lambda: Lesson(State.IGNORED, b""))
    if found.size > LARGEST:
        return _changed(view, key, b"", b"long", lambda: Lesson(State.TOO_LONG, b""))
    name = path.rpartition(b"/")[2]
    held = content.read(view, inode)
    # A hole at the end reads as NUL, and what has one is no text.
    held += bytes(min(found.size - len(held), 1))
    return _changed(view, key, name, held, lambda: _of_bytes(view, name, held, str(inode)))


def of_memory(view: View, uuid: str) -> Prepared:
    """The lesson of a kept memory: what it says, beneath its gist."""
    key = Key(None, uuid)
    memory = memories.memory(view, MemoryId(uuid))
    if memory is None:
        return Prepared(key, None)
    text, gist = memory.content, memory.gist[:_GIST_MAX]
    gist = "" if text.startswith(gist.removesuffix("...")) else gist
    return _changed(
        view,
        key,
        gist.encode("utf-8", "replace"),
        text.encode("utf-8", "replace"),
        lambda: _of_text(view, text, split(text, ""), gist, uuid),
    )


def _changed(
    view: View, key: Key, name: bytes, held: bytes, make: Callable[[], Lesson]
) -> Prepared:
    digest = blake2b(digest_size=16)
    for part in (_VERSION, len(name).to_bytes(2, "little"), name, held):
        digest.update(part)
    fingerprint = digest.digest()
    before = passages.learned(view, key)
    if before is not None and before[1] == fingerprint:
        return Prepared(key, None)
    return Prepared(key, make()._replace(hash=fingerprint))


def _of_bytes(view: View, name: bytes, held: bytes, source: str) -> Lesson:
    text = read_text(held)
    if isinstance(text, State):
        return Lesson(text, b"")
    shown = name.decode("utf-8", "replace")
    return _of_text(view, text, split(text, shown), _title(shown), source)


def _title(name: str) -> str:
    """What a file's name says: without its ending and counting numbers (`07 plan.md`), which meet
    all kinds of numbers in questions; and `ReadingTime` in two words as well.
    """
    stem = name.rpartition(".")[0] or name
    if _YEAR.search(stem) is None:
        stem = _COUNT.sub(" ", stem)
    spaced = _JOINED.sub(" ", stem)
    return stem if spaced == stem else f"{stem} {spaced}"


def _of_text(view: View, text: str, found: list[Passage], title: str, source: str) -> Lesson:
    said: list[Said] = []
    wanted: dict[bytes, tuple[str, bool]] = {}
    runs: dict[str, int] = {}
    heading: str | None = None
    context = b""
    for passage in found:
        if not _says_something(passage.text):
            continue
        if passage.heading != heading:
            # Of its own for each stretch of passages, even beneath headings of the same words.
            heading = passage.heading
            runs[heading] = run = runs.get(heading, 0) + 1
            above = f"{title}\n{heading}"
            context = _hash("context", source, str(run), above)
            wanted[context] = above, True
        own = passage_hash(passage.text)
        wanted[own] = passage.text, False
        said.append(
            Said(
                own,
                context,
                passage.first_line,
                passage.last_line,
                NO_DAY if passage.day is None else passage.day,
                _speaker(passage.speaker),
                (DIALOGUE | KINDS * told_kinds(spoken(passage.text)) if passage.dialogue else 0)
                | (QUESTION if passage.text.endswith(_QUESTION_MARKS) else 0),
            )
        )
    known = passages.known(view, wanted)
    texts = {
        hash_: Text(hash_, part, terms(part), above)
        for hash_, (part, above) in wanted.items()
        if hash_ not in known
    }
    return Lesson(State.LEARNED if said else State.EMPTY, b"", tuple(said), texts)


def _says_something(text: str) -> bool:
    """Not so a table's border, a fence, tags or a comment alone: one in twenty passages of two
    projects' documentation, and they took places among the first ten.
    """
    return _SIGN.search(_TAG.sub("", text)) is not None


def passage_hash(text: str) -> bytes:
    """What a passage of this text is known by."""
    return _hash("passage", text)


def _hash(*parts: str) -> bytes:
    digest = blake2b(digest_size=16)
    for part in parts:
        coded = part.encode("utf-8", "surrogatepass")
        digest.update(len(coded).to_bytes(8, "little"))
        digest.update(coded)
    return digest.digest()


def _speaker(name: str) -> int:
    """The key of the first word of a speaker's name; 0: none."""
    first, _, _ = name.partition(" ")
    found = terms(first).words
    return int(found[0]) if len(found) else 0
