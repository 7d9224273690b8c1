"""A question is answered: candidates, ranking, hits.

Hides: in which order scope, evidence and ranking are asked, and what each mode means. Promises:
what an answer says of one folder comes from one snapshot; of equal scores, what was learned last
comes first. Refuses: to learn, and to wait for a model: it takes the question's vector or None.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geniuzfs import dates
from geniuzfs.kinds import asked_kinds
from geniuzfs.model import MemoryId, ModelId
from geniuzfs.recall import gather, joined, listing, rank, remembered
from geniuzfs.recall.hits import Hit, Kind
from geniuzfs.recall.parts import Chosen, Part
from geniuzfs.recall.query import Mode, Query
from geniuzfs.store import memories, sources
from geniuzfs.store.terms import Asked, asked

EXAMINED = 4_096
"""Passages whose text is looked at for a quoted phrase, the best first."""

Rows = NDArray[np.int64]


class Result(NamedTuple):
    """What was found in all parts together, and out of how much."""

    hits: tuple[Hit, ...]
    passages: int
    memories: int
    meant: bool
    """Whether vectors had a part in it."""


def search(parts: Sequence[Part], query: Query, vectors: Mapping[ModelId, rank.Floats]) -> Result:
    """The best passages and memories, as `query.mode` understands best. `vectors`: the
    question's, by the model that made it; without one, words alone count there.
    """
    hits = _hits(parts, query, _chosen(parts, query, vectors))
    counts = [_counted(each) for each in parts]
    return Result(
        tuple(hits),
        sum(passages for passages, _ in counts),
        sum(memories for _, memories in counts),
        any(each.index.nearest.name in vectors for each in parts),
    )


def _chosen(
    parts: Sequence[Part], query: Query, vectors: Mapping[ModelId, rank.Floats]
) -> list[Chosen]:
    if not parts:
        return []
    if query.mode in listing.MODES:
        return listing.listed(parts, query)
    ranked = _ranked(parts, query, vectors)
    if query.quoted:
        ranked = listing.quoted(parts, query, ranked)
    if query.mode is Mode.THREAD:
        return _around(parts, ranked[0], query.limit) if ranked else []
    return ranked[: query.limit]


def _ranked(
    parts: Sequence[Part], query: Query, vectors: Mapping[ModelId, rank.Floats]
) -> list[Chosen]:
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
    mentioned = tuple(dates.mentioned(query.text))
    question = rank.Question(terms.words, mentioned, asked_kinds(query.text))
    found = rank.rank(
        canvas, words if by_words else None, grams if by_words else None, meaning, question
    )
    found_by = (found.lexical > 0) | (meaning is not None and meaning.known)
    places = np.flatnonzero(canvas.filled & found_by)
    places = places[_in_scope(parts, rows[places], which[places])]
    # Equal scores: what was learned last first, then in the order of the file.
    order = np.lexsort((-rows[places], -found.score[places]))
    return [
        Chosen(int(which[p]), int(rows[p]), float(found.score[p]), bool(found.weak[p]))
        for p in places[order[: EXAMINED if query.quoted else query.limit]].tolist()
    ]


def _in_scope(parts: Sequence[Part], rows: Rows, which: Rows) -> NDArray[np.bool_]:
    inside = np.ones(len(rows), np.bool_)
    for number, each in enumerate(parts):
        if each.allowed is not None:
            own = which == number
            inside[own] = each.allowed[rows[own]]
    return inside


def _around(parts: Sequence[Part], best: Chosen, limit: int) -> list[Chosen]:
    """The best hit and what stands around it in its file, in order; a memory stays alone."""
    index = parts[best.part].index
    place = index.places[index.place.held[best.row]]
    if place is None or place.memory is not None:
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


def _hits(parts: Sequence[Part], query: Query, chosen: Sequence[Chosen]) -> list[Hit]:
    """`chosen` as hits: of a thread that has a memory in it, all the thread's memories."""
    if query.mode is Mode.THREAD and chosen:
        part = parts[chosen[0].part]
        place = part.index.places[part.index.place.held[chosen[0].row]]
        if place is not None and place.memory is not None:
            return remembered.thread(part.identity, part.view, MemoryId(place.memory), query.limit)
    hits = [hit for one in chosen if (hit := _hit(parts, one, whole=query.full)) is not None]
    if query.full:
        return remembered.once(hits)
    if query.mode is Mode.GREP:
        return [_grepped(hit, listing.phrases_of(query)) for hit in hits]
    return hits


def _grepped(hit: Hit, phrases: Sequence[str]) -> Hit:
    """Of the hit the lines that hold any of the phrases."""
    lines, held = hit.text.split("\n"), listing.lines_holding(hit.text, phrases)
    if not held:
        return hit
    # A passage that begins within a line, or has its line ends mended, is cited no further down.
    first, last = (min(hit.first_line + at, hit.last_line) for at in (held[0], held[-1]))
    text = "\n".join(lines[at] for at in held)
    return hit._replace(text=text, first_line=first, last_line=last)


def _hit(parts: Sequence[Part], chosen: Chosen, *, whole: bool) -> Hit | None:
    part = parts[chosen.part]
    index, view = part.index, part.view
    place = index.places[index.place.held[chosen.row]]
    text = part.text(chosen.row)
    if place is None or text is None:
        return None
    row = index.rows.held[chosen.row]
    folder = part.identity
    if place.memory is not None:
        memory = memories.memory(view, MemoryId(place.memory))
        if memory is None:
            return None
        found = remembered.hit(folder, memory, chosen.score, weak=chosen.weak)
        return found if whole else found._replace(text=text)
    date = datetime.fromtimestamp(sources.written_ns(view, place.source) / 1e9).date()
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
