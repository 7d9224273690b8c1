"""Answers without a ranking: what was written last, what holds a phrase, anything at all.

Hides: that texts are read only where the index of n-grams leaves a phrase possible: among 1,000,000
passages some milliseconds instead of seconds. Promises: whatever holds the phrase is found.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from geniuzfs.recall.parts import Chosen, Part
from geniuzfs.recall.query import Mode, Query
from geniuzfs.store import sources
from geniuzfs.store.terms import inner

MODES = (Mode.RECENT, Mode.RANDOM, Mode.GREP)

Possible = NDArray[np.bool_]


def listed(parts: Sequence[Part], query: Query) -> list[Chosen]:
    """What the modes RECENT, RANDOM and GREP answer with: what holds every word and phrase."""
    phrases = phrases_of(query)
    every = _anything if query.mode is Mode.RANDOM else newest
    return list(islice(containing(parts, every(parts, phrases), phrases), query.limit))


def phrases_of(query: Query) -> list[str]:
    """What has to be contained there: what was quoted, and the other words."""
    others = query.text
    for phrase in query.quoted:
        others = others.replace(phrase, " ", 1)
    return [*others.split(), *query.quoted]


def quoted(parts: Sequence[Part], query: Query, ranked: list[Chosen]) -> list[Chosen]:
    """What holds every quoted phrase first, best first, then the others."""
    best = list(containing(parts, ranked, query.quoted))
    seen = {(one.part, one.row) for one in best}
    if len(best) < query.limit:
        others = containing(parts, newest(parts, query.quoted), query.quoted)
        best += islice((one for one in others if (one.part, one.row) not in seen), query.limit)
        seen.update((one.part, one.row) for one in best)
    return best + [one for one in ranked if (one.part, one.row) not in seen]


def newest(parts: Sequence[Part], phrases: Sequence[str]) -> Iterator[Chosen]:
    """All in scope that may hold the phrases, what was written last first."""
    possible = [_possible(part, phrases) for part in parts]
    places: list[tuple[int, int, int, int]] = []
    for number, part in enumerate(parts):
        held = set(part.index.place.held[possible[number]].tolist())
        for source, written_ns, kept in sources.by_time(part.view) if held else ():
            place = part.index.number_of(source)
            if place is not None and place in held:
                places.append((-written_ns, number, -kept, place))
    for _, number, _, place in sorted(places):
        where = parts[number].index.places[place]
        if where is not None:
            for row in range(where.first, where.end):
                if possible[number][row]:
                    yield Chosen(number, row)


def containing(
    parts: Sequence[Part], chosen: Iterable[Chosen], phrases: Sequence[str]
) -> Iterator[Chosen]:
    """Those whose text holds every phrase, whatever the case, one space between words."""
    wanted = [_folded(phrase) for phrase in phrases]
    for one in chosen:
        text = parts[one.part].text(one.row) if wanted else ""
        if text is not None and all(phrase in _folded(text) for phrase in wanted):
            yield one


def lines_holding(text: str, phrases: Sequence[str]) -> list[int]:
    """Which lines of `text` hold any of the phrases, counted from 0; none where one that is
    there goes over the end of a line.
    """
    wanted = [_folded(phrase) for phrase in phrases]
    lines = [_folded(line) for line in text.split("\n")]
    if not all(any(phrase in line for line in lines) for phrase in wanted):
        return []
    return [at for at, line in enumerate(lines) if any(phrase in line for phrase in wanted)]


def _anything(parts: Sequence[Part], phrases: Sequence[str]) -> Iterator[Chosen]:
    every = [
        Chosen(number, row)
        for number, part in enumerate(parts)
        for row in np.flatnonzero(_possible(part, phrases)).tolist()
    ]
    random.shuffle(every)
    yield from every


def _possible(part: Part, phrases: Sequence[str]) -> Possible:
    """Row → whether it is in scope and has every n-gram of the phrases."""
    index = part.index
    possible: Possible = index.place.held >= 0
    if part.allowed is not None:
        possible = possible & part.allowed
    for phrase in phrases:
        keys = inner(phrase)
        if len(keys):
            (found,) = index.segments.find(part.view, index.passages, keys)
            rows = np.bincount(found.passages.where, minlength=len(possible))
            possible = possible & (rows >= np.count_nonzero(found.read))
    return possible


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
