"""Names that editors and tools look for beside every file, and which are no questions.

Found by running some 30 tools on answers. emacs takes `question,v` for the master of an
RCS file and `s.question` for one of SCCS, and then fails to open the question itself.
"""

import re

_PROBE = re.compile(
    rb"""
    [.\#] .*                                    # hidden, .git, .#lock, #save#, .Trash-0
    | [sp]\. .*                                 # SCCS
    | .* (?: ~ | ,v | \.sw[pxo] | \.tmp | \.bak )
    | 4913                                      # vim, to learn whether it may write
    | RCS | CVS | SCCS | HEAD | objects | refs  # version control
    | Thumbs\.db | desktop\.ini
    """,
    re.DOTALL | re.VERBOSE,
)


def is_probe(name: bytes) -> bool:
    """Whether `name` is one that nobody means as a question."""
    return _PROBE.fullmatch(name) is not None
