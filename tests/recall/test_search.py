"""What a question finds, in which scope, and how the index keeps up."""

import random
from collections.abc import Callable

import pytest

from geniuzfs.errors import NotFound
from geniuzfs.recall.index import Index
from geniuzfs.store import memories, paths, xattrs
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.notes import Asker, learn, remove, rename, write


def inode(database: Database, path: str):  # type: ignore[no-untyped-def]
    found = paths.find(database.view, path.encode())
    assert found is not None
    return found


@pytest.fixture
def asker(database: Database) -> Asker:
    """Asks by words and by (made-up) meaning."""
    return Asker(database, FakeEmbedder())


def test_the_passage_is_cited_with_its_lines_and_date(database: Database, asker: Asker) -> None:
    write(database, "deep/notes.md", "# Work\n\nNothing here.\n\nPriya Nair signs\nthe renewal.\n")
    learn(database, FakeEmbedder())
    hit = asker.ask("who signs the renewal").hits[0]
    assert (hit.path, hit.first_line, hit.last_line) == ("/deep/notes.md", 5, 6)
    assert hit.text == "Priya Nair signs\nthe renewal."
    assert hit.date == "2023-11-14"


def test_words_find_what_has_no_vector_yet_and_it_ranks_among_what_has(
    database: Database, asker: Asker
) -> None:
    for number in range(20):
        write(database, f"{number}.md", f"The garden has {number} trees.")
    learn(database, FakeEmbedder())
    write(database, "new.md", "The garden has a fountain.")
    learn(database)
    assert asker.texts("garden fountain")[0] == "The garden has a fountain."


def test_what_is_removed_is_gone_at_once_and_what_comes_is_there(
    database: Database, asker: Asker
) -> None:
    write(database, "one.md", "Alpha lives here.\n\nBeta lives here.")
    write(database, "two.md", "Gamma lives here.")
    learn(database, FakeEmbedder())
    assert len(asker.texts("lives")) == 3
    write(database, "one.md", "Alpha lives here.")
    learn(database, FakeEmbedder())
    assert set(asker.texts("lives")) == {"Alpha lives here.", "Gamma lives here."}
    remove(database, "two.md")
    assert asker.texts("gamma lives") == ["Alpha lives here."]
    write(database, "three.md", "Delta lives here.")
    learn(database)
    assert asker.texts("delta")[0] == "Delta lives here."


def test_where_all_text_is_gone_nothing_is_found(database: Database) -> None:
    write(database, "one.md", "Alpha beta.")
    learn(database)
    remove(database, "one.md")  # its terms stand in their segment until that is merged
    for question in ("alpha", "one", "beta mode:grep", "alpha mode:recent"):
        assert Asker(database).texts(question) == []
    write(database, "two.md", "Alpha gamma.")
    learn(database)
    assert Asker(database).texts("alpha") == ["Alpha gamma."]


def test_a_heading_and_a_file_name_bring_in_what_stands_beneath_them(database: Database) -> None:
    write(database, "kitchen.md", "# Pancakes\n\nFlour, milk and two eggs.\n")
    write(database, "garden.md", "# Roses\n\nCut them in March.\n")
    learn(database)
    assert Asker(database).texts("pancakes") == ["Flour, milk and two eggs."]
    assert Asker(database).texts("kitchen") == ["Flour, milk and two eggs."]


def test_the_neighbours_of_a_passage_count_for_it(database: Database) -> None:
    write(database, "a.md", "We met Anna in Lisbon.\n\nShe sells boats.\n\nIt was hot.")
    write(database, "b.md", "He sells boats.\n\nNobody met anybody.")
    learn(database)
    found = Asker(database).texts("what does Anna in Lisbon sell? boats")
    assert found.index("She sells boats.") < found.index("He sells boats.")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("tree", {"root tree", "deep tree", "old tree"}),
        ("tree path:sub", {"deep tree"}),
        ("tree path:/sub/deep.md", {"deep tree"}),
        ("tree since:2020-01-01", {"root tree", "deep tree"}),
        ("tree until:2019-12-31", {"old tree"}),
        ("tree on:2001", {"old tree"}),
        ("tree label:kind=wood", {"deep tree"}),
        ("tree label:kind=stone", set()),
        ("tree limit:1 since:2020", {"root tree", "deep tree"}),
    ],
)
@pytest.mark.parametrize("embedder", [None, FakeEmbedder()])
def test_scope_time_and_labels_filter_first(
    database: Database, question: str, expected: set[str], embedder: FakeEmbedder | None
) -> None:
    write(database, "root.md", "root tree")
    write(database, "sub/deep.md", "deep tree")
    write(database, "old.md", "old tree")
    with database.txn() as txn:
        txn.run(
            "UPDATE inodes SET mtime_ns = 1000000000000000000 WHERE number = ?",
            (inode(database, "old.md"),),
        )
        xattrs.put(txn, inode(database, "sub/deep.md"), b"user.geniuz.label.kind", b"wood", 1)
    learn(database, embedder)
    found = Asker(database, embedder).texts(question)
    assert set(found) <= expected
    assert len(found) == min(len(expected), 1 if "limit:1" in question else 9)


