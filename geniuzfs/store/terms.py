"""Text → words and n-grams: one tokenizer for learning and asking.

Hides: how text becomes terms. Words are those of SQLite's own FTS5 tokenizers, so that they come
at C speed (4 us a paragraph); n-grams are cut from the words' spelling. A term is known by 32 bits.
Promises: the same text gives the same keys in every process and release of one schema.
Refuses: to know what a term means to a ranking.

Scripts that are written with spaces give words (stemmed, without diacritics) and trigrams of
`_word_` (diacritics kept: they carry words in Vietnamese). Han, kana and Hangul give bigrams and
single characters, of which a question asks only where a run is one character long; Thai, Lao,
Khmer and Burmese give trigrams. Scripts without spaces give no words: a run is a sentence there,
which hardly ever comes twice. Hangul has spaces, so it gives both.
"""

import re
import threading
import zlib
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, cast
from unicodedata import normalize

import apsw
import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint32]
Counts = NDArray[np.uint8]

_NOTHING: Keys = np.empty(0, np.uint32)


class Terms(NamedTuple):
    """What a text is made of. Keys are sorted and unique; counts stand beside them, 255 at most."""

    words: Keys
    word_counts: Counts
    grams: Keys
    gram_counts: Counts
    length: float
    """Words; where they stand without spaces, two characters (Thai and its like: four) for one."""
    gram_length: int
    """n-grams, without the single characters."""


class Asked(NamedTuple):
    """The terms of a question, each once, sorted: stop-words only where there is nothing else."""

    words: Keys
    grams: Keys
    stops: Keys = _NOTHING
    """The stop-words that were left out. That no passage has them says that the question is in
    another language."""


# Without Mn and Mc in a word, Hindi would be cut at its vowel signs (recall@1 .654 against .905).
_CATEGORIES = ("categories", "L* N* Co Mn Mc")
_WORD_SEED = 0
_GRAM_SEED = 0x9E3779B9

_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
_HAN_KANA = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u3130\u31a0-\u31bf\u31f0-\u31ff"
_HAN_KANA += "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
_THAI_AND_LIKE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\ua9e0-\ua9ff\uaa60-\uaa7f"

_UNSPACED = re.compile(f"[{_HAN_KANA}{_THAI_AND_LIKE}]+")
_RUNS = re.compile(
    f"(?P<pairs>[{_HAN_KANA}{_HANGUL}]+)|(?P<triples>[{_THAI_AND_LIKE}]+)"
    f"|[^{_HAN_KANA}{_HANGUL}{_THAI_AND_LIKE}]+"
)
_IS_HANGUL = re.compile(f"[{_HANGUL}]")

# English alone, since what is frequent elsewhere has little weight anyway. With them kept, LoCoMo's
# hit@10 by words fell from .681 to .651. The one-letter parts come from "what's" and "don't".
_STOP = frozenset(
    """a about an and are as at be been by can could did do does for from had has have he her him
    his how i if in into is it its me my of on or our s she should so t than that the their them
    then there these they this those to us was we were what when where which who whom whose why will
    with would you your""".split()  # noqa: SIM905
)


class _Splitter:
    """An FTS5 tokenizer that several threads may share."""

    def __init__(self, name: str, *args: str) -> None:
        self._connection = apsw.Connection(":memory:")
        self._tokenizer = self._connection.fts5_tokenizer(name, [*args, *_CATEGORIES])
        self._lock = threading.Lock()

    def __call__(self, text: str) -> list[str]:
        coded = text.encode("utf-8", "replace")
        with self._lock:
            found = self._tokenizer(
                coded,
                apsw.FTS5_TOKENIZE_DOCUMENT,
                None,
                include_offsets=False,
                include_colocated=False,
            )
        return cast(list[str], found)


_STEMS = _Splitter("porter", "unicode61", "remove_diacritics", "2")
_SPELLINGS = _Splitter("unicode61", "remove_diacritics", "0")


class _Cut(NamedTuple):
    """One word's n-grams, as the bytes of their keys: a tenth of the memory of integers."""

    grams: bytes
    singles: bytes
    length: float


