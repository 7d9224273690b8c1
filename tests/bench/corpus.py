"""A folder with any number of made-up passages, for what is measured at scale.

The texts are 60 words of a vocabulary whose frequencies fall as those of English do (Zipf), a
tenth of each passage from the 2,000 words of its topic; the vectors are those of 64 topics with
noise. Quality can't be measured on it, work can: how often terms stand and how dense vectors lie
are as in real notes. Files hold ten passages each.
"""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from geniuzfs.model import ROOT, ModelId, PassageId
from geniuzfs.store import content, passages, postings, tree, vectors
from geniuzfs.store.connection import Database
from geniuzfs.store.passages import NO_DAY, Key, Lesson, Said, Text
from geniuzfs.store.terms import terms

MODEL = ModelId("made-up")
DIMENSION = 384
WORDS = 60
A_FILE = 10
VOCABULARY = 60_000
TOPICS = 64
STOP = 100
_STEP = 100
_SYLLABLES = [
    a + b
    for a in [
        "b",
        "d",
        "f",
        "g",
        "k",
        "l",
        "m",
        "n",
        "p",
        "r",
        "s",
        "t",
        "v",
        "z",
        "sh",
        "th",
        "ch",
        "br",
        "st",
    ]
    for b in "aeiou"
]


class Corpus:
    """The same passages for the same seed."""

    def __init__(self, seed: int = 1) -> None:
        self._random = np.random.default_rng(seed)
        self._words = [_word(number) for number in range(VOCABULARY)]
        weights = 1 / (np.arange(VOCABULARY) + 2.7)
        self._cumulated = np.cumsum(weights / weights.sum())
        self._topics = self._random.standard_normal((TOPICS, DIMENSION)).astype(np.float32)
        self._common = self._random.standard_normal(DIMENSION).astype(np.float32) * 2

    def texts(self, count: int) -> list[tuple[str, int]]:
        """Texts and their topics."""
        picks = np.searchsorted(self._cumulated, self._random.random((count, WORDS)))
        topics = self._random.integers(0, TOPICS, count)
        own = self._random.integers(0, 2_000, (count, WORDS // 10))
        picks[:, : WORDS // 10] = 2_000 + (topics[:, None] * 900 + own) % (VOCABULARY - 2_000)
        return [
            (" ".join(self._words[pick] for pick in row), int(topic))
            for row, topic in zip(picks.tolist(), topics, strict=True)
        ]

    def questions(self, count: int) -> list[tuple[str, int]]:
        """Questions of two words of a topic and four of any but the most frequent: those would be
        stop-words, which questions do not ask for.
        """
        stop = set(self._words[:STOP])
        made = self.texts(count)
        asked = [[word for word in text.split()[4:] if word not in stop] for text, _ in made]
        return [(" ".join(words[:6]), topic) for words, (_, topic) in zip(asked, made, strict=True)]

    def vectors(self, topics: list[int]) -> NDArray[np.float32]:
        """A vector for each topic."""
        noise = self._random.standard_normal((len(topics), DIMENSION)).astype(np.float32)
        found = self._common + self._topics[topics] + noise
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found.astype(np.float32)


def fill(path: Path, count: int, corpus: Corpus) -> Iterator[int]:
    """Write `count` passages into a new folder at `path`, telling how many are there."""
    database = Database.open(path, create=True)
    try:
        with database.txn() as txn:
            tree.make_root(txn, tree.New(0o40755, 0, 0), 1)
            model = vectors.want(txn, MODEL)
        for done in range(0, count, _STEP * A_FILE):
            _write(database, model, corpus, min(_STEP * A_FILE, count - done), done)
            yield done
            while ids := postings.to_merge(database.view):
                merged = postings.merge(database.view, ids)
                written: int | None = None
                for step in merged.steps():
                    with database.txn() as txn:
                        written = step.write(txn, written)
            if database.wal_pages > 20_000:
                database.checkpoint(hold_writers=True)
        with database.txn() as txn:
            while vectors.seal(txn, model):
                pass
            txn.run("DELETE FROM due")
            txn.run("DELETE FROM changes WHERE seq < (SELECT max(seq) FROM changes)")
        database.checkpoint(hold_writers=True)
        database.view.row("PRAGMA optimize")
    finally:
        database.close()


def _write(
    database: Database, model: vectors.ModelKey, corpus: Corpus, count: int, base: int
) -> None:
    made = corpus.texts(count)
    found = corpus.vectors([topic for _, topic in made])
    prepared = [(text, terms(text)) for text, _ in made]
    with database.txn() as txn:
        new = []
        for first in range(0, count, A_FILE):
            part = prepared[first : first + A_FILE]
            name = f"note {base + first}.md"
            inode = tree.create(txn, ROOT, name.encode(), tree.New(0o100644, 0, 0), 1)
            joined = "\n\n".join(text for text, _ in part).encode()
            content.save(txn, inode.number, content.Save(len(joined), 1, 1, {0: joined}))
            context = _hash(name)
            texts = {_hash(text): Text(_hash(text), text, held) for text, held in part}
            texts[context] = Text(context, name, terms(name), context=True)
            said = tuple(
                Said(_hash(text), context, 1 + 2 * n, 1 + 2 * n, NO_DAY, 0, 0)
                for n, (text, _) in enumerate(part)
            )
            new += passages.learn(txn, Key(inode.number), Lesson("learned", b"", said, texts))
        passages.index(txn, new)
        ids = passages.known(txn, [_hash(text) for text, _ in prepared])
        numbers = [PassageId(ids[_hash(text)].id) for text, _ in prepared]
        vectors.put(txn, model, numbers, found)


def _hash(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


def _word(number: int) -> str:
    """A word that can be said: shorter where it is more frequent."""
    parts = []
    number += 1
    while number:
        number, rest = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[rest])
    return "".join(parts)
