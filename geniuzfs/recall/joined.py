"""Several folders' evidence as one: what is rare, or near, counts over all of them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from geniuzfs.recall.gather import Evidence
from geniuzfs.recall.rank import REACH, Canvas, Floats, Matches, Meaning, idf
from geniuzfs.recall.slots import NOWHERE
from geniuzfs.store.passages import NO_DAY

_EMPTY = {"days": NO_DAY}
"""What stands in an empty place, where it isn't 0."""


def joined(parts: Sequence[Evidence]) -> tuple[Canvas, Matches, Matches, Meaning | None]:
    """Several folders' evidence as one canvas: what is rare or near counts over all of them."""
    canvas = Canvas(
        *(
            _beside([getattr(part.canvas, name) for part in parts], _EMPTY.get(name, 0))
            for name in Canvas.__dataclass_fields__
        )
    )
    passages = sum(part.passages for part in parts)
    words = _matches(
        [part.words for part in parts],
        [part.word_context for part in parts],
        np.sum([part.word_frequencies for part in parts], axis=0),
        passages,
    )
    # A question whose stop-words nobody uses is in another language.
    foreign = int(np.count_nonzero(~np.any([part.stops for part in parts], axis=0)))
    weight = float(idf(np.zeros(1, np.int64), passages)[0])
    words = replace(words, unfound=words.unfound + foreign * weight)
    grams = _matches(
        [part.grams for part in parts],
        [part.gram_context for part in parts],
        np.sum([part.gram_frequencies for part in parts], axis=0),
        passages,
    )
    return canvas, words, grams, _meaning(parts)


def joined_rows(parts: Sequence[Evidence]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each place of the joined canvas: its row, and which of `parts` it belongs to."""
    rows = _beside([part.rows for part in parts], NOWHERE)
    which = [np.full(len(part.rows), number) for number, part in enumerate(parts)]
    return rows, _beside(which, NOWHERE)


def _matches(
    counts: list[Floats], contexts: list[Floats], frequencies: NDArray[np.int64], passages: int
) -> Matches:
    weights = idf(frequencies, passages)
    here = frequencies > 0
    context = _beside(contexts, 0)
    here |= context.any(axis=1)
    unfound = float(weights[~here].sum())
    return Matches(
        _beside(counts, 0)[here],
        weights[here],
        unfound,
        context[here] if context[here].any() else None,
    )


def _meaning(parts: Sequence[Evidence]) -> Meaning | None:
    if all(part.meaning is None for part in parts):
        return None
    cosine, known, norm = [], [], []
    total, meant = 0.0, 0
    for part in parts:
        size = len(part.rows)
        held = part.meaning or Meaning(
            np.zeros(size, np.float32), np.zeros(size, np.bool_), np.ones(size, np.float32), 0.0
        )
        cosine.append(held.cosine)
        known.append(held.known)
        norm.append(held.norm)
        total += held.mean * part.meant
        meant += part.meant
    return Meaning(
        _beside(cosine, 0),
        _beside(known, 0),
        _beside(norm, 1),
        total / max(meant, 1),
    )


def _beside(parts: list[NDArray], empty: int) -> NDArray:  # type: ignore[type-arg]
    """Arrays (..., C) one after the other, with REACH empty places in between."""
    if len(parts) == 1:
        return parts[0]
    space = np.full((*parts[0].shape[:-1], REACH), empty, parts[0].dtype)
    spaced = [each for part in parts for each in (part, space)]
    return np.concatenate(spaced[:-1], axis=-1)
