"""A mount that has answered questions ends as cleanly as one that has not."""

from pathlib import Path

from tests.daemon import Daemon

NO_MODEL = {"GENIUZ_EMBED_URL": "http://127.0.0.1:9#none"}


def test_the_log_is_empty_after_an_unmount_though_a_question_had_opened_the_folder(
    tmp_path: Path,
) -> None:
    with Daemon(tmp_path, environment=NO_MODEL) as mount:
        (mount.root / "notes.md").write_text("Priya signs the renewal.")
        answer = (mount.root / ".recall" / "who signs").read_text()
        assert answer.startswith("- Priya signs the renewal. [/notes.md:1, ")
        assert mount.stop() == 0
        log = mount.database_path.with_name("memory.db-wal")
        assert not log.exists() or log.stat().st_size == 0
