"""When a question is asked, and who shares its answer.

Promises: who opens an answer after a commit of this mount gets one that knows of the
commit; several who open it at once share one; the time limit holds, and what ran out of
time says so. Refuses: questions that are not UTF-8 (EINVAL) and malformed ones, with
the reason noted for `.status`.
"""

import errno
import functools
import logging
import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import trio
from pyfuse3 import FUSEError

from geniuzfs.errors import UsageError
from geniuzfs.fs.answers import Answers
from geniuzfs.fs.counted import Counted, told
from geniuzfs.fs.finding import Hit, hits
from geniuzfs.fs.inodes import Node
from geniuzfs.fs.places import Places, Version
from geniuzfs.fs.questions import Questions
from geniuzfs.fs.virtual import Answer, Found, Text
from geniuzfs.model import FolderId, Scope

FRESH_SECONDS = 1.0
"""How long an answer that somebody has open is handed to others too, when nothing was
committed: what is learned meanwhile makes it better.
"""

FOUND_SECONDS = 10.0
"""How long what was listed can be called by name without asking again."""

_FOUND_KEPT = 64

_ESCAPED = re.compile(rb"%(2[Ff]|25)")
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class _Listing(NamedTuple):
    hits: list[Hit]
    version: Version
    answered: float


class Recalling:
    """The questions of one mount and their answers. `seconds`: how long one may take."""

    def __init__(self, places: Places, answers: Answers, counted: Counted, seconds: float) -> None:
        self._places = places
        self._counted = counted
        self._answers = answers
        self._questions = Questions(seconds)
        self._quick = Questions(seconds)
        """What is looked up in no time does not wait for threads that work on questions."""
        self._listings: dict[tuple[Scope, bytes], _Listing] = {}
        self._refused: dict[FolderId | None, str] = {}

    def end(self) -> None:
        """Whoever waits for an answer waits no longer: the mount ends."""
        self._questions.end()
        self._quick.end()

    def may_share(self, node: Text) -> bool:
        """Whether one who opens it now may get the answer that others have open or wait for."""
        if not node.opens:
            return True
        fresh = node.text is None or trio.current_time() - node.answered < FRESH_SECONDS
        return fresh and node.version == self._places.version(node.scope)

    async def fill(self, node: Text) -> bool:
        """Make the text of an open file. False: it has one already."""
        if node.text is not None:
            return False
        node.version = node.version or self._places.version(node.scope)
        scope = node.scope
        if isinstance(node, Answer):
            answer = functools.partial(self._answers.answer, scope, _query(node.name))
            text = await self._ask(scope, node, answer)
        else:
            status = functools.partial(self._answers.status_text, scope)
            text = await self._quick.ask(node, status)
            text = None if text is None else text + self._last_refused(scope) + self._done()
        return node.fill(self._too_late() if text is None else text, trio.current_time())

    async def answer(self, scope: Scope, question: bytes) -> bytes:
        """The answer to a question that nobody shares."""
        call = functools.partial(self._answers.answer, scope, _text(question))
        text = await self._ask(scope, object(), call)
        return self._too_late() if text is None else text

    async def listed(self, found: Found) -> list[Hit]:
        """What is found now. Raises FUSEError when time runs out."""
        scope, key = found.scope, (found.scope, found.name)
        version = self._places.version(scope)
        known = self._listings.get(key)
        if known is not None and known.version == version and _age(known) < FRESH_SECONDS:
            return known.hits
        call = functools.partial(self._answers.found, scope, _query(found.name))
        paths = await self._ask(scope, (key, version), call)
        if paths is None:
            raise FUSEError(errno.ETIMEDOUT)
        listing = _Listing(hits(paths, self._places.depth(scope)), version, trio.current_time())
        self._listings.pop(key, None)
        self._listings[key] = listing
        if len(self._listings) > _FOUND_KEPT:
            del self._listings[next(iter(self._listings))]
        return listing.hits

    async def hit(self, found: Found, name: bytes) -> Hit | None:
        """What was listed under `name` just now; else what would be."""
        known = self._listings.get((found.scope, found.name))
        recent = known.hits if known is not None and _age(known) < FOUND_SECONDS else None
        among = await self.listed(found) if recent is None else recent
        return next((hit for hit in among if hit.name == name), None)

    async def state(self, node: Node) -> bytes:
        """What learning has made of a file. Raises FUSEError when time runs out."""
        call = functools.partial(self._answers.state, node.volume.folder, node.number)
        state = await self._quick.ask(object(), call)
        if state is None:
            raise FUSEError(errno.ETIMEDOUT)
        return state

    async def _ask(self, scope: Scope, key: object, call: Callable[[], _T]) -> _T | None:
        self._counted.questions += 1
        try:
            return await self._questions.ask(key, call)
        except UsageError as error:
            self._counted.refused += 1
            self._refused[scope.folder] = _printable(str(error))
            _log.info("a question was refused: %s", self._refused[scope.folder])
            raise

    def _last_refused(self, scope: Scope) -> bytes:
        reason = self._refused.get(scope.folder)
        return b"" if reason is None else f"last question refused: {reason}\n".encode()

    def counters(self) -> bytes:
        """See fs.counted."""
        return self._counted.as_json(self._places.saves())

    def _done(self) -> bytes:
        return "".join(f"{line}\n" for line in told(self.counters())).encode()

    def _too_late(self) -> bytes:
        seconds = f"{self._questions.seconds:g}"
        return f"The answer took longer than {seconds} seconds and was given up.\n".encode()


def _age(listing: _Listing) -> float:
    return trio.current_time() - listing.answered


def _query(name: bytes) -> str:
    """The question that a file's name stands for: a name holds no slash, so %2F does."""
    return _text(_ESCAPED.sub(lambda found: b"%" if found[1] == b"25" else b"/", name))


def _text(question: bytes) -> str:
    try:
        return question.decode()
    except UnicodeDecodeError as error:
        raise UsageError("a question must be UTF-8") from error


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
