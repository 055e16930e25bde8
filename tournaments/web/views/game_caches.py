"""Caches of live boards and of move times, each computed once for all viewers."""

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Protocol

import trio

from referee.judge.results import GameRecord
from tournaments.database.base import StoreError
from tournaments.reporting.site.replay import LiveReplay
from tournaments.reporting.site.times import GameTimes, game_times
from tournaments.server.cache import SingleFlightCache
from tournaments.server.live_hub import LiveGame

MOST_BOARDS = 100
"""Most live boards in the cache; each has some hundred kB."""
MOST_READ = 400
"""Most games of a chart, the newest ones: enough for its quantiles (30,000 moves and more), and read in half
a second."""
MOST_TIMES = 20_000
"""Most games in the cache of move times; one of 86 moves takes 3 KiB."""


class LiveBoards:
    """Boards of live games, which grow with the games."""

    def __init__(self) -> None:
        self._cache: SingleFlightCache[Hashable, tuple[int, LiveReplay]] = SingleFlightCache(MOST_BOARDS)
        """Number of moves of a game that were played on its board, and the board."""

    async def get(self, game: LiveGame) -> LiveReplay:
        """Return the board with at least the moves in ``game``."""
        key, moves = (game.competition, game.key, game.started_at), len(game.moves)

        async def with_moves() -> tuple[int, LiveReplay]:
            known = self._cache.peek(key)
            board = LiveReplay(game.game, game.opening) if known is None else known[1]
            await trio.to_thread.run_sync(board.update, game.moves, game.charged_us)
            return moves, board

        return (await self._cache.get(key, with_moves, lambda known: known[0] >= moves))[1]


class Records(Protocol):
    """Source of game records: the service."""

    async def record(self, competition_id: int, key: str) -> GameRecord:
        """Return the record of a game.  Raises StoreError."""


class MoveTimes:
    """Times of games by competition and key."""

    def __init__(self) -> None:
        self._cache: SingleFlightCache[tuple[int, str], GameTimes] = SingleFlightCache(MOST_TIMES)

    async def get(self, records: Records, competition_id: int, keys: Sequence[str]) -> dict[str, GameTimes]:
        """Return the times of the last of these games, except those with unreadable records."""

        async def times(key: str) -> GameTimes:
            return game_times(await records.record(competition_id, key))

        found = {}
        for key in keys[-MOST_READ:]:
            try:
                found[key] = await self._cache.get((competition_id, key), partial(times, key))
            except StoreError:
                continue
        return found
