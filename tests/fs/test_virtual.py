"""The parts of generated files that need no mount."""

import threading
from errno import EAGAIN, ESHUTDOWN
from posixpath import normpath

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from pyfuse3 import FUSEError

from geniuzfs.errors import Stale, UsageError
from geniuzfs.fs.asking import QUESTION_MAX, UNASKED, Asked
from geniuzfs.fs.finding import Hit, hits, is_ranked
from geniuzfs.fs.probes import is_probe
from geniuzfs.fs.questions import THREADS, WAITING_MAX, Questions
from geniuzfs.fs.virtual import VIRTUAL, Answer, Recall, Virtuals
from geniuzfs.model import NAME_MAX, Scope

HERE = Scope(None)

# Numbers


def test_a_name_keeps_its_number_while_the_kernel_knows_it() -> None:
    known = Virtuals()
    first = known.called(Answer, HERE, b"", b"tea")
    first.lookups = 2
    assert first.id >= VIRTUAL
    assert known.called(Answer, HERE, b"", b"tea") is first
    assert known.called(Recall, HERE, b"", b"tea").id != first.id
    known.forget([(first.id, 1), (first.id + 99, 1)])
    assert known[first.id] is first
    known.forget([(first.id, 1)])
    with pytest.raises(Stale):
        known[first.id]
    assert known.called(Answer, HERE, b"", b"tea").id > first.id


def test_an_open_file_is_kept_when_the_kernel_forgets_it_and_when_its_name_is_renewed() -> None:
    known = Virtuals()
    first = known.called(Answer, HERE, b"", b"tea")
    first.opens = 1
    known.forget([(first.id, 1)])
    second = known.renewed(Answer, HERE, b"", b"tea")
    assert known[first.id] is first
    first.opens = 0
    known.let_go(first)
    assert known.called(Answer, HERE, b"", b"tea") is second


# Probes


@pytest.mark.parametrize(
    "name",
    [b"what did we decide", b"4913 miles", b"HEADs", b"tea,very", b"sp.", b"a.b", b"refs?", b"~a"],
)
def test_a_question_is_no_probe(name: bytes) -> None:
    assert not is_probe(name)


@given(st.binary(min_size=1))
def test_a_probe_with_any_bytes_in_it_is_a_probe(name: bytes) -> None:
    assert is_probe(b"." + name)
    assert is_probe(name + b",v")
    assert is_probe(name + b"~")


# What is found

NAMES = st.binary(min_size=1, max_size=NAME_MAX).filter(lambda name: not set(name) & set(b"/\0"))


@given(st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=120), st.lists(NAMES, max_size=3))
def test_links_point_to_what_was_found(files: list[list[bytes]], where: list[bytes]) -> None:
    files = [[name for name in file if name not in (b".", b"..")] or [b"x"] for file in files]
    where = [name for name in where if name not in (b".", b"..")]
    paths = [b"/".join([*where, *file]) for file in files]
    links = hits(paths, len(where))
    from_ = b"/".join([b"", *where, b".find", b"query", b""])
    assert [normpath(from_ + link.target) for link in links] == [b"/" + path for path in paths]
    names = [link.name for link in links]
    assert len(set(names)) == len(names)
    assert all(len(name) <= NAME_MAX and b"/" not in name and is_ranked(name) for name in names)
    assert sorted(names) == names


def test_a_long_name_is_cut_at_the_border_of_a_character() -> None:
    (hit,) = hits(["日".encode() * 85], 0)
    assert hit.name == b"01 " + "日".encode() * 84
    assert hits([b"a" * 255], 0)[0].name == b"01 " + b"a" * 252


def test_what_lies_elsewhere_is_reached_by_way_of_the_top() -> None:
    assert hits([b"notes.md"], 2) == [Hit(b"01 notes.md", b"../../../../notes.md")]


# One file to ask and to be answered in


async def _echo(question: bytes) -> bytes:
    if question == b"bad":
        raise UsageError("bad")
    return b"<" + question * 3 + b">"


@given(st.binary(max_size=50).map(bytes.strip), st.integers(1, 20), st.booleans())
def test_the_answer_is_read_from_where_the_question_ended_or_from_0(
    question: bytes, size: int, rewound: bool
) -> None:
    async def read() -> None:
        asked = Asked(_echo)
        offset = asked.write(0, question) if question else 0
        position, said = 0 if rewound else offset, b""
        while part := await asked.read(position, size):
            said, position = said + part, position + len(part)
        assert said == (b"<" + question * 3 + b">" if question and question != b"bad" else UNASKED)
        assert await asked.read(0, 1 << 20) == said

    trio.run(read)


def test_a_question_that_failed_is_not_part_of_the_next() -> None:
    async def ask() -> None:
        asked = Asked(_echo)
        asked.write(0, b"bad")
        for _ in range(2):
            with pytest.raises(UsageError):
                await asked.read(3, 10)
        asked.write(3, b"good")
        assert await asked.read(7, 100) == b"<goodgoodgood>"

    trio.run(ask)


def test_a_question_has_a_limit() -> None:
    asked = Asked(_echo)
    asked.write(0, b"q" * QUESTION_MAX)
    with pytest.raises(FUSEError):
        asked.write(QUESTION_MAX, b"q")


# Questions on their way


class Counter:
    """A question that waits until it is let through."""

    def __init__(self) -> None:
        self.calls = 0
        self.through = threading.Event()
        self.begun = threading.Semaphore(0)

    def __call__(self) -> int:
        self.calls += 1
        self.begun.release()
        self.through.wait(30)
        return self.calls


async def _begun(counter: Counter, times: int = 1) -> None:
    for _ in range(times):
        await trio.to_thread.run_sync(counter.begun.acquire)


def test_those_who_ask_the_same_share_one_flight_and_its_error() -> None:
    async def ask() -> None:
        questions, counter, said = Questions(30), Counter(), []

        async def one() -> None:
            said.append(await questions.ask("key", counter))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(one)
            await _begun(counter)
            await trio.testing.wait_all_tasks_blocked()
            counter.through.set()
        assert said == [1] * 5
        assert await questions.ask("key", counter) == 2

        def fail() -> None:
            raise UsageError("no")

        with pytest.raises(UsageError):
            await questions.ask("key", fail)

    trio.run(ask)


def test_what_is_late_is_dropped_and_keeps_its_thread() -> None:
    async def ask() -> None:
        questions, counter = Questions(0.05), Counter()
        for number in range(THREADS):
            assert await questions.ask(number, counter) is None
        assert await questions.ask("more", lambda: 1) is None
        counter.through.set()
        questions.seconds = 30
        assert await questions.ask("more", lambda: 1) == 1

    trio.run(ask)


def test_too_many_are_refused_and_the_end_frees_all() -> None:
    async def ask() -> None:
        questions, counter, ended = Questions(30), Counter(), []

        async def one(number: int) -> None:
            try:
                await questions.ask(number, counter)
            except FUSEError as error:
                ended.append(error.errno)

        async with trio.open_nursery() as nursery:
            for number in range(WAITING_MAX):
                nursery.start_soon(one, number)
            await _begun(counter, THREADS)
            with pytest.raises(FUSEError) as refused:
                await questions.ask("one more", counter)
            assert refused.value.errno == EAGAIN
            questions.end()
        assert ended == [ESHUTDOWN] * WAITING_MAX
        with pytest.raises(FUSEError):
            await questions.ask("too late", counter)
        assert counter.calls == THREADS
        counter.through.set()

    trio.run(ask)
