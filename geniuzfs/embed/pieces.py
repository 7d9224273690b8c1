"""A text as numbers of pieces: the unigram segmentation of XLM-R's vocabulary.

Hides: how. `tokenizers` keeps its unigram vocabulary as a tree of hash tables: 250 MB
resident and 0.5 s to build for these 250,000 pieces. One dict takes 45 MB and 0.1 s.
Promises: the same numbers as `tokenizers` gives (a test compares them), but for the
names of special tokens, such as `</s>`, which are plain text here: a note that
contains one must not end its own passage.
"""

from collections.abc import Mapping, Sequence

from tokenizers import Regex, normalizers

SPACE = "\u2581"
_UNKNOWN_PENALTY = 10.0
_CHARACTERS_READ = 65_536
_WORDS_KEPT = 50_000
"""Segmented words that are remembered: few words of a text are new, so 0.8 ms become 0.1."""
_WORD_KEPT = 32
"""Characters of the longest word that is: in Chinese a sentence is one, and never comes again."""


class Segmenter:
    """The best segmentation, by the sum of the pieces' scores (Kudo 2018, Viterbi)."""

    def __init__(self, numbers: Mapping[str, int], scores: Sequence[float], unknown: int) -> None:
        """`numbers`: the pieces that text may become. `scores`: of each number."""
        self._numbers = numbers
        self._scores = scores
        self._unknown = unknown
        self._unknown_score = min(scores) - _UNKNOWN_PENALTY
        self._longest = max(map(len, numbers))
        self._seen: dict[str, tuple[int, ...]] = {}
        self._normalizer = normalizers.Sequence(
            [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
        )

    def segment(self, text: str, limit: int) -> list[int]:
        """The numbers of the first `limit` pieces of `text`."""
        normal: str = self._normalizer.normalize_str(text[:_CHARACTERS_READ])
        # No piece is longer than `longest`, so what lies beyond can't be among the first.
        normal = normal[: limit * self._longest].replace(" ", SPACE)
        if not normal:
            return []
        found: list[int] = []
        # No piece has SPACE but as its first character, so the words are independent.
        for word in normal.removeprefix(SPACE).split(SPACE):
            found += self._word(SPACE + word)
            if len(found) >= limit:
                break
        return found[:limit]

    def _word(self, word: str) -> tuple[int, ...]:
        known = self._seen.get(word)
        if known is None:
            known = self._best(word)
            if len(word) > _WORD_KEPT:
                return known
            if len(self._seen) >= _WORDS_KEPT:
                self._seen.clear()
            self._seen[word] = known
        return known

    def _best(self, word: str) -> tuple[int, ...]:
        numbers, scores, longest, size = self._numbers, self._scores, self._longest, len(word)
        best: list[float | None] = [0.0, *[None] * size]  # score up to each character
        last = [(0, 0)] * (size + 1)  # where the piece that ends there starts, and its number
        for start in range(size):
            so_far = best[start]
            assert so_far is not None  # a single character can always be unknown
            single = False
            for end in range(start + 1, min(start + longest, size) + 1):
                number = numbers.get(word[start:end])
                if number is None:
                    continue
                single = single or end == start + 1
                score, other = so_far + scores[number], best[end]
                if other is None or score > other:
                    best[end], last[end] = score, (start, number)
            if not single:
                score, other = so_far + self._unknown_score, best[start + 1]
                if other is None or score > other:
                    best[start + 1], last[start + 1] = score, (start, self._unknown)
        return self._back(last, size)

    def _back(self, last: list[tuple[int, int]], end: int) -> tuple[int, ...]:
        found: list[int] = []
        while end:
            end, number = last[end]
            # Unknown characters in a row are one unknown piece.
            if not (number == self._unknown and found and found[-1] == number):
                found.append(number)
        return tuple(reversed(found))
