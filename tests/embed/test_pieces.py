"""Segmentation: the same numbers as tokenizers gives."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from geniuzfs.embed import e5
from geniuzfs.embed.pieces import Segmenter

NORMALIZER = normalizers.Sequence(
    [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
)
TEXTS = [
    "",
    " ",
    "  two  spaces ",
    "Hello, World! It's 3:45 p.m.",
    "Donaudampfschifffahrtsgesellschaft läuft über Straßen",
    "Привет, как дела? Ёлка",
    "नमस्ते दुनिया, क्षत्रिय",
    "今日は良い天気ですね。東京タワー",
    "机器学习正在改变世界，我们应该怎么办？",
    "مرحبا بالعالم",
    "👩‍👩‍👧‍👦 ☃☃ ☃x☃ \U0001f680",
    "ﬁne ½ ℌ ①",
    "tab\there\nnew line\r\n",
    "▁ a▁b ▁▁",
    "x" * 300,
    "zero\u200bwidth\u00a0space\ufeff",
]


class Both:
    """Our segmenter and that of tokenizers, of the same vocabulary."""

    def __init__(self) -> None:
        with open(e5.find(), "rb") as file:
            pieces, scores = e5.vocabulary(e5.Reader(file.fileno()))
        self.ours = Segmenter(e5.numbered(pieces), scores, e5.UNKNOWN)
        # The specials' names can't occur in a text that is free of private characters.
        named = [piece if piece not in e5.SPECIAL else f"\ue000{piece}" for piece in pieces]
        theirs = models.Unigram(list(zip(named, scores, strict=True)), e5.UNKNOWN, False)
        self.theirs = Tokenizer(theirs)
        self.theirs.normalizer = NORMALIZER
        self.theirs.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)

    def check(self, text: str, limit: int = 10_000) -> None:
        expected = self.theirs.encode(text, add_special_tokens=False).ids
        assert self.ours.segment(text, limit) == expected[:limit]


@pytest.fixture(scope="module")
def both() -> Both:
    return Both()


@pytest.mark.parametrize("text", TEXTS)
def test_the_numbers_are_those_of_tokenizers(both: Both, text: str) -> None:
    both.check(text)
    both.check(text)  # again, out of what is remembered
    both.check(f"{text} {text}")


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs", "Co"]), max_size=60))
def test_any_text_has_the_numbers_of_tokenizers(both: Both, text: str) -> None:
    both.check(text)


@pytest.mark.parametrize("limit", [1, 3, 510])
def test_a_limit_gives_the_first_of_the_numbers(both: Both, limit: int) -> None:
    for text in TEXTS:
        both.check(text * 5, limit)


def test_names_of_special_pieces_are_plain_text(both: Both) -> None:
    found = both.ours.segment("the </s> and <s> and <pad> <mask> <unk>", 100)
    assert not {e5.BEGIN, e5.PAD, e5.END, 250_001} & set(found)


def test_a_long_word_costs_no_more_than_its_beginning(both: Both) -> None:
    assert len(both.ours.segment("机器学习正在改变世界" * 1_000_000, 510)) == 510
