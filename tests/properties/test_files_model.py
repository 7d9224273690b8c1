"""Files by their paths behave as a dictionary whose keys can't stand beneath one another."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from geniuzfs.api import Geniuz
from geniuzfs.config import Config
from geniuzfs.errors import Conflict, NotFound, UsageError
from geniuzfs.ports import SystemClock
from tests.embed.fake import FakeEmbedder

NAMES = st.sampled_from(["a", "b", "ab", "a.md", "ü", "%2e%2e"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))
DIRECTORIES = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: f"/{'/'.join(names)}/")
PREFIXES = st.one_of(PATHS, DIRECTORIES, st.just("/"))
TEXTS = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
    st.just("x" * 70_000),
)


def in_the_way(path: str, files: dict[str, str]) -> bool:
    """Whether a file stands above the path, or the path is a directory."""
    return any(path.startswith(f"{each}/") or each.startswith(f"{path}/") for each in files)


class FilesModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        home = Path(self.directory.name)
        config = Config.from_environment({"HOME": str(home), "GENIUZ_HOME": str(home / "home")})
        self.geniuz = Geniuz(config, SystemClock(), FakeEmbedder())
        self.mem = self.geniuz.opened(None)
        self.files: dict[str, str] = {}

    @rule(path=PATHS, text=TEXTS)
    def put(self, path: str, text: str) -> None:
        try:
            put = self.mem.files.put(path, text)
        except Conflict:
            assert in_the_way(path, self.files)
            return
        assert not in_the_way(path, self.files)
        assert (put.created, put.size) == (path not in self.files, len(text))
        self.files[path] = text

    @rule(path=PATHS)
    def get(self, path: str) -> None:
        try:
            got = self.mem.files.get(path)
        except NotFound:
            assert path not in self.files
            return
        assert got.text == self.files[path]

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        try:
            assert self.mem.files.delete(path) == 1
        except NotFound:
            assert path not in self.files
            return
        del self.files[path]

    @rule(prefix=PREFIXES)
    def delete_prefix(self, prefix: str) -> None:
        gone = [path for path in self.files if path.startswith(prefix)]
        assert self.mem.files.delete_prefix(prefix) == len(gone)
        for path in gone:
            del self.files[path]

    @rule(old=PATHS, new=PATHS)
    def move(self, old: str, new: str) -> None:
        self._move(old, new, {old: new} if old in self.files else {})

    @rule(old=DIRECTORIES, new=DIRECTORIES)
    def move_all(self, old: str, new: str) -> None:
        moved = [path for path in self.files if path.startswith(old)]
        self._move(old, new, {path: new + path[len(old) :] for path in moved})

    def _move(self, old: str, new: str, moved: dict[str, str]) -> None:
        rest = {path: text for path, text in self.files.items() if path not in moved}
        try:
            assert self.mem.files.move(old, new) == len(moved) > 0
        except NotFound:
            assert not moved
            return
        except (Conflict, UsageError):
            # Refused for what stands there, or for a directory that would come into itself.
            crossing = new.startswith(old) or old.startswith(new)
            taken = [each for each in moved.values() if each in self.files]
            ways = [each for each in moved.values() if in_the_way(each, self.files)]
            assert crossing or taken or ways
            return
        assert not any(each in rest or in_the_way(each, rest) for each in moved.values())
        self.files = rest | {moved[path]: self.files[path] for path in moved}

    @rule(prefix=PREFIXES, limit=st.integers(1, 5))
    def list_in_pages(self, prefix: str, limit: int) -> None:
        seen: list[tuple[str, int | None]] = []
        cursor = None
        wanted = sorted(path for path in self.files if path.startswith(prefix))
        while True:
            page = self.mem.files.list(prefix, limit, cursor)
            assert page.total == len(wanted)
            seen += [(file.path, file.size) for file in page.files]
            cursor = page.next
            if cursor is None:
                break
        assert seen == [(path, len(self.files[path])) for path in wanted]

    @invariant()
    def all_of_it_is_there(self) -> None:
        listed = [file.path for file in self.mem.files.iter()]
        assert listed == sorted(self.files, key=str.encode)

    def teardown(self) -> None:
        self.mem.close()
        assert [checked.problems for checked in self.geniuz.check(None, repair=False)] == [[]]
        self.geniuz.close()
        self.directory.cleanup()


TestFilesModel = FilesModel.TestCase
TestFilesModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
