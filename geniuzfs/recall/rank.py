"""Candidate passages → their scores: the one formula that orders an answer.

Hides: how words, n-grams, meaning, dates and a conversation's habits are weighed against each
other, and how a passage's neighbours count for it.
Promises: pure arithmetic; finite scores for any input; the same formula without a part that is
missing (no model: no meaning).
Refuses: to find candidates, and to break ties: equal scores are equal.

Passages lie on a canvas: one array place each, neighbours in a file next to each other, at least
REACH empty places between two that are no neighbours. So a neighbour is a slice away.
"""

from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from geniuzfs.dates import Mention, days_since_1970

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

_EPOCH = date(1970, 1, 1).toordinal()

NO_DAY = -(2**31)
"""In Canvas.days: the passage has no date."""

KERNEL = {-3: 0.25, -2: 0.40, -1: 0.70, 1: 0.40, 2: 0.25, 3: 0.15}
"""Distance of a neighbour → what it counts for a passage. What was said before counts more."""

REACH = max(KERNEL)
"""Empty places between passages that are no neighbours."""

# All weights were found on five LoCoMo conversations and five XQuAD languages; changes below about
# .01 there are noise, so they are round.
_WORDS = 0.36
_GRAMS = 0.30
_MEANING = 0.28
_MEANING_OF_NOTES = 0.36  # XQuAD's paragraphs: +.004; turns, of which many are alike: -.004 hit@5
_MEANING_ALONE = 0.50  # on top of it, as far as words and n-grams explain nothing
_DATE = 0.30  # with .55 all that was said that day stands before the answer: hit@5, 10 .003 less

# For a turn that could give the kind of answer that is asked for, a time or a name. On LoCoMo it
# adds .022, .008, .003 to hit@1, 5, 10, and something in every conversation; .08 to .12 do as well.
# Paragraphs hold some of everything: on XQuAD it gains nothing, and when asked in another language,
# where little else counts, it misleads (zh: recall@1 .004 less).
_KIND = 0.1

# The share of a question that its best passage explains when words can be believed. A question
# in another language stays below: its words find .12 of it, in its own .35 (German) to .53.
_ENOUGH_WORDS = 0.31
_ENOUGH_TRIGRAMS = 0.375
_ENOUGH_PAIRS = 0.19  # n-grams of scripts without spaces: fewer of them are shared by chance

_SATURATION = 0.8  # BM25's k1
_LENGTH = 0.7  # and b
_CONTEXT = 0.5  # titles as file names: +.002 on XQuAD, +.004 with the question in another language

# Evidence is told as a share of these.
_FULL_WORDS = 0.28
_FULL_TRIGRAMS = 0.335
_FULL_PAIRS = 0.165

# Below these a passage is weak: by words alone, by meaning alone, by both. The question may be in
# another language where all are weak by words: then one that has not even _FOREIGN is judged by
# meaning alone.
_WEAK_WORDS = 0.6
_WEAK_MEANING = 0.05
_WEAK_BOTH = 1.95
_FOREIGN = 0.2

# What a passage without a vector gets for V, of its part of the best score by words and n-grams.
# With 3 of 10 vectors missing, hit@10 on LoCoMo is .892 (nothing: .848; all vectors: .904).
_UNKNOWN = 0.85


@dataclass(frozen=True, slots=True)
class Canvas:
    """What is known of the candidates whatever is asked. All arrays have C places; where `filled`
    is False the others are 0 (days: NO_DAY).
    """

    filled: Flags
    words: Floats
    """Terms.length of each passage."""
    grams: Floats
    """Terms.gram_length of each passage."""
    dialogue: Flags
    """The passage is a turn of a conversation; the next two matter only there."""
    question: Flags
    """It ends in a question mark."""
    speaker: NDArray[np.uint32]
    """Key of the first word of the speaker's name, as terms gives it; 0: none."""
    days: NDArray[np.int32]
    """Days since 1970-01-01 of what the passage belongs to, or NO_DAY."""
    kinds: NDArray[np.uint32] | None = None
    """The kinds of answers that the passage could give, a bit each; None: 0 everywhere."""

    def __post_init__(self) -> None:
        if self.kinds is None:
            object.__setattr__(self, "kinds", np.zeros(len(self.filled), np.uint32))