def test_labels_that_are_no_utf_8_can_be_asked_for(database: Database) -> None:
    write(database, "one.md", "one tree")
    write(database, "two.md", "two trees")
    with database.txn() as txn:
        xattrs.put(txn, inode(database, "one.md"), b"user.geniuz.label.k\xfe", b"\xff", 1)
    learn(database)
    assert Asker(database).texts("tree label:k\udcfe=\udcff") == ["one tree"]
    assert Asker(database).texts("tree label:k=\udcff") == []


def test_a_directory_is_a_scope(database: Database, asker: Asker) -> None:
    write(database, "root.md", "a tree at the top")
    write(database, "sub/deep/er.md", "a tree below")
    learn(database, FakeEmbedder())
    result = asker.ask("tree", inode(database, "sub"))
    assert [hit.path for hit in result.hits] == ["/sub/deep/er.md"]
    assert result.passages == 1


def test_a_path_that_is_not_there_is_an_error(database: Database, asker: Asker) -> None:
    with pytest.raises(NotFound):
        asker.ask("tree path:nowhere")


def test_one_text_in_two_files_is_found_in_both(database: Database, asker: Asker) -> None:
    write(database, "one.md", "The very same words.")
    write(database, "two.md", "The very same words.")
    learn(database, FakeEmbedder())
    assert {hit.path for hit in asker.ask("same words").hits} == {"/one.md", "/two.md"}
    remove(database, "one.md")
    assert [hit.path for hit in asker.ask("same words").hits] == ["/two.md"]
    rename(database, "two.md", "three.md")
    learn(database)
    assert [hit.path for hit in asker.ask("same words").hits] == ["/three.md"]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ('"blue house"', "A blue house stands there."),
        ('"BLUE   house"', "A blue house stands there."),
        ('house "in the blue"', "The house is in the blue."),
        ("mode:grep blue HOUSE th", "A blue house stands there."),
        ("mode:grep tand", "A blue house stands there."),
    ],
)
def test_phrases_and_parts_of_words_are_never_missed(
    database: Database, question: str, first: str
) -> None:
    write(database, "a.md", "A blue house stands there.\n\nThe house is in the blue.")
    for number in range(30):
        write(database, f"{number}.md", f"blue blue, house house {number}")
    learn(database)
    assert first in Asker(database).texts(question)[:1] + Asker(database).texts(question)[:2]


def test_recent_lists_what_was_written_last(database: Database, asker: Asker) -> None:
    for number in range(5):
        write(database, f"{number}.md", f"note {number}")
    learn(database)
    assert asker.texts("mode:recent limit:2") == ["note 4", "note 3"]
    assert len(asker.texts("mode:random limit:3")) == 3
    assert asker.texts("path:1.md") == ["note 1"]


def test_thread_gives_what_stands_around_the_best_hit(database: Database, asker: Asker) -> None:
    write(database, "a.md", "\n\n".join(f"step {n} word{n}" for n in range(9)))
    learn(database)
    assert asker.texts("mode:thread word5 limit:3") == [f"step {n} word{n}" for n in (4, 5, 6)]


NASTY = [
    *"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "AND",
    "NEAR(a b)",
    "a OR",
    '"unbalanced',
    "*",
    "don't",
    "GB/s",
    "😀 emoji 👩‍👩‍👧",
    "שלום עולם",
    "‮evil",
    "的" * 1_333,
    "\x01\x02\t",
    "a" * 4_000,
    "' OR 1=1; --",
    "-rf",
    "the of and",
]


@pytest.mark.parametrize("question", NASTY)
@pytest.mark.parametrize("mode", ["", "mode:grep ", "mode:words ", "mode:thread "])
def test_any_text_may_be_asked(database: Database, question: str, mode: str) -> None:
    write(database, "a.md", "Don't copy at 5 GB/s.\n\n我们决定了价格的问题。\n\nשלום עולם 😀")
    learn(database, FakeEmbedder())
    result = Asker(database, FakeEmbedder()).ask(mode + question)
    assert result.passages == 3


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("价格", "我们决定了价格的问题。"),
        ("don't", "Don't copy at 5 GB/s."),
        ("GB/s", "Don't copy at 5 GB/s."),
        ("שלום", "שלום עולם 😀"),
    ],
)
def test_words_of_any_script_are_found(database: Database, question: str, expected: str) -> None:
    write(database, "a.md", "Don't copy at 5 GB/s.\n\n我们决定了价格的问题。\n\nשלום עולם 😀")
    for number in range(20):
        write(database, f"{number}.md", f"Something else {number}.")
    learn(database)
    assert Asker(database).texts(question)[0] == expected


