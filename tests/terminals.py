"""Pseudo-terminals for tests, where the machine has any."""

import pty

import pytest


def opened() -> tuple[int, int]:
    """Our end of a new terminal and that of a program. Skips the test where there is none: bare
    containers have no devpts.
    """
    try:
        return pty.openpty()
    except OSError as error:
        pytest.skip(f"needs a pseudo-terminal: {error}; mount devpts at /dev/pts")
