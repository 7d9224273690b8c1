"""The folders of a question: what of each is open, and what of it is in scope."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geniuzfs.model import ROOT, Identity, InodeNumber
from geniuzfs.recall.index import Index
from geniuzfs.recall.query import Query
from geniuzfs.store import passages, sources
from geniuzfs.store.connection import Database
from geniuzfs.store.transactions import View


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

    def text(self, row: int) -> str | None:
        """The text of a row's passage; None when it is gone."""
        return passages.text(self.view, self.index.rows.held["passage"][row].item())


class Chosen(NamedTuple):
    """A row of one of the parts, by its number among them."""

    part: int
    row: int
    score: float = 0.0
    weak: bool = False


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