def flat(index: Index) -> dict[str, object]:
    """What an index says, however its arrays came about."""
    rows = {}
    for place in index.places:
        if place is not None:
            held = index.rows.held[place.first : place.end]
            rows[place.source] = [tuple(row) for row in held.tolist()]
    where = {}
    for slot, id_ in enumerate(index.slots.ids.held.tolist()):
        if index.slots.first.held[slot] >= 0:
            all_ = sorted([int(index.slots.first.held[slot]), *index.slots.others.get(slot, [])])
            where[id_] = (
                [
                    (
                        index.rows.held[row]["passage"].item(),
                        index.rows.held[row]["first_line"].item(),
                    )
                    for row in all_
                ],
                int(index.slots.stretch.held[slot]),
                bool(index.slots.shared.held[slot]),
            )
    vectors = {
        id_: index.nearest.vector[slot] >= 0
        for slot, id_ in enumerate(index.slots.ids.held.tolist())
        if id_ in where
    }
    return {
        "rows": rows,
        "where": {id_: (len(held[0]), *held[1:]) for id_, held in where.items()},
        "vectors": vectors,
        "counts": (index.passages, index.memories, index.memory_rows),
    }


def test_an_index_that_follows_equals_one_that_is_loaded(database: Database) -> None:
    """Random edits; after each some, the followed index against a fresh one, and their answers."""
    chance = random.Random(7)
    words = [f"word{n}" for n in range(40)]
    embedder = FakeEmbedder()
    asker = Asker(database, embedder)
    alive: list[str] = []

    def paragraph() -> str:
        return " ".join(chance.choices(words, k=chance.randint(2, 8)))

    def note() -> None:
        path = chance.choice(["", "sub/"]) + f"{chance.randint(0, 15)}.md"
        write(
            database,
            path,
            "# "
            + paragraph()
            + "\n\n"
            + "\n\n".join(
                chance.choice([paragraph(), "a shared text", "another shared text"])
                for _ in range(chance.randint(1, 6))
            ),
        )
        if path not in alive:
            alive.append(path)

    def gone() -> None:
        if alive:
            remove(database, alive.pop(chance.randrange(len(alive))))

    actions: list[Callable[[], None]] = [note, note, note, gone]
    for _ in range(60):
        for _ in range(chance.randint(1, 4)):
            chance.choice(actions)()
        learn(database, embedder if chance.random() < 0.7 else None)
        question = paragraph() + " shared"
        fresh = Asker(database, embedder)
        kept = {
            (hit.path, hit.first_line, hit.text, round(hit.score, 4))
            for hit in asker.ask(question).hits
        }
        anew = {
            (hit.path, hit.first_line, hit.text, round(hit.score, 4))
            for hit in fresh.ask(question).hits
        }
        assert asker.shelf.index is not None
        assert fresh.shelf.index is not None
        assert flat(asker.shelf.index) == flat(fresh.shelf.index)
        assert kept == anew


# Grep


def test_grep_gives_the_lines_with_any_phrase_of_what_holds_all_newest_first(
    database: Database, asker: Asker
) -> None:
    write(database, "old.md", "Intro.\n\nTea at four.\nNothing here.\nWith Priya\nNair.\n")
    write(database, "new.md", "- Priya Nair takes tea.\n")
    write(database, "half.md", "Tea alone.\n")
    keep(database, "Cake.\nTEA with\nPriya.")
    learn(database, FakeEmbedder())
    hits = asker.ask("grep:tea grep:priya").hits
    assert [(hit.path, hit.first_line, hit.last_line, hit.text) for hit in hits] == [
        ("", 0, 0, "TEA with\nPriya."),
        ("/new.md", 1, 1, "- Priya Nair takes tea."),
        ("/old.md", 3, 5, "Tea at four.\nWith Priya"),
    ]
    (over,) = asker.ask('grep:"four. nothing"').hits  # goes over a line's end
    assert (over.first_line, over.last_line) == (3, 6)


# Kept memories


def keep(database: Database, text: str, parent: str | None = None) -> str:
    with database.txn() as txn:
        return memories.keep(txn, text, None, parent, 1_790_000_000 * 10**9).memory.id


def test_the_thread_of_a_memory_is_all_of_it_from_the_root(
    database: Database, asker: Asker
) -> None:
    root = keep(database, "Who signs the renewal?\n\nAsked by the board.")
    first = keep(database, "Priya Nair does.", root)
    keep(database, "Since May.", first)
    keep(database, "Tea at four.")
    learn(database, FakeEmbedder())
    texts = ["Who signs the renewal?\n\nAsked by the board.", "Priya Nair does.", "Since May."]
    for asked in ("priya nair", "renewal", "since may"):
        assert asker.texts(f"{asked} mode:thread") == texts
    assert asker.texts("priya mode:thread limit:1") == texts[1:2]
    assert asker.texts("tea four mode:thread") == ["Tea at four."]


def test_in_full_a_memory_is_one_hit_and_whole(database: Database, asker: Asker) -> None:
    paragraphs = [f"Paragraph {number} speaks of the renewal." for number in range(5)]
    keep(database, "\n\n".join(paragraphs))
    write(database, "notes.md", "\n\n".join(paragraphs))
    learn(database, FakeEmbedder())
    hits = asker.ask("renewal limit:20").hits
    assert sorted(hit.text for hit in hits) == sorted(2 * paragraphs)
    hits = asker.ask("renewal limit:20 full:yes").hits
    assert [hit.text for hit in hits if hit.address] == ["\n\n".join(paragraphs)]
    assert sorted(hit.text for hit in hits if hit.path) == paragraphs
