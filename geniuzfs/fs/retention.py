"""Versions that are kept no longer go, while the mount serves.

Promises: in small transactions of another connection, in a thread, so that nobody waits for it,
every retention.CHECK_SECONDS. A folder without versions costs one look, and no thread.
"""

import logging
from collections.abc import Callable

import trio

from geniuzfs.errors import GeniuzError
from geniuzfs.fs.volumes import Volume, Volumes
from geniuzfs.store import retention, versions

_log = logging.getLogger(__name__)


async def expire_versions(volumes: Volumes, now_ns: Callable[[], int]) -> None:
    """Until cancelled."""
    while True:
        await trio.sleep(retention.CHECK_SECONDS)
        for volume in list(volumes.values()):
            try:
                await _expire(volume, now_ns())
            except GeniuzError as error:  # it was moved, or another holds the lock: next time
                _log.info("old versions in %s are left for now: %s", volume.path, error)
            except Exception:  # noqa: BLE001 - a loop: the mount outlives any mistake of ours
                _log.exception("old versions could not be looked at")


async def _expire(volume: Volume, now_ns: int) -> None:
    if not any(versions.oldest_and_newest(volume.view)):
        return
    while await volume.durability.change(lambda txn: retention.expire(txn, now_ns)):
        pass
