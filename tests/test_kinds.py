"""Which kinds of answers are asked for, and told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geniuzfs.kinds import NAME, TIME, asked_kinds, told_kinds


@pytest.mark.parametrize(
    "question",
    [
        "When did the lease begin?",
        "Since when do we have the boat?",
        "how long does the paint dry",
        "How often is the boiler checked?",
        "In which month was the harvest?",
        "Wann beginnt der Kurs?",
        "Wie lange dauert die Fahrt?",
        "Quand part le train ?",
        "¿Cuándo empieza el curso?",
        "Когда начинается курс?",
        "租约什么时候开始？",
        "会議はいつですか",
        "회의는 언제입니까?",
    ],
)
def test_a_time_is_asked_for(question: str) -> None:
    assert asked_kinds(question) & TIME


@pytest.mark.parametrize(
    "question",
    [
        "Who repaired the boiler?",
        " Where is the spare key",
        "Which plumber did we call?",
        "From where does the flour come?",
        "What is the name of the vet?",
        "What book did Ruth lend me?",
        "What is Ruth's favourite city?",
        "Wer hat den Kessel repariert?",
        "Où est la clé ?",
        "¿Dónde está la llave?",
        "Где ключ?",
    ],
)
def test_a_name_is_asked_for(question: str) -> None:
    assert asked_kinds(question) & NAME


@pytest.mark.parametrize(
    "question",
    [
        "",
        "What did Ruth do when the pipe burst?",
        "Why is the boiler cold?",
        "How does the pump work?",
        "Why was the vet called in?",
        "boiler pressure",
    ],
)
def test_other_questions_ask_for_no_kind(question: str) -> None:
    assert asked_kinds(question) == 0


@pytest.mark.parametrize(
    "passage",
    [
        "We met yesterday.",
        "It broke two weeks ago!",
        "See you next Friday",
        "Since 1987 it has been ours.",
        "This summer it will be painted.",
        "In April we sow.",
        "Letzte Woche war es kalt.",
        "Nous partons en février.",
        "Llega mañana",
        "Он приехал вчера.",
        "我们昨天见面",
        "会議は来週です、金曜日",
        "지난 주에 만났다",
    ],
)
def test_a_time_is_told(passage: str) -> None:
    assert told_kinds(passage) & TIME


@pytest.mark.parametrize(
    "passage",
    [
        "We went to Lisbon.",
        "He read “the sea” to us.",
        "Thanks! I called Dr. Moreau about it.",
        "Мы были в Казани.",
        "Elle aime Évora.",
        "他在读《海》",
    ],
)
def test_a_name_is_told(passage: str) -> None:
    assert told_kinds(passage) & NAME


@pytest.mark.parametrize(
    "passage",
    [
        "",
        "Thanks, Ruth! That's great. It may work, and I'm glad that I asked.",
        "It was here for a week, just as we march on.",
        "Hier ist nichts.",
        "мы были дома",
    ],
)
def test_other_passages_tell_no_kind(passage: str) -> None:
    assert told_kinds(passage) == 0


@given(st.text(max_size=200))
def test_any_text_has_its_kinds(text: str) -> None:
    assert asked_kinds(text) in range(4)
    assert told_kinds(text) in range(4)