def terms(text: str) -> Terms:
    """The terms of a passage, or of a heading."""
    folded = _folded(text)
    cuts = _cuts(_SPELLINGS(folded))
    grams = b"".join([cut.grams for cut in cuts])
    singles = b"".join([cut.singles for cut in cuts])
    words, word_counts = _counted(_word_keys(folded))
    gram_keys, gram_counts = _counted(np.frombuffer(grams + singles, np.uint32))
    length = sum([cut.length for cut in cuts], 0.0)
    return Terms(words, word_counts, gram_keys, gram_counts, length, len(grams) // 4)


def asked(query: str) -> Asked:
    """The terms that a question asks for."""
    spelled = _SPELLINGS(_folded(query))
    chosen = [word for word in spelled if word not in _STOP] or spelled
    cuts = _cuts(chosen)
    grams = b"".join([cut.grams or cut.singles for cut in cuts])
    # Not np.unique without counts: that imports numpy.ma, 4 ms of a command's start.
    words, _ = _counted(_word_keys(" ".join(chosen)))
    found, _ = _counted(_word_keys(" ".join(_STOP.intersection(spelled))))
    stops = np.setdiff1d(found, words, assume_unique=True)
    return Asked(words, _counted(np.frombuffer(grams, np.uint32))[0], stops)


def inner(phrase: str) -> Keys:
    """n-grams that every text has in which the phrase stands, be it in the midst of a word. None
    where it is too short.
    """
    words = _SPELLINGS(_folded(phrase))
    grams: list[str] = []
    for place, word in enumerate(words):
        for run in _RUNS.finditer(word):
            part = run.group()
            if run["pairs"]:
                grams += _windows(part, 2) if len(part) > 1 else part
            elif run["triples"]:
                grams += _windows(part, 3) if len(part) > 2 else []
            else:
                # Only between two words of the phrase is the end of one the end of a word.
                left = "_" if place > 0 and run.start() == 0 else ""
                right = "_" if place + 1 < len(words) and run.end() == len(word) else ""
                spelled = f"{left}{part}{right}"
                grams += _windows(spelled, 3) if len(spelled) > 2 else []
    return np.unique(np.frombuffer(_keys(grams), np.uint32))


def word_key(stem: str) -> int:
    """The key of a word as the tokenizer gives it."""
    return zlib.crc32(stem.encode(), _WORD_SEED)


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    # Twice, for folding may undo the first: that is how Unicode defines NFKC_Casefold.
    return normalize("NFKC", normalize("NFKC", text).casefold())


def _word_keys(folded: str) -> Keys:
    spaced = folded if folded.isascii() else _UNSPACED.sub(" ", folded)
    return np.array([word_key(stem) for stem in _STEMS(spaced)], np.uint32)


def _counted(keys: Keys) -> tuple[Keys, Counts]:
    unique, counts = np.unique(keys, return_counts=True)
    return unique, np.minimum(counts, 255).astype(np.uint8)


def _cuts(words: Iterable[str]) -> list[_Cut]:
    # A line of base64 is not worth a place in the cache.
    return [_cut(word) if len(word) <= 40 else _cut.__wrapped__(word) for word in words]


# Few words make up most of a text. 16,384 of them take about 4 MB and give a paragraph of 60
# words its n-grams in a tenth of the time.
@lru_cache(maxsize=16_384)
def _cut(word: str) -> _Cut:
    if word.isascii():
        return _Cut(_keys(_windows(f"_{word}_", 3)), b"", 1.0)
    grams: list[str] = []
    singles: list[str] = []
    length = 0.0
    for run in _RUNS.finditer(word):
        part = run.group()
        if run["pairs"]:
            grams += _windows(part, 2) if len(part) > 1 else []
            singles += part
            length += 1.0 if _IS_HANGUL.search(part) else len(part) / 2
        elif run["triples"]:
            grams += _windows(part, 3)
            length += len(part) / 4
        else:
            grams += _windows(f"_{part}_", 3)
            length += 1.0
    return _Cut(_keys(grams), _keys(singles), length)


def _windows(part: str, size: int) -> list[str]:
    """Every stretch of `size` characters; the whole part where it is shorter."""
    return [part[at : at + size] for at in range(max(1, len(part) - size + 1))]


def _keys(grams: Iterable[str]) -> bytes:
    return np.array([zlib.crc32(gram.encode(), _GRAM_SEED) for gram in grams], np.uint32).tobytes()
