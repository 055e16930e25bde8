"""Caches of replays, live boards and move times, each computed once for all viewers."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

import trio

from referee.judge.results import GameRecord
from tournaments.database.base import StoreError
from tournaments.reporting.site.replay import LiveReplay
from tournaments.reporting.site.times import GameTimes, game_times
from tournaments.server.live_hub import LiveGame

MOST = 64
"""Most replays in the cache, of about 100 KiB each."""


class Replays:
    """Replays by keys of all that they depend on."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, str] = OrderedDict()

    async def of(self, key: Hashable, make: Callable[[], str]) -> str:
        """Return the replay for a key; it is made in a thread if it is not in the cache."""
        made = self._kept.get(key)
        if made is None:
            made = self._kept[key] = await trio.to_thread.run_sync(make)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return made


MOST_BOARDS = 100
"""Most boards kept, the last used ones; each has some hundred kB."""


class LiveBoards:
    """Cache of boards by game."""

    def __init__(self) -> None:
        self._boards: OrderedDict[tuple[object, ...], tuple[trio.Lock, LiveReplay]] = OrderedDict()

    async def of(self, game: LiveGame) -> LiveReplay:
        """Return the board with at least the moves in ``game``."""
        which = (game.competition, game.key, game.started_at)
        if which not in self._boards:
            self._boards[which] = trio.Lock(), LiveReplay(game.game, game.opening)
        self._boards.move_to_end(which)
        if len(self._boards) > MOST_BOARDS:
            self._boards.popitem(last=False)
        lock, board = self._boards[which]
        if len(board.plies) < len(game.moves):
            async with lock:
                await trio.to_thread.run_sync(board.go_on, game.moves, game.charged_us)
        return board


MOST_READ = 400
"""Most games of a chart, the newest ones: enough for its quantiles (30,000 moves and more), and read in half
a second."""
MOST_TIMES = 20_000
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
            if len(self._kept) > MOST_TIMES:
                self._kept.clear()
            for key in keys[-MOST_READ:]:
                times = self._kept.get((competition_id, key))
                if times is None:
                    try:
                        times = game_times(await records.record(competition_id, key))
                    except StoreError:
                        continue
                    self._kept[competition_id, key] = times
                found[key] = times
        return found
