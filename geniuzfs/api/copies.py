"""Copies of folders: backups, archives, replicas. Each is imported when it is first asked for."""

from typing import TYPE_CHECKING

from geniuzfs.api.arranging import Arranging
from geniuzfs.config import Config
from geniuzfs.ports import Clock

if TYPE_CHECKING:
    from geniuzfs.api.backups import Backups
    from geniuzfs.api.exchange import Exchange
    from geniuzfs.api.replicating import Replicating


class Copies:
    """What makes them and brings them back, on the data directory that `config` names."""

    def __init__(self, config: Config, clock: Clock, arranging: Arranging) -> None:
        self._config = config
        self._clock = clock
        self._arranging = arranging

    def backups(self) -> "Backups":
        """Backs folders up into files, and makes folders of those."""
        from geniuzfs.api.backups import Backups

        return Backups(self._config.home, self._clock, self._arranging)

    def exchange(self) -> "Exchange":
        """Exports folders as tar archives, and imports those."""
        from geniuzfs.api.exchange import Exchange

        return Exchange(self._config, self._clock, self._arranging)

    def replicating(self) -> "Replicating":
        """Has folders replicated as they change, and brings them back from there."""
        from geniuzfs.api.replicating import Replicating

        return Replicating(self._config.home, self._clock, self._arranging)
