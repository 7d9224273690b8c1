"""Which files are never learned because a `.geniuzignore` says so (names: see geniuzfs.names).

`.geniuzignore` means what `.gitignore` means to git; pathspec knows the patterns, and the rules
between files (the deepest has the last word, nothing comes back out of an ignored directory) are
here.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

IGNORE_NAME = ".geniuzignore"


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