@dataclass(frozen=True, slots=True)
class Matches:
    """Which terms of the question are where: T of them are found somewhere."""

    counts: Floats
    """(T, C): how often the passage itself has the term."""
    idf: Floats
    """(T,): `idf()` of each."""
    unfound: float
    """Sum of the idf of the question's terms that no passage in scope has; among words, of its
    stop-words too."""
    context: Floats | None = None
    """(T, C): how often the headings over the passage and its file's name have the term."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """How near the passages' vectors are to the question's."""

    cosine: Floats
    """(C,): each passage's own; anything where there is no vector."""
    known: Flags
    """(C,): the passage has a vector."""
    norm: Floats
    """(C,): the length of the passage's vector after `windowed` over its neighbours' vectors."""
    mean: float
    """Of the cosines of all passages in scope."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the question says besides its terms' matches."""

    words: NDArray[np.uint32]
    """Keys of its words."""
    dates: tuple[Mention, ...] = ()
    kinds: int = 0
    """The kinds of answers that it asks for, the bits of Canvas.kinds; 0: none, or unknown."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One place a canvas place."""

    score: Floats
    """Higher is better; -inf where the canvas is empty."""
    weak: Flags
    """The evidence says that this is probably no answer. A label, no reason to hide it."""
    lexical: Floats
    """What words or n-grams explain of the question; 1 and more: as much as can be wished."""
    cosine: Floats
    """Cosine with the passage and its neighbours; 0 where unknown."""


def idf(document_frequency: NDArray[np.int64], passages: int) -> Floats:
    """Weight of a term that `document_frequency` of the `passages` in scope have: above 0 even
    where all have it, for in a folder of two notes every word is in half of them.
    """
    df = np.minimum(document_frequency, passages)
    return np.log1p((passages - df + 0.5) / (df + 0.5)).astype(np.float32)


def alpha(words: Floats) -> Floats:
    """How much neighbours count for passages of this length: long ones need them less."""
    return np.minimum(1.0, 45.0 / np.maximum(words, 1.0)).astype(np.float32)


def leaning(words: Floats, dialogue: Flags) -> Floats:
    """`alpha`, halved outside conversations: a paragraph of a note says more by itself than a turn
    does. In two projects' documentation hit@1 rises from .468 to .613 (tests/bench/notes.py), on
    XQuAD's articles by .002 to .005; turns want all of it (LoCoMo: .555 against .537).
    """
    return alpha(words) * np.where(dialogue, np.float32(1), np.float32(0.5))


def windowed(values: Floats, share: Floats) -> Floats:
    """`values` (..., C) with their neighbours' mixed in; `share`: `leaning` of each place."""
    around = np.zeros_like(values)
    part = np.empty_like(values)
    for distance, weight in KERNEL.items():
        here, there = slice(-distance, None), slice(None, distance)
        if distance > 0:
            here, there = slice(None, -distance), slice(distance, None)
        np.multiply(values[..., there], np.float32(weight), out=part[..., here])
        around[..., here] += part[..., here]
    around *= share
    around += values
    return around


