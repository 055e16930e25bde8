"""A player who reads the game some moves ahead, of both sides, and judges what is there: the middle of the
ladder."""

import time
from collections.abc import Callable
from typing import Any

from referee.games.catalog import AnyGame
from sample_bots.evaluation import evaluation_of
from sample_bots.search import AlphaBeta, OutOfTimeError
from sample_bots.strong.engine import Budget, Found


class Reader:
    """An ``Engine`` of the rule book itself: each depth in turn, up to its own; deterministic if it has the
    time.

    On the boards of the table that takes milliseconds; on the largest ones it reads less far than it would.
    """

    def __init__(self, game: AnyGame, depth: int, now: Callable[[], float] = time.monotonic) -> None:
        """``depth``: how many moves it looks ahead."""
        self._game = game
        self._depth = depth
        self._now = now

    def search(self, state: Any, budget: Budget, on_depth: Callable[[Found], None] | None = None) -> Found:
        """See ``Engine``; of the budget, seconds and depth count.  The value is the evaluation's."""
        give_up = None if budget.seconds is None else self._now() + budget.seconds
        stop = None if give_up is None else lambda: self._now() > give_up
        search = AlphaBeta(self._game, evaluation_of(self._game), stop)
        found = Found(self._game.legal_moves(state)[0], 0, 0, 0, proven=False)
        try:
            for depth in range(1, min(self._depth, budget.depth or self._depth) + 1):
                move, value = search.best(state, depth)
                found = Found(move, value, depth, search.nodes, proven=False, line=(move,))
                if on_depth is not None:
                    on_depth(found)
        except OutOfTimeError:
            pass  # what the last depth found
        return found

    def forget(self) -> None:
        """It remembers nothing."""
