"""Which files are never learned: by their names, and by `.geniuzignore`.

Temporary names are those that editors and tools give while they save (vim, nano, emacs, sed,
perl, rsync, git, SQLite, browsers, desktops), seen with strace. `.geniuzignore` means what
`.gitignore` means to git; pathspec knows the patterns, and the rules between files (the deepest
has the last word, nothing comes back out of an ignored directory) are here.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

IGNORE_NAME = ".geniuzignore"

_TEMPORARY = re.compile(
    rb"""
    .*~ | 4913 | \.\#.* | \#.*\# |                          # vim, emacs, nano
    \..*\.sw[a-px] | .*\.sw[px] | \..*\.un~ |
    .*\.(?: bak | orig | rej | tmp | lock | part | crdownload | kate-swp ) |
    .*-(?: journal | wal | shm ) |                          # SQLite
    tmp_(?: obj | pack | idx )_.* |                         # git
    \..+\.(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{6} |               # rsync; .notes.config is a name
    \.DS_Store | \._.* | \.nfs.* | \.fuse_hidden.* | \.goutputstream-.*
    """,
    re.VERBOSE | re.DOTALL,
)
_SHORT_LIVED = re.compile(rb"tmp[A-Za-z0-9_]{6,8}|(?:sed|XX)[A-Za-z0-9]{6}")
_REPOSITORIES = frozenset({b".git", b".hg", b".svn", b".bzr", b".jj", b"CVS", b"_darcs"})


def is_temporary(name: bytes) -> bool:
    """Whether a file of this name (or path, whose directories count too) is only passing by."""
    *above, last = name.split(b"/")
    return (
        _TEMPORARY.fullmatch(last) is not None
        or last in _REPOSITORIES
        or not _REPOSITORIES.isdisjoint(above)
    )


def is_short_lived(name: bytes) -> bool:
    """Whether it is named as `sed`, `perl` and atomic saves name what they soon rename. People
    may name a note so too (`tmpideas`): learn it once it has stayed.
    """
    return _SHORT_LIVED.fullmatch(name.rpartition(b"/")[2]) is not None


class _Rule(NamedTuple):
    """One line of a file."""

    ignores: bool
    """False for one that begins with `!`."""
    only_directories: bool
    pattern: re.Pattern[str]
    """Matches the whole path of an entry itself, not of what is beneath it."""


class Ignored:
    """What a folder's `.geniuzignore` files cover."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """`texts`: the text of each such file by the path of its directory, relative to the
        folder's top; empty for the top itself. Lines that are no pattern count for nothing.
        """
        self._rules = {where.strip("/"): tuple(_rules(text)) for where, text in texts.items()}

    def add(self, where: str, text: str) -> None:
        """One more such file: for who meets them on the way down."""
        self._rules[where.strip("/")] = tuple(_rules(text))

    def covers(self, path: str, *, directory: bool = False) -> bool:
        """Whether the file, or the `directory`, at this path, relative to the folder's top, is
        not to be learned.
        """
        parts = path.strip("/").split("/")
        last = len(parts)
        # From the top down, since nothing comes back out of an ignored directory.
        return any(
            self._ignores(parts[:depth], directory or depth < last) for depth in range(1, last + 1)
        )

    def _ignores(self, parts: list[str], is_directory: bool) -> bool:
        for depth in range(len(parts) - 1, -1, -1):
            beneath = "/".join(parts[depth:])
            for rule in reversed(self._rules.get("/".join(parts[:depth]), ())):
                applies = is_directory or not rule.only_directories
                if applies and rule.pattern.fullmatch(beneath):
                    return rule.ignores
        return False


def _rules(text: str) -> Iterator[_Rule]:
    # Here, since most folders have no such file: 12 ms of a command's start.
    from pathspec.patterns.gitignore.base import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    for line in text.removeprefix("\ufeff").split("\n"):
        line = line.removesuffix("\r")
        if not line.endswith("\\ "):
            line = line.rstrip(" ")
        only_directories = line.endswith("/")
        try:
            parsed = GitIgnoreSpecPattern(line.removesuffix("/"))
        except GitIgnorePatternError:
            continue  # as git does
        if parsed.include is not None and parsed.regex is not None:
            yield _Rule(parsed.include, only_directories, _whole(parsed.regex.pattern))


def _whole(regex: str) -> re.Pattern[str]:
    """pathspec's expression for `**` and for `dir/**` stops before the end."""
    return re.compile(regex + ".*" if regex == "." or regex.endswith("/") else regex, re.DOTALL)
