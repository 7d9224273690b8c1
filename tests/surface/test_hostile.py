"""Whatever is passed in, the answer is an answer or one of our errors, and no more is stored."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from geniuzfs import BadPath, GeniuzError, InvalidRequest
from geniuzfs.api.opened import Opened

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 300),
    st.floats(),
    st.binary(max_size=5),
    st.text(st.characters(exclude_categories=()), max_size=8),
    st.lists(st.none(), max_size=2),
    st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), st.one_of(st.none(), st.text())),
    st.sampled_from(["/a", "/d/", "/d/b", "/", "/../a", "/%252e%252e/a", "/" + "x" * 299, "\0"]),
)
CALLS = {
    "files.put": 4,
    "files.get": 1,
    "files.list": 3,
    "files.iter": 1,
    "files.move": 2,
    "files.delete": 2,
    "files.delete_prefix": 1,
    "keep": 3,
    "recall": 9,
    "context": 2,
    "recent": 1,
    "open_memory": 1,
    "thread": 1,
    "sources.list": 2,
    "sources.delete": 1,
}
"""Call → its arguments."""

KEYWORDS = {
    "files.put": ("path", "text", "labels", "if_version"),
    "files.delete": ("path", "if_version"),
    "recall": ("query", "limit", "since", "until", "on", "path", "labels", "mode", "none_such"),
}


def call(mem: Opened, name: str, arguments: list[Any]) -> Any:
    where, _, method = name.rpartition(".")
    called = getattr(getattr(mem, where) if where else mem, method)
    if name in KEYWORDS:
        return called(**dict(zip(KEYWORDS[name], arguments, strict=True)))
    answer = called(*arguments)
    return list(answer) if name == "files.iter" else answer


@pytest.mark.parametrize("name", CALLS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(given_data=st.data())
def test_odd_arguments_get_an_answer_or_an_error_of_ours(
    mem: Opened, name: str, given_data: st.DataObject
) -> None:
    arguments = [given_data.draw(ODD) for _ in range(CALLS[name])]
    before = [(file.path, file.version) for file in mem.files.iter()]
    said: str | None = None
    try:
        call(mem, name, arguments)
    except GeniuzError as error:
        said = str(error)
    if said is not None:
        assert said.isprintable()
        assert len(said) < 500
        assert [(file.path, file.version) for file in mem.files.iter()] == before


@pytest.mark.parametrize(
    ("path", "error"),
    [("/" + "x" * 299, BadPath), ("/a\0b", BadPath), ("/..%2f..", None), ("/%252e%252e", None)],
)
def test_paths_are_neither_decoded_nor_put_right(
    mem: Opened, path: str, error: type[BadPath] | None
) -> None:
    if error is not None:
        with pytest.raises(error):
            mem.files.put(path, "x")
        assert mem.files.list().total == 0
        return
    assert mem.files.put(path, "x").path == path
    assert [file.path for file in mem.files.iter()] == [path]


def test_three_megabytes_are_refused_and_nothing_is_stored(mem: Opened) -> None:
    with pytest.raises(InvalidRequest):
        mem.files.put("/a", "x" * 3_000_000)
    with pytest.raises(InvalidRequest):
        mem.keep("x" * 3_000_000)
    with pytest.raises(InvalidRequest):
        mem.recall("x" * 3_000_000)
    assert mem.sources.list().total == 0
