"""Caches of live boards and of move times, each computed once for all viewers."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar

import trio

from tournaments.database.base import StoreError
from tournaments.reporting.site.replay import LiveReplay
from tournaments.reporting.site.times import GameTimes, game_times
from tournaments.results.store import Store
from tournaments.server.cache import SingleFlightCache
from tournaments.server.live_hub import LiveGame

T = TypeVar("T")

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


class Stores(Protocol):
    """The stores of competitions: the service."""

    async def read(self, competition_id: int, work: Callable[[Store], T]) -> T:
        """Return what ``work`` returns for the store of a competition, in a thread."""


class MoveTimes:
    """Times of games by competition and key; the least recently used ones are dropped first."""

    def __init__(self) -> None:
        self._times: OrderedDict[tuple[int, str], GameTimes] = OrderedDict()
        self._reading: defaultdict[int, trio.Lock] = defaultdict(trio.Lock)
        """Lock of each competition, held while its records are read, so that pages read them once."""

    async def get(self, stores: Stores, competition_id: int, keys: Sequence[str]) -> dict[str, GameTimes]:
        """Return the times of the last of these games, except those with unreadable records."""
        keys = keys[-MOST_READ:]
        found = self._known(competition_id, keys)
        if len(found) < len(keys):
            async with self._reading[competition_id]:
                known, read = self._known(competition_id, keys), dict[str, GameTimes]()
                missing = [key for key in keys if key not in known]
                with suppress(StoreError):
                    read = await stores.read(competition_id, partial(_times, missing)) if missing else read
            found = {key: times for key in keys if (times := known.get(key) or read.get(key)) is not None}
        for key, times in found.items():
            self._times[competition_id, key] = times
            self._times.move_to_end((competition_id, key))
        while len(self._times) > MOST_TIMES:
            self._times.popitem(last=False)
        return found

    def _known(self, competition_id: int, keys: Sequence[str]) -> dict[str, GameTimes]:
        known = self._times
        return {key: known[competition_id, key] for key in keys if (competition_id, key) in known}


def _times(keys: Sequence[str], store: Store) -> dict[str, GameTimes]:
    found = {}
    for key in keys:
        with suppress(StoreError):
            found[key] = game_times(store.record(key))
    return found
