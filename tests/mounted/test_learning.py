"""What happens to learning and answers when the model is away or another is chosen."""

import os
import signal
from pathlib import Path

from geniuzfs.store.connection import Database
from tests.daemon import wait_until
from tests.embed.fake import tiny_model
from tests.mounted.learned import Learned, files


def answered_by_words(mount: Learned, word: str, reason: str) -> None:
    """A save goes well, is found at once, and the answer says what it lacks."""
    path = mount.root / f"{word}.md"
    path.write_text(f"The {word} was saved meanwhile.\n")
    assert mount.cited(word)[0] == (f"/{word}.md", 1, f"The {word} was saved meanwhile.")
    wait_until(lambda: reason in mount.last_line(word))  # where no vector is there yet, soon
    assert "words only" in mount.last_line(word)
    assert mount.ask(f"{word} mode:meaning")["searched"]["meaning"] is False
    assert mount.cli("learn", "--wait").startswith("learned, words only: ")
    assert mount.state(path.name) == "waiting"  # for its vector


def test_with_the_model_away_words_answer_and_say_so_until_another_is_chosen(
    tmp_path: Path,
) -> None:
    with Learned(tmp_path) as mount:
        (mount.root / "before.md").write_text("The beforeword has a vector.\n")
        mount.wait_learned()
        assert "words + meaning" in mount.last_line("beforeword")
        mount.model.rename(tmp_path / "elsewhere")
        mount.end_helper()
        answered_by_words(mount, "meanwhileword", str(mount.model))
        assert mount.cited("beforeword")[0][0] == "/before.md"
        mount.cli("model", "use", str(tiny_model(tmp_path / "other", name="other", dimension=32)))
        (mount.root / "after.md").write_text("The afterword.\n")
        mount.wait_learned()
        assert mount.embedded() == 1 + 3
        assert "words + meaning" in mount.last_line("meanwhileword")
        assert mount.ask("afterword")["searched"]["note"] == ""


def test_a_damaged_model_is_never_used(tmp_path: Path) -> None:
    with Learned(tmp_path, environment={"GENIUZ_LEARN": "0"}) as mount:
        weights = mount.model / "model.onnx"
        weights.write_bytes(weights.read_bytes()[:-1] + b"\xff")
        (mount.root / "note.md").write_text("The damagedword.\n")
        assert mount.cli("learn", "--wait").startswith("learned, words only: ")
        assert mount.cited("damagedword")[0][0] == "/note.md"
        assert mount.embedded() == 0


def test_without_a_place_for_the_helper_words_are_learned(tmp_path: Path) -> None:
    place = tmp_path / "no directory"
    place.write_bytes(b"")
    with Learned(tmp_path, environment={"XDG_RUNTIME_DIR": str(place)}) as mount:
        answered_by_words(mount, "placeword", str(place))


def test_a_new_model_takes_over_when_it_has_everything(tmp_path: Path) -> None:
    count = 3_000
    with Learned(tmp_path) as mount:
        files(mount.root / "many", 10, count // 10)
        mount.wait_learned()
        learner = mount.learner()
        assert learner is not None
        database = Database.open(mount.database_path)
        try:

            def by_model() -> dict[str, int]:
                rows = database.view.rows(
                    "SELECT name, count(*) FROM vectors JOIN models ON models.id = model"
                    " GROUP BY name"
                )
                return dict(rows)

            [(old, _)] = by_model().items()
            other = tiny_model(tmp_path / "other", name="other", dimension=32)
            new = mount.cli("model", "use", str(other)).split()[-1]
            (mount.root / "waker.md").write_text("Anything, so that it looks.\n")
            wait_until(lambda: new in by_model(), 30)
            os.kill(learner, signal.SIGSTOP)
            assert by_model()[new] < by_model()[old] == count
            answer = mount.ask("subject1234")
            assert answer["searched"]["meaning"]
            assert answer["searched"]["note"] == ""
            assert answer["searched"]["waiting"] > 0
            assert "speaks of subject1234 alone" in answer["hits"][0]["text"]
            os.kill(learner, signal.SIGCONT)
            wait_until(lambda: by_model() == {new: count + 1}, 30)
            answer = mount.ask("subject1234")
            assert answer["searched"]["meaning"]
            assert "speaks of subject1234 alone" in answer["hits"][0]["text"]
            sizes = database.view.rows("SELECT DISTINCT length(vector) FROM vectors")
            assert sizes == [(2 * 32,)]
            assert mount.embedded() == 2 * count + 1
        finally:
            database.close()
