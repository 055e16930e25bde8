"""Cache of move times, which are read from game records."""

from collections.abc import Sequence
from typing import Protocol

import trio

from referee.judge.results import GameRecord
from tournaments.database.errors import StoreError
from tournaments.reporting.site.times import GameTimes, game_times

MOST = 400
"""Most games of a chart, the newest ones: enough for its quantiles (30,000 moves and more), and read in half
a second."""
MOST_KEPT = 20_000
"""Most games in the cache; one of 86 moves takes 3 KiB."""


class Records(Protocol):
    """Source of game records: the service."""

    async def record(self, competition_id: int, key: str) -> GameRecord:
        """Return the record of a game.  Raises StoreError."""


class MoveTimes:
    """Times of games by competition and key."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], GameTimes] = {}
        self._lock = trio.Lock()

    async def of(self, records: Records, competition_id: int, keys: Sequence[str]) -> dict[str, GameTimes]:
        """Return the times of the last of these games, except those with unreadable records."""
        found = {}
        async with self._lock:
            if len(self._kept) > MOST_KEPT:
                self._kept.clear()
            for key in keys[-MOST:]:
                times = self._kept.get((competition_id, key))
                if times is None:
                    try:
                        times = game_times(await records.record(competition_id, key))
                    except StoreError:
                        continue
                    self._kept[competition_id, key] = times
                found[key] = times
        return found
