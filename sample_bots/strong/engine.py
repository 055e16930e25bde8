"""The interface of a game's search, and the player that chooses its moves with one."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from referee.games.catalog import AnyGame
from sample_bots.strong.time_manager import TimeManager, expected_moves


@dataclass(frozen=True)
class SearchLimits:
    """Limits of one search, which stops at the first that it reaches.

    Without any limit the search stops when the position is solved.
    """

    seconds: float | None = None
    """Time in seconds."""
    nodes: int | None = None
    """Number of nodes: a move played on a board is one node.  Deterministic, unlike ``seconds``."""
    depth: int | None = None
    """Depth in plies before extensions."""


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.  It always has a move, however low the limits were."""

    move: Any
    """The best move, one of the game's own."""
    value: int
    """Value for the player to move, in the unit of the engine (Kalah: final lead in seeds)."""
    depth: int
    """Plies of the last completed iteration; 0 if none was completed."""
    nodes: int
    """Number of nodes."""
    proven: bool
    """True if the value is exact: every line was followed to the end of the game."""
    line: tuple[Any, ...] = ()
    """Expected moves as far as they are known, the first of which is ``move``."""


class Engine(Protocol):
    """A search, which may keep a transposition table from one call to the next."""

    def search(self, state: Any, limits: SearchLimits) -> SearchResult:
        """Return the best move of a state that is not over.

        With limits of nodes or depth alone the result is a function of the calls so far, and the same
        compiled and in plain Python.
        """
        ...

    def clear(self) -> None:
        """Empty the memory: the next search has the same result as a new engine's."""
        ...


class StrongPlayer:
    """Player that searches for each move, called as (game, state) -> move."""

    def __init__(
        self,
        engine: Engine,
        time_manager: TimeManager,
        *,
        longest_s: float | None = None,
        nodes: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """``longest_s`` and ``nodes`` limit each move, beside the time control."""
        self._engine = engine
        self._time_manager = time_manager
        self._longest_s = longest_s
        self._nodes = nodes
        self._now = now

    def on_time(self, own_ms: int, _opponent_ms: int) -> None:
        """Take over the clock of a TIME line."""
        self._time_manager = self._time_manager.with_clock(own_ms)

    def __call__(self, game: AnyGame, state: Any) -> Any:
        """Return the move to play."""
        began = self._now()
        seconds = self._time_manager.seconds_for_move(expected_moves(game, state))
        if self._longest_s is not None:
            seconds = min(seconds, self._longest_s)
        result = self._engine.search(state, SearchLimits(seconds=seconds, nodes=self._nodes))
        self._time_manager = self._time_manager.after_move(self._now() - began)
        return result.move