def rank(
    canvas: Canvas,
    words: Matches | None,
    grams: Matches | None,
    meaning: Meaning | None,
    question: Question,
) -> Ranked:
    """Score every passage of the canvas; a part that is None counts nothing.

    Score = .36 W + .30 G + (.36 + .5 (1 - t)) V + .30 D; for turns (.28 + ...) V, and habits. W and
    G are the shares of the question that words and n-grams explain, relative to the best passage,
    times how far that one can be believed; t is that belief, 0 to 1; V is how far a passage's
    cosine is above the mean, relative to the best; D, how well its date fits.
    """
    share = leaning(canvas.words, canvas.dialogue) * canvas.filled
    by_words = _explained(canvas.words, share, words)
    by_grams = _explained(canvas.grams, share, grams)
    enough = _ENOUGH_TRIGRAMS if _has_terms(words) else _ENOUGH_PAIRS
    trust_words, trust_grams = _trust(by_words, _ENOUGH_WORDS), _trust(by_grams, enough)
    score = _WORDS * trust_words * _relative(by_words) + _GRAMS * trust_grams * _relative(by_grams)
    cosine = np.zeros_like(score)
    if meaning is not None:
        trust = _weighted(trust_words, trust_grams, words, grams)
        cosine, near = _nearness(meaning, share)
        by_terms = _relative(score) * np.float32(_UNKNOWN)
        near = np.where(meaning.known, near, by_terms)
        weight = np.where(canvas.dialogue, np.float32(_MEANING), np.float32(_MEANING_OF_NOTES))
        score += (weight + np.float32(_MEANING_ALONE * (1.0 - trust))) * near
    if question.dates:
        score += np.float32(_DATE) * _dated(canvas.days, question.dates)
    if canvas.dialogue.any():
        score += _habits(canvas, question)
    full = _FULL_TRIGRAMS if _has_terms(words) else _FULL_PAIRS
    lexical = np.maximum(by_words / _FULL_WORDS, by_grams / full)
    # Rounded, for vector units work out the last places of an array in another way than the others,
    # and equal passages are to be equal.
    score = np.round(score, 5)
    return Ranked(
        np.where(canvas.filled, score, np.float32(-np.inf)),
        _weak(lexical, cosine, meaning) & canvas.filled,
        lexical,
        cosine,
    )


def _weak(lexical: Floats, cosine: Floats, meaning: Meaning | None) -> Flags:
    """Which passages are probably no answer.

    Measured on best results. Of questions with an answer among the first ten these are called weak:
    .06 (LoCoMo), .01 to .05 (XQuAD), .04 to .18 (XQuAD, asked in another language). Of questions
    without an answer these are: .63, .70 to .91, .37 to .86. Without a model, of the first two
    kinds .05 and .00 to .03 wrongly, .52 and .11 to .66 rightly, and whatever another language
    finds. The cosines are those of multilingual-e5-small, which lie close together: hence the
    distance from their mean.
    """
    by_words: Flags = lexical < _WEAK_WORDS
    if meaning is None:
        return by_words
    above = cosine - np.float32(meaning.mean)
    by_both: Flags = np.minimum(lexical, 2.0) + 20.0 * above < _WEAK_BOTH
    if float(lexical.max(initial=0.0)) < _WEAK_WORDS:
        by_both = np.where(lexical < _FOREIGN, above < _WEAK_MEANING, by_both)
    return np.where(meaning.known, by_both, by_words)


def _has_terms(matches: Matches | None) -> bool:
    return matches is not None and (matches.idf.size > 0 or matches.unfound > 0)


def _explained(length: Floats, share: Floats, matches: Matches | None) -> Floats:
    """BM25 over the windows' counts, as a share of what a passage with all terms could have."""
    if matches is None or not matches.idf.size:
        return np.zeros(len(length), np.float32)
    near = windowed(matches.counts, share)
    if matches.context is not None:
        near += np.float32(_CONTEXT) * matches.context
    around = windowed(length, share)
    mean = max(float(around.sum()) / max(int(np.count_nonzero(length)), 1), 1e-6)
    limit = _SATURATION * (1.0 - _LENGTH + _LENGTH / mean * around)
    near /= near + limit.astype(np.float32)
    most = float(matches.idf.sum()) + matches.unfound
    explained: Floats = (matches.idf / max(most, 1e-6)).astype(np.float32) @ near
    return explained


def _relative(explained: Floats) -> Floats:
    return explained / np.float32(max(float(explained.max(initial=0.0)), 1e-9))


