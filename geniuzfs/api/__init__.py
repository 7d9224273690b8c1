"""class Geniuz: what can be asked of this program. Every door calls it.

What asks, learns or checks is imported when that is first done: it brings numpy, 0.1 s that
keeping a memory does not need.
"""

import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from geniuzfs.addresses import Address, address
from geniuzfs.api import keeping
from geniuzfs.api.arranging import Arranging
from geniuzfs.api.asked import Asked
from geniuzfs.api.copies import Copies
from geniuzfs.api.histories import Histories
from geniuzfs.api.keeping import Held
from geniuzfs.api.status import FolderStatus as FolderStatus
from geniuzfs.api.status import folder_status
from geniuzfs.config import Config
from geniuzfs.errors import Busy, NotFound, UsageError
from geniuzfs.folders import mounts, registry
from geniuzfs.folders.registry import Folder as Folder
from geniuzfs.model import ROOT, FolderId, Identity, InodeNumber, Scope
from geniuzfs.ports import Clock, Embedder
from geniuzfs.recall import query as queries
from geniuzfs.recall import render
from geniuzfs.recall.hits import Answer
from geniuzfs.recall.query import Query
from geniuzfs.store import tree
from geniuzfs.store.connection import Database
from geniuzfs.store.copying import Told

if TYPE_CHECKING:
    from geniuzfs.api.asking import Asking
    from geniuzfs.api.capturing import Captured
    from geniuzfs.api.checking import Checked
    from geniuzfs.api.forgetting import Forgetting
    from geniuzfs.api.health import Health
    from geniuzfs.api.learning import Learning
    from geniuzfs.api.learns import Learns
    from geniuzfs.api.opened import Opened

_WAIT_SECONDS = 5.0
"""For another's lock, where nobody else is kept waiting meanwhile."""


