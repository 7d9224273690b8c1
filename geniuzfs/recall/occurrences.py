"""Where terms stand: postings as arrays that are looked at all at once.

A loop over the terms of each segment took 20 ms of a question to 100,000 passages, arrays take 4.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geniuzfs.store.postings import Counts, Picked, Postings

Part = tuple[Postings | Picked, NDArray[np.int64], NDArray[np.int64]]
"""Some terms and their postings, which of the question's terms are there, and where in it."""


class Occurrences(NamedTuple):
    """Postings as three arrays: a term (its place among those asked for), where it stands, and
    how often.
    """

    terms: NDArray[np.int16]
    where: NDArray[np.int32]
    counts: Counts

    def only(self, kept: NDArray[np.bool_]) -> "Occurrences":
        return Occurrences(self.terms[kept], self.where[kept], self.counts[kept])


class Found(NamedTuple):
    """Where the terms of a question stand in one folder."""

    passages: Occurrences
    """By row."""
    contexts: Occurrences
    """By slot."""
    everywhere: NDArray[np.int64]
    """(T,): postings of each term, those of texts that are gone too."""
    read: NDArray[np.bool_]
    """(T,): whether they are in here; those of the most frequent terms may not be."""


def joined(parts: list[Occurrences]) -> Occurrences:
    """All of them, one after the other."""
    if not parts:
        nothing = np.zeros(0, np.int32)
        return Occurrences(nothing.astype(np.int16), nothing, nothing.astype(np.uint8))
    return Occurrences(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def taken(
    part: Postings | Picked,
    places: NDArray[np.int64],
    at: NDArray[np.int64],
    read: NDArray[np.bool_],
) -> Occurrences:
    """The postings of those terms that are to be read, by ordinal."""
    kept = read[places]
    places, at = places[kept], at[kept]
    ordinals, counts = part.taken(at)
    terms = np.repeat(places.astype(np.int16), part.lengths(at))
    return Occurrences(terms, ordinals.astype(np.int32), counts)
