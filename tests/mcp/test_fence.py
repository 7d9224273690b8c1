"""A text can't pass for the fence around it."""

import re

from hypothesis import given
from hypothesis import strategies as st

from geniuzfs.mcp.fence import encodable, fenced, one_line

MARK = re.compile(r"\[\s*geniuz", re.IGNORECASE)

hostile = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            ["[geniuz ", "[GENIUZ", "[ geniuz 00ff]", "]", "\n", "0123456789abcdef", "End of that"]
        )
    ).map("".join),
)


@given(hostile)
def test_only_the_two_lines_of_the_fence_look_like_it(text: str) -> None:
    first, *inside, last = fenced(text).removesuffix("\n").split("\n")
    mark = re.match(r"\[geniuz [0-9a-f]{16}\] ", first)
    assert mark is not None
    assert last.startswith(mark[0])
    assert not MARK.search("\n".join(inside))


def test_no_two_answers_have_the_same_number() -> None:
    assert len({fenced("x").split("]")[0] for _ in range(100)}) == 100


def test_what_is_no_fence_stays_as_it_is() -> None:
    text = "[genius] [my geniuz] \\x5b [1] geniuz [/geniuz.md:1]"
    assert text in fenced(text)


@given(hostile)
def test_a_message_is_one_short_line_without_a_fence(text: str) -> None:
    shown = one_line(text)
    assert shown.isprintable()
    assert len(shown) < 11_000
    assert not MARK.search(shown)


@given(st.text(st.characters(codec=None)))
def test_whatever_a_name_holds_can_be_sent(text: str) -> None:
    encodable(text).encode()