def _trust(explained: Floats, enough: float) -> np.float32:
    """0 to 1: how far to believe a ranking whose best passage explains so much of the question."""
    return np.float32(min(1.0, float(explained.max(initial=0.0)) / enough) ** 1.5)


def _weighted(
    by_words: np.float32, by_grams: np.float32, words: Matches | None, grams: Matches | None
) -> float:
    """The trust in words and n-grams together; one that the question has none of is left out."""
    word_weight = _WORDS if _has_terms(words) else 0.0
    gram_weight = _GRAMS if _has_terms(grams) else 0.0
    both = max(word_weight + gram_weight, 1e-9)
    return float(word_weight * by_words + gram_weight * by_grams) / both


def _nearness(meaning: Meaning, share: Floats) -> tuple[Floats, Floats]:
    """The cosine of each window with the question; and how far it is above the mean, relative to
    the best: -.5 to 1.

    Mixing vectors brings them nearer to every question, the more the less they agree. Half of that
    is taken out: with all of it kept, paragraphs of one article mislead each other (XQuAD, an
    article a file: recall@1 .007 less, in another language .05); with all taken out, LoCoMo
    loses .008 of hit@10, for there it tells turns that say much.
    """
    norm = np.maximum(meaning.norm, np.float32(1e-6))
    cosine: Floats = windowed(np.where(meaning.known, meaning.cosine, np.float32(0.0)), share)
    cosine /= norm
    gain = windowed(meaning.known.astype(np.float32), share) / norm
    usual = np.float32(0.5 * meaning.mean) * (gain + np.float32(1.0))
    above = np.where(meaning.known, cosine - usual, np.float32(0.0))
    best = max(float(above.max(initial=0.0)), 1e-6)
    near: Floats = np.clip(above / np.float32(best), -0.5, 1.0)
    return cosine, near


def _dated(days: NDArray[np.int32], mentions: tuple[Mention, ...]) -> Floats:
    """How well each passage's date fits the best of the mentions: 0 to 1."""
    unique, where = np.unique(days, return_inverse=True)
    fits = [max(_fit(int(one), mention) for mention in mentions) for one in unique]
    return np.array(fits, np.float32)[where]


def _fit(days: int, mention: Mention) -> float:
    """What happened is told on its day, or in the days and weeks after it."""
    if days == NO_DAY:
        return 0.0
    told = date.fromordinal(_EPOCH + days)
    year = told.year if mention.year is None else mention.year
    if mention.month is None:
        return 0.3 if told.year == year else 0.0
    months = (told.year - year) * 12 + told.month - mention.month
    if mention.year is None:
        months %= 12
    if mention.day is None:
        return 1.0 if months == 0 else 0.4 if months == 1 and told.day <= 10 else 0.0
    meant = days_since_1970(year, mention.month, mention.day)
    near = _fit_of_day(days - meant) if meant is not None else 0.0
    return max(near, 0.3 if months == 0 else 0.0)


def _fit_of_day(after: int) -> float:
    if 0 <= after <= 1:
        return 1.0
    if 2 <= after <= 7:
        return 0.8
    return 0.5 if -3 <= after <= 21 else 0.0


def _habits(canvas: Canvas, question: Question) -> Floats:
    """What is known of conversations: a question answers nothing, what follows one does, long turns
    say more, who is asked about speaks of it himself, and few turns tell a time or a name.
    """
    after_question = np.zeros_like(canvas.question)
    after_question[1:] = canvas.question[:-1]
    length = 0.08 * np.log1p(np.minimum(canvas.words, 30.0))
    habits = length + 0.064 * after_question - 0.088 * canvas.question
    named = np.intersect1d(canvas.speaker[canvas.dialogue], question.words)
    if len(named) == 1:
        habits = habits + np.where(canvas.speaker == named[0], 0.04, -0.04) * (canvas.speaker > 0)
    if canvas.kinds is not None:
        habits = habits + _KIND * (canvas.kinds & np.uint32(question.kinds) != 0)
    counted: Floats = (habits * canvas.dialogue).astype(np.float32)
    return counted
