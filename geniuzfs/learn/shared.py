"""Vectors of memories that Geniuz reads too, while the model that is chosen is its own.

Hides: how it is known that vectors which are there are of that model. Promises: what is embedded
for one program is not embedded again for the other; with any other model, and in a file whose
vectors are of another, `memory_embeddings` is neither read nor written.

Both programs give a text the same vector, so the two never meet as strangers: Geniuz takes the mean
over the tokens, 512 at most, and scales it to length 1, as the card of its model says here
(embed.cards). It embeds a memory's whole text; where that is one passage, both want the same. On
ARM it runs other 8-bit weights of the same model and calls them the same: so does this.
"""

from geniuzfs.embed import cards
from geniuzfs.model import ModelId
from geniuzfs.ports import Embedder
from geniuzfs.store import embeddings, vectors
from geniuzfs.store.connection import Database

MODEL = "paraphrase-multilingual-MiniLM-L12-v2-qint8"
"""What Geniuz calls its model, whatever its weights."""

MEMORIES_A_STEP = 8
"""Whole texts of one call: words that are due meanwhile wait for it, some 0.2 s."""

PASSAGES_A_STEP = 64

_ALIKE = 0.95
"""Of one text by two 8-bit versions of the weights; another model's share nothing."""


class Shared:
    """The vectors that one folder has in common with Geniuz. For one thread."""

    def __init__(self, database: Database, embedder: Embedder) -> None:
        self._database = database
        self._embedder = embedder
        self._strange = False
        """They are unnamed, and not of Geniuz's model."""

    def step(self, model: ModelId) -> bool:
        """Do some of what there is; False when there is nothing. Raises ModelUnavailable, Busy."""
        if not cards.is_of_geniuz(model) or not self._are_its_own(model):
            return False
        return self._embed(model) or self._use(model)

    def _are_its_own(self, model: ModelId) -> bool:
        """Whether those that are there are of Geniuz's model. Until its `backfill` was run they
        bear no name: then one of them is compared with what the model says of its text.
        """
        named = embeddings.model(self._database.view)
        if named is not None or self._strange:
            return named == MODEL
        newest = embeddings.newest(self._database.view)
        if newest is not None:
            text, theirs = newest
            (ours,) = self._embedder.passages([text], model)
            self._strange = theirs is None or float(theirs @ ours) < _ALIKE
            if self._strange:
                return False
        with self._database.txn() as txn:
            embeddings.say_model(txn, MODEL)
            return embeddings.model(txn) == MODEL

    def _embed(self, model: ModelId) -> bool:
        wanted = embeddings.lacking(self._database.view, MEMORIES_A_STEP)
        if not wanted:
            return False
        found = self._embedder.passages([text for _, text in wanted], model)
        with self._database.txn() as txn:
            if embeddings.model(txn) != MODEL:  # another program has begun with another
                return False
            for (memory, _), vector in zip(wanted, found, strict=True):
                embeddings.put(txn, memory, vector)
        return True

    def _use(self, model: ModelId) -> bool:
        with self._database.txn() as txn:
            wanted = vectors.wanted(txn)
            found = embeddings.usable(txn, PASSAGES_A_STEP)
            if wanted is None or wanted[1] != model or not found:
                return False
            for passage, vector in found:
                vectors.put(txn, wanted[0], [passage], vector[None, :])
        return True
