"""A question is answered: candidates, ranking, hits.

Hides: in which order scope, evidence and ranking are asked, and what each mode means. Promises:
what an answer says of one folder comes from one snapshot; of equal scores, what was learned last
comes first. Refuses: to learn, and to wait for a model: it takes the question's vector or None.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geniuzfs import dates
from geniuzfs.model import ROOT, Identity, InodeNumber, ModelId
from geniuzfs.recall import gather, joined, rank
from geniuzfs.recall.hits import Hit, Kind
from geniuzfs.recall.index import Index
from geniuzfs.recall.query import Mode, Query
from geniuzfs.store import passages, sources
from geniuzfs.store.connection import Database
from geniuzfs.store.terms import Asked, asked
from geniuzfs.store.transactions import View

EXAMINED = 4_096
"""Passages whose text is looked at for a quoted phrase, the best first."""

Rows = NDArray[np.int64]


@dataclass(slots=True)
class Shelf:
    """One folder as recall holds it. For one thread at a time."""

    identity: Identity
    database: Database
    index: Index | None = None

    def refreshed(self, view: View) -> Index:
        """The index at `view`, which must be one snapshot."""
        if self.index is None:
            self.index = Index(view)
        else:
            self.index.refresh(view)
        return self.index


@dataclass(frozen=True, slots=True)
class Part:
    """One folder's part in a search: what is open, and what of it is in scope."""

    identity: Identity
    view: View
    index: Index
    allowed: NDArray[np.bool_] | None
    """Row → whether it is in scope; None: all are."""


class Result(NamedTuple):
    """What was found in all parts together, and out of how much."""

    hits: tuple[Hit, ...]
    passages: int
    memories: int
    meant: bool
    """Whether vectors had a part in it."""


def part(shelf: Shelf, view: View, directory: InodeNumber, query: Query) -> Part:
    """The part of one folder that is in scope. Raises NotFound for a path that is not there."""
    index = shelf.refreshed(view)
    wanted = sources.Filter(
        directory if query.path is None else sources.within(view, directory, query.path),
        query.since_ns,
        query.until_ns,
        query.labels,
    )
    if wanted == sources.Filter(ROOT, None, None, ()):
        return Part(shelf.identity, view, index, None)
    chosen = np.zeros(len(index.places) + 1, np.bool_)  # the last is that of rows given up
    for source in sources.chosen(view, wanted):
        place = index.number_of(source)
        if place is not None:
            chosen[place] = True
    return Part(shelf.identity, view, index, chosen[index.place.held])


def search(parts: Sequence[Part], query: Query, vectors: Mapping[ModelId, rank.Floats]) -> Result:
    """The best passages and memories, as `query.mode` understands best. `vectors`: the
    question's, by the model that made it; without one, words alone count there.
    """
    chosen = _chosen(parts, query, vectors)
    hits = [_hit(parts, one) for one in chosen]
    counts = [_counted(each) for each in parts]
    return Result(
        tuple(hit for hit in hits if hit is not None),
        sum(passages for passages, _ in counts),
        sum(memories for _, memories in counts),
        any(each.index.nearest.name in vectors for each in parts),
    )


class _Chosen(NamedTuple):
    part: int
    row: int
    score: float = 0.0
    weak: bool = False


def _chosen(
    parts: Sequence[Part], query: Query, vectors: Mapping[ModelId, rank.Floats]
) -> list[_Chosen]:
    if query.mode in (Mode.RECENT, Mode.RANDOM):
        return _listed(parts, query)
    if query.mode is Mode.GREP:
        return _containing(parts, _everything(parts), query.text.split(), query.limit)
    ranked = _ranked(parts, query, vectors)
    if query.quoted:
        ranked = _quoted(parts, query, ranked)
    if query.mode is Mode.THREAD:
        return _around(parts, ranked[0], query.limit) if ranked else []
    return ranked[: query.limit]


def _ranked(
    parts: Sequence[Part], query: Query, vectors: Mapping[ModelId, rank.Floats]
) -> list[_Chosen]:
    """The candidates that have anything for them, best first."""
    terms = asked(query.text)
    by_words = query.mode is not Mode.MEANING
    by_meaning = query.mode is not Mode.WORDS
    evidence = [
        gather.gather(
            each.index,
            each.view,
            terms if by_words else Asked(terms.words[:0], terms.grams[:0], terms.stops[:0]),
            vectors.get(each.index.nearest.name or ModelId("")) if by_meaning else None,
            each.allowed,
        )
        for each in parts
    ]
    canvas, words, grams, meaning = joined.joined(evidence)
    rows, which = joined.joined_rows(evidence)
    question = rank.Question(terms.words, tuple(dates.mentioned(query.text)))
    found = rank.rank(
        canvas, words if by_words else None, grams if by_words else None, meaning, question
    )
    found_by = (found.lexical > 0) | (meaning is not None and meaning.known)
    places = np.flatnonzero(canvas.filled & found_by)
    places = places[_in_scope(parts, rows[places], which[places])]
    # Equal scores: what was learned last first, then in the order of the file.
    order = np.lexsort((-rows[places], -found.score[places]))
    return [
        _Chosen(int(which[p]), int(rows[p]), float(found.score[p]), bool(found.weak[p]))
        for p in places[order[: EXAMINED if query.quoted else query.limit]].tolist()
    ]


