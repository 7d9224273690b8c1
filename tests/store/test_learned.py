"""What was learned and breaks is found, and made anew from the files."""

import pytest

from geniuzfs.store import check, learned
from geniuzfs.store.connection import Database
from tests.embed.fake import FakeEmbedder
from tests.notes import Asker, learn, taught, write
from tests.store.breaking import breaking

CASES = {
    "a source that stands for no file": (
        "sources_are_files_or_memories",
        "INSERT INTO sources (inode, state, hash, rows) VALUES (999, 'learned', x'', x'')",
    ),
    "a source that stands for a directory": (
        "sources_are_files_or_memories",
        "INSERT INTO sources (inode, state, hash, rows) VALUES (1, 'learned', x'', x'')",
    ),
    "rows that name what is not taught": (
        "rows_are_taught",
        "DELETE FROM teaches WHERE passage = (SELECT min(passage) FROM teaches)",
    ),
    "a file that was never looked at": (
        "everything_was_looked_at",
        "DELETE FROM teaches; DELETE FROM sources; DELETE FROM passages; DELETE FROM vectors",
    ),
    "a memory that was never looked at": (
        "everything_was_looked_at",
        "INSERT INTO memories (memory_uuid, payload) VALUES"
        ' (\'13625F6B-0000-4000-8000-000000000001\', \'{"content":"said","gist":"said"}\')',
    ),
    "a passage that nobody says": (
        "passages_are_said",
        "INSERT INTO passages (hash, context, words, grams, text) VALUES (x'00', 1, 1, 1, 'x')",
    ),
    "a passage that is not indexed": (
        "passages_are_indexed",
        "DELETE FROM segments; DELETE FROM postings",
    ),
    "a passage that is indexed twice": (
        "passages_are_indexed",
        "INSERT INTO segments (ready, buckets, passages) SELECT 1, 1, passages FROM segments",
    ),
    "a passage without a vector": ("passages_have_vectors", "DELETE FROM vectors"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_broken_is_found_and_learned_anew(database: Database, case: str) -> None:
    rule, script = CASES[case]
    embedder = FakeEmbedder()
    write(database, "a.md", "# Plans\n\nWe sail in May.\n\nWe return in June.\n")
    write(database, "b.md", "Nothing else.")
    learn(database, embedder)
    breaking(database, script)
    assert rule in {problem.rule for problem in check.problems(database.view)}
    assert check.repair(database, 1) == []
    learn(database, embedder)
    texts = {"We sail in May.", "We return in June.", "Nothing else."}
    assert taught(database) - {"said"} == texts
    assert Asker(database, embedder).texts("when do we sail")[0] == "We sail in May."


def test_every_rule_has_a_test() -> None:
    own = {rule for rule, _ in CASES.values()}
    assert own == {rule.__name__ for rule in check.RULES if rule.__module__ == learned.__name__}
