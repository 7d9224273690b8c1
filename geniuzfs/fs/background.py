"""What the mount does by itself, beside answering requests."""

import logging

import trio

from geniuzfs.errors import Busy, GeniuzError
from geniuzfs.fs.files import Files

KEEP_SECONDS = 30.0
"""How old the unsaved end of a growing file may become, as a log that nobody
closes; ext4 writes back after as long."""

END_SECONDS = 10.0

_log = logging.getLogger(__name__)


async def save_growing(files: Files) -> None:
    """Save files that have only grown and stay open, until cancelled.

    Not those that were cut or overwritten: their save is whole or not at all,
    and their writer says with close or fsync when it is.
    """
    while True:
        await files.wait_unsaved()
        await trio.sleep(KEEP_SECONDS)
        oldest = trio.current_time() - KEEP_SECONDS / 2
        for node, since in list(files.unsaved.items()):
            if since <= oldest and node.buffer is not None and node.buffer.only_grown:
                try:
                    await files.save(node)
                except GeniuzError as error:  # its close will try again, and report
                    _log.warning("a growing file could not be saved yet: %s", error)


async def save_all(files: Files) -> None:
    """Save every open file: the mount ends in good order, so nothing written is dropped.

    Waits at most END_SECONDS, for all of them, for another process's write lock.
    """
    deadline = trio.current_time() + END_SECONDS
    for node in list(files.unsaved):
        while True:
            try:
                await files.save(node)
                break
            except GeniuzError as error:
                if not isinstance(error, Busy) or trio.current_time() > deadline:
                    _log.error("inode %d could not be saved at the end: %s", node.number, error)
                    break
                await trio.sleep(0.05)
