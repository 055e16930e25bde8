"""The strong player: an engine, and how long it thinks."""

import time
from collections.abc import Callable
from typing import Any

from referee.games.catalog import AnyGame
from sample_bots.strong.engine import Budget, Engine
from sample_bots.strong.game_length import moves_to_come
from sample_bots.strong.time_use import TimeUse


class StrongPlayer:
    """Chooses moves by search.  Is called as (game, state) -> move."""

    def __init__(
        self,
        engine: Engine,
        time_use: TimeUse,
        *,
        longest_s: float | None = None,
        nodes: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``longest_s`` and ``nodes`` bound each move, beside the time control."""
        self._engine = engine
        self._time_use = time_use
        self._longest_s = longest_s
        self._nodes = nodes
        self._now = now

    def hear_time(self, own_ms: int, _opponent_ms: int) -> None:
        """Take note of a TIME line."""
        self._time_use = self._time_use.told(own_ms)

    def __call__(self, game: AnyGame, state: Any) -> Any:
        """The move to play."""
        began = self._now()
        seconds = self._time_use.for_move(moves_to_come(game, state))
        if self._longest_s is not None:
            seconds = min(seconds, self._longest_s)
        found = self._engine.search(state, Budget(seconds=seconds, nodes=self._nodes))
        self._time_use = self._time_use.used(self._now() - began)
        return found.move
