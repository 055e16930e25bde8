"""Boards of the live games, each computed once for all watchers."""

from collections import OrderedDict

import trio

from tournaments.reporting.site.live_replay import LiveReplay
from tournaments.server.live.hub import LiveGame

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
