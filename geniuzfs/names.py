"""Which files are only passing by, by their names.

Hides: what editors and tools call the files of a save: vim, nano, emacs, sed, perl, rsync, git,
SQLite, browsers, desktops, seen with strace. Such a file is not learned and has no history.
Promises: pure; a name alone decides, or a path, whose directories count too.
"""

import re

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
    may name a note so too (`tmpideas`): what is to be kept of it is kept all the same.
    """
    return _SHORT_LIVED.fullmatch(name.rpartition(b"/")[2]) is not None