class Geniuz:
    """The use cases, on the data directory that `config` names."""

    def __init__(self, config: Config, clock: Clock, embedder: Embedder) -> None:
        self.config = config
        self.clock = clock
        self._embedder = embedder
        self.arranging = Arranging(config, clock)
        self.copies = Copies(config, clock, self.arranging)
        self.histories = Histories(self.arranging, config.home, self._open_patiently, clock)
        self._by_id: dict[FolderId, Folder] = {}
        self._asks: Asking | None = None
        self._making = Lock()

    def begin(self) -> None:
        """First use: make the data directory and "My memory". Raises UnsafePlace for
        a place where a database could lose data.
        """
        mounts.check_safe(self.config.home.resolve())
        registry.begin(self.config.home, self.clock)

    def folders(self) -> list[Folder]:
        """Every folder that can be used, the pinned ones first, then "My memory". What is not
        listed is told in the log, once.
        """
        folders = self.arranging.seen().folders
        self._by_id = {folder.identity.id: folder for folder in folders}
        if self._asks is not None:
            self._asks.let_go(folders)
        return folders

    def folder(self, name: str) -> Folder:
        """The folder called `name`, ignoring case. Raises NotFound and TwoCopies."""
        return registry.named(self.arranging.seen(), name)

    def open(self, folder: Folder, *, wait: float) -> Database:
        """The folder's database, with a top directory. `wait`: seconds for another's lock."""
        mounts.check_safe(folder.path.resolve())
        database = Database.open(folder.path, wait=wait)
        try:
            if tree.inode(database.view, ROOT) is None:
                self._make_root(database)
        except BaseException:
            database.close()
            raise
        return database

    def check(
        self,
        name: str | None,
        *,
        repair: bool,
        rebuild: bool = False,
        told: Told = lambda done, of: None,
    ) -> "list[Checked]":
        """Look for broken invariants in one folder, or in all, those too that can't be
        opened any more; with `repair` mend what can be, with `rebuild` have all that was learned
        made anew besides. `told`: how many folders are done, and of how many. Raises NotFound.
        """
        from geniuzfs.api import checking

        now_ns, folders = self.clock.now_ns(), self._to_check(name)
        checked: list[Checked] = []
        told(0, len(folders))
        for folder in folders:
            mend = repair or rebuild
            one = (
                checking.repair(folder, now_ns, rebuild=rebuild) if mend else checking.look(folder)
            )
            checked.append(one)
            told(len(checked), len(folders))
        return checked

    def status(self) -> list[FolderStatus]:
        """Every folder in numbers."""
        return [folder_status(folder) for folder in self.folders()]

    def health(self) -> "Health":
        """Whether the data, the model and the clock are as they should be: see there."""
        from geniuzfs.api.health import Health

        return Health(self.config, self.arranging, self.clock, self._embedder)

    def learns(self) -> "Learns":
        """What makes vectors now. Starts nothing, and asks nobody."""
        from geniuzfs.api.learns import learns

        return learns(self.config)

    def mounted(self) -> list[Path]:
        """Where the data directory is mounted; dead mounts too."""
        return [mount.target for mount in mounts.ours(self.config.home)]

    # Kept memories

    def keep(
        self,
        name: str | None,
        text: str,
        gist: str | None = None,
        parent: str | None = None,
        *,
        here: Path | None = None,
    ) -> Held:
        """Keep a memory in the folder that is meant (Arranging.meant, which says what it raises).
        Raises UsageError for text that can't be kept or a `parent` that several have.
        """
        self.begin()
        now_ns = self.clock.now_ns()
        return keeping.wherever(
            lambda: self.arranging.meant(name, here),
            lambda folder: keeping.keep(self._open_patiently, folder, text, gist, parent, now_ns),
        )

    def open_memory(
        self, name: str | None, text: str, *, here: Path | None = None, everywhere: bool = False
    ) -> Held:
        """The memory of that address, or whose ID begins so, in the folders that `recall` would
        ask. Raises NotFound, and UsageError where it is no address or several have it.
        """
        folders = self._asked(name, address(text), here, everywhere)
        return keeping.find(self._open_patiently, folders, text)

    def capture(
        self,
        name: str | None,
        paths: Sequence[Path],
        *,
        into: str | None = None,
        as_memories: bool = False,
        everything: bool = False,
        replace: bool = False,
        dry_run: bool = False,
        here: Path | None = None,
        step: Callable[[int, int], None] = lambda done, of: None,
    ) -> "Captured":
        """Bring files and directories into the folder that is meant: see api.capturing. `into`: a
        directory of it; `step` is told how many things are done since the last call, of how many.
        Raises NotFound for a path, AlreadyExists and NotADirectory for what is in the way, and what
        Arranging.meant does.
        """
        from geniuzfs.api import capturing, walking

        if as_memories and (into is not None or replace):
            raise UsageError("memories stand in no directory and replace nothing")
        self.begin()
        limit = self.config.content_limit
        where = walking.directory(into or "")
        plan = walking.walk(paths, where, limit, everything=everything)
        database = self._open_patiently(self.arranging.meant(name, here))
        try:
            carry_out = capturing.as_memories if as_memories else capturing.files
            target = capturing.Into(
                database, self.config.owner, limit, self.clock.now_ns, replace, dry_run
            )
            return carry_out(plan, target, lambda done: step(done, len(plan.wanted)))
        finally:
            database.close()

    @property
    def forgetting(self) -> "Forgetting":
        """The use cases that erase."""
        from geniuzfs.api.forgetting import Forgetting

        now_ns, open_ = self.clock.now_ns, self._open_patiently
        return Forgetting(self.arranging, self.config.home, now_ns, open_)

    # Questions

    def parse(self, text: str, given: Sequence[tuple[str, str]] = ()) -> Query:
        """Understand a question; `given` are operators from elsewhere. Raises UsageError."""
        return queries.parse(text, self.clock.now_ns(), given=given)._replace(asked=text)

    def recall(
        self,
        name: str | None,
        query: Query,
        *,
        here: Path | None = None,
        everywhere: bool = False,
    ) -> Answer:
        """Answer from the folder called `name`; without a name from the one that was chosen for the
        directory `here`, unless it is to be `everywhere`; where none was, from all of them. An
        address is looked for in its own folder, whichever was chosen, and an ID in the others too
        where the chosen one has no memory of it. Raises NotFound, and what Arranging.chosen does.
        """
        wanted = address(query.text) if query.means_a_memory() else None
        folders = self._asked(name, wanted, here, everywhere)
        return self._asking.ask([Asked(folder, ROOT) for folder in folders], query)

    def ask(self, folder: Folder, query: Query) -> Answer:
        """Answer from one folder."""
        return self._asking.ask([Asked(folder, ROOT)], query)

    def answer(self, scope: Scope, query: str) -> bytes:
        """What reading `.recall/<query>` gives, in the format it asks for. Raises UsageError."""
        parsed = self.parse(query)
        answer = self._asking.ask(self._scope(scope), parsed)
        show_folder = scope.folder is None
        return render.written(answer, parsed.format, show_folder=show_folder).encode()

    def found(self, scope: Scope, query: str) -> list[bytes]:
        """The files of the same answer, best first, each once: paths from the folder's top, or
        from its name where the scope is every folder. Raises UsageError.
        """
        answer = self._asking.ask(self._scope(scope), self.parse(query))
        above = "" if scope.folder is not None else "/"
        paths = [
            (above + hit.folder if above else "") + hit.path for hit in answer.hits if hit.path
        ]
        return [path[1:].encode("utf-8", "surrogateescape") for path in dict.fromkeys(paths)]

    def state(self, folder: FolderId, inode: InodeNumber) -> bytes:
        """What learning has made of a file: `learned`, `waiting`, `empty`, `not-text`,
        `too-long` or `ignored`.
        """
        return (self._asking.state(self._known(folder), inode) or "empty").encode()

    def status_text(self, scope: Scope) -> bytes:
        """What reading `.status` gives."""
        lines = [] if scope.folder is not None else [f"mounted: {path}" for path in self.mounted()]
        for each in self.status():
            if scope.folder in (None, each.folder.identity.id):
                lines.append(each.line())
                lines += filter(None, [each.waiting_line(self.clock.now_ns())])
        lines.append(self.learns().line())
        if scope.folder is None:
            lines += self.arranging.seen().warnings()
        return ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")

    def learning(self, name: str | None) -> "Learning":
        """Learns one folder, or all of them: see there. Raises NotFound."""
        if name is None:
            return self.learning_of(self._learned)
        id_ = self.folder(name).identity.id

        def alone() -> list[Folder]:
            return [folder for folder in self.folders() if folder.identity.id == id_]

        return self.learning_of(alone)

    def learning_of(self, folders: Callable[[], list[Folder]]) -> "Learning":
        """Learns the folders that `folders` names at the time."""
        from geniuzfs.api.learning import Learning

        return Learning(folders, self._open_patiently, self._embedder, self.clock.now_ns)

    def opened(self, name: str | None, *, here: Path | None = None, owns: bool = False) -> "Opened":
        """The folder that is meant (Arranging.meant, which says what it raises), held open. Close
        it before this; where it `owns` this, both are closed by that.
        """
        self.begin()
        return self.opened_as(self.arranging.meant(name, here), owns=owns)

    def opened_as(self, meant: Folder, *, owns: bool = False) -> "Opened":
        """This folder, held open, wherever it is moved. Raises what opening it raises."""
        from geniuzfs.api.connections import Connections
        from geniuzfs.api.opened import Opened

        def find() -> Folder:
            listed = {folder.identity.id: folder for folder in self.folders()}
            found = listed.get(meant.identity.id, meant)  # GENIUZ_DB may name one that is nowhere
            if not found.path.exists():
                raise NotFound("the folder is gone")
            return found

        return Opened(
            self, Connections(meant, find, self._open_patiently, self.clock.now_ns), owns=owns
        )

    def close(self) -> None:
        """Give back what questions have opened."""
        if self._asks is not None:
            self._asks.close()

    @property
    def _asking(self) -> "Asking":
        with self._making:  # questions of a mount come from several threads
            if self._asks is None:
                from geniuzfs.api.asking import Asking

                self._asks = Asking(self._open_patiently, self._embedder)
            return self._asks

    def _learned(self) -> list[Folder]:
        """All of them, and the one that GENIUZ_DB names, wherever that lies."""
        given = self.arranging.given()
        return [*self.folders(), *([given] if given is not None else [])]

    def _asked(
        self, name: str | None, wanted: Address | None, here: Path | None, everywhere: bool
    ) -> list[Folder]:
        """What a question is asked of: see `recall`."""
        if name is not None:
            return [self.folder(name)]
        chosen = None if everywhere else self.arranging.chosen(here)
        if chosen is None:
            return self.folders()
        if wanted is None or keeping.matching(self._open_patiently, chosen, wanted):
            return [chosen]
        others = self.folders()
        elsewhere = (keeping.matching(self._open_patiently, each, wanted) for each in others)
        return others if wanted.folder or any(elsewhere) else [chosen]

    def _scope(self, scope: Scope) -> list[Asked]:
        if scope.folder is None:
            return [Asked(folder, ROOT) for folder in self.folders()]
        return [Asked(self._known(scope.folder), scope.directory)]

    def _known(self, id_: FolderId) -> Folder:
        known = self._by_id.get(id_)
        if known is None or not known.path.exists():  # to look at all of them takes 1 ms each
            self.folders()
            known = self._by_id.get(id_)
        if known is None:
            raise NotFound("the folder is gone")
        return known

    def _open_patiently(self, folder: Folder) -> Database:
        return self.open(folder, wait=_WAIT_SECONDS)

    def _to_check(self, name: str | None) -> list[Folder]:
        seen = self.arranging.seen()
        nameless = [
            Folder(one.path, Identity(FolderId(""), one.name, "", ""))
            for one in seen.left_out
            if one.path.is_file()
        ]
        if name is not None:
            hidden = [one for one in nameless if registry.same_name(one.name, name)]
            return hidden or [registry.named(seen, name)]
        return [*seen.folders, *(copy for copies in seen.blocked for copy in copies), *nameless]

    def _make_root(self, database: Database) -> None:
        uid, gid = self.config.owner
        try:
            with database.txn() as txn:
                tree.make_root(txn, tree.New(stat.S_IFDIR | 0o755, uid, gid), self.clock.now_ns())
        except Busy:
            if tree.inode(database.view, ROOT) is None:
                raise