def _in_scope(parts: Sequence[Part], rows: Rows, which: Rows) -> NDArray[np.bool_]:
    inside = np.ones(len(rows), np.bool_)
    for number, each in enumerate(parts):
        if each.allowed is not None:
            own = which == number
            inside[own] = each.allowed[rows[own]]
    return inside


def _everything(parts: Sequence[Part]) -> list[_Chosen]:
    """All that is in scope, what was written last first."""
    newest: list[tuple[int, int, int]] = []
    for number, each in enumerate(parts):
        for source, written in sources.by_time(each.view):
            place = each.index.number_of(source)
            if place is not None:
                newest.append((-written, number, place))
    newest.sort()
    found: list[_Chosen] = []
    for _, number, place in newest:
        held, allowed = parts[number].index.places[place], parts[number].allowed
        if held is not None and (allowed is None or allowed[held.first]):
            found += [_Chosen(number, row) for row in range(held.first, held.end)]
    return found


def _listed(parts: Sequence[Part], query: Query) -> list[_Chosen]:
    every = _everything(parts)
    if query.text or query.quoted:
        every = _containing(parts, every, [*query.text.split(), *query.quoted], len(every))
    if query.mode is Mode.RANDOM:
        return random.sample(every, min(query.limit, len(every)))
    return every[: query.limit]


def _quoted(parts: Sequence[Part], query: Query, ranked: list[_Chosen]) -> list[_Chosen]:
    """What holds every quoted phrase first, best first, then the others."""
    best = _containing(parts, ranked, query.quoted, len(ranked))
    seen = {(one.part, one.row) for one in best}
    if len(best) < query.limit:
        others = _containing(parts, _everything(parts), query.quoted, query.limit)
        best += [one for one in others if (one.part, one.row) not in seen]
        seen.update((one.part, one.row) for one in best)
    return best + [one for one in ranked if (one.part, one.row) not in seen]


def _containing(
    parts: Sequence[Part], chosen: list[_Chosen], phrases: Sequence[str], limit: int
) -> list[_Chosen]:
    """Those whose text holds every phrase, whatever the case, the first `limit` of them."""
    wanted = [_folded(phrase) for phrase in phrases]
    found: list[_Chosen] = []
    for one in chosen:
        text = _text(parts[one.part], one.row)
        if text is not None and all(phrase in _folded(text) for phrase in wanted):
            found.append(one)
            if len(found) >= limit:
                break
    return found


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _around(parts: Sequence[Part], best: _Chosen, limit: int) -> list[_Chosen]:
    """The best hit and what stands around it in its file, in order."""
    index = parts[best.part].index
    place = index.places[index.place.held[best.row]]
    if place is None:
        return [best]
    first = max(place.first, min(best.row - limit // 2, place.end - limit))
    return [best._replace(row=row) for row in range(first, min(first + limit, place.end))]


def _counted(part: Part) -> tuple[int, int]:
    """Passages of files, and memories, that are in scope."""
    index, allowed = part.index, part.allowed
    if allowed is None:
        return index.passages - index.memory_rows, index.memories
    inside = index.place.held[allowed]
    of_memories = index.is_memory.held[inside]
    memories = len(np.unique(inside[of_memories]))
    return len(inside) - int(np.count_nonzero(of_memories)), memories


def _text(part: Part, row: int) -> str | None:
    return passages.text(part.view, part.index.rows.held["passage"][row].item())


def _hit(parts: Sequence[Part], chosen: _Chosen) -> Hit | None:
    part = parts[chosen.part]
    index, view = part.index, part.view
    place = index.places[index.place.held[chosen.row]]
    text = _text(part, chosen.row)
    if place is None or text is None:
        return None
    row = index.rows.held[chosen.row]
    folder = part.identity
    date = datetime.fromtimestamp(sources.written_ns(view, place.source) / 1e9).date()
    if place.memory is not None:
        return Hit(
            Kind.MEMORY,
            folder.name,
            "",
            0,
            0,
            text,
            date.isoformat(),
            chosen.score,
            f"{folder.id[:8]}:{place.memory[:8]}",
            weak=chosen.weak,
        )
    where = sources.path(view, place.source)
    if where is None:
        return None
    return Hit(
        Kind.PASSAGE,
        folder.name,
        "/" + where.decode("utf-8", "surrogateescape"),
        int(row["first_line"]),
        int(row["last_line"]),
        text,
        date.isoformat(),
        chosen.score,
        labels=sources.labels(view, place.source),
        weak=chosen.weak,
    )
