"""Time management: the time to think about a move under every time control (pure; times are in seconds).

Theory of operation.  The limits come from the announced time control, and the remaining time of the game from
TIME lines; without TIME lines the player counts the time that it has used itself.  Nearly all of a limit per
move is used.  A limit per game is divided by the number of moves that are still expected.  A reserve is kept
for the time between the end of a search and the time stamp of the referee.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from protocol.announced import AnnouncedTime
from referee.games.catalog import AnyGame
from referee.games.kalah import Kalah, KalahState
from referee.games.kalamala import Kalamala, KalamalaState

RESERVE_S = 0.04
"""Reserve of each limit, if the limit is long enough.  The search stops within 5 ms of its limit, and the
reply takes some milliseconds to the referee on a busy machine; this is several times as much.  The margin of
the time control, 50 ms by default, is never used."""
LEAST_SHARE = 0.5
"""Least share that is used of a limit, which matters if the limit is shorter than two reserves."""
UNKNOWN_S = 0.5
"""Time for a move if no limit is announced, as under the course's own referee: 60 moves of a long game of
Kalah take 30 s, well below that course's limits."""
FEWEST_MOVES = 8
"""Least divisor of a game's time, since the expected number of moves may be wrong."""
MOVE_COST_S = 0.002
"""Reserve for each move that may still come, for its cost beyond the search: 0.2 to 1.6 ms at the median on a
busy machine."""
LONGEST_GAME = 300
"""Own moves that ``MOVE_COST_S`` is reserved for.  The house's cap at Kalamala allows so many, and no game of
Kalah on the usual boards comes near it."""
MOVE_COST_SHARE = 0.5
"""Largest share of a short game's time that is reserved for the cost of moves."""
LARGEST_SHARE = 0.2
"""Largest share of the remaining time of a game that one move takes."""


@dataclass(frozen=True)
class TimeManager:
    """The time control of a game, and the time and moves used so far."""

    announced: AnnouncedTime
    left_s: float | None = None
    """Remaining time of the game in seconds; None if it has no limit, or none is known."""
    whole_s: float | None = None
    """Time of the whole game in seconds: the first known value of ``left_s``."""
    moves: int = 0
    """Number of own moves played."""

    @classmethod
    def from_announced(cls, announced: AnnouncedTime) -> "TimeManager":
        """Return the state at the beginning of a game."""
        whole_s = None if announced.game_ms is None else announced.game_ms / 1000
        return cls(announced, whole_s, whole_s)

    def with_clock(self, own_ms: int) -> "TimeManager":
        """Return the state after a TIME line.

        A TIME line has the remaining time of the game, or the limit per move in a game without a limit of its
        own.  If no time control was announced, it is taken for the former, which is the safer assumption.
        """
        if self.announced.game_ms is None and self.announced.move_ms is not None:
            return self
        left_s = own_ms / 1000
        return replace(self, left_s=left_s, whole_s=left_s if self.whole_s is None else self.whole_s)

    def after_move(self, seconds: float) -> "TimeManager":
        """Return the state after a move that took ``seconds``."""
        after = replace(self, moves=self.moves + 1)
        if self.left_s is None:
            return after
        return replace(after, left_s=max(0.0, self.left_s - seconds) + self.announced.increment_ms / 1000)

    def seconds_for_move(self, moves: float) -> float:
        """Return the time for the next move of ``moves`` expected own moves."""
        move_ms, increment = self.announced.move_ms, self.announced.increment_ms / 1000
        bounds = []
        if move_ms is not None:
            bounds.append(_usable(move_ms / 1000))
        if self.left_s is not None:
            usable = max(0.0, _usable(self.left_s) - self._move_costs())
            share = usable / max(FEWEST_MOVES, moves) + increment * LEAST_SHARE
            bounds.append(min(share, usable * LARGEST_SHARE + increment * LEAST_SHARE, usable))
        return min(bounds) if bounds else UNKNOWN_S

    def _move_costs(self) -> float:
        """Return the reserve for the cost of all moves beyond their searches."""
        assert self.whole_s is not None
        cost_s = min(MOVE_COST_S, self.whole_s * MOVE_COST_SHARE / LONGEST_GAME)
        return cost_s * max(0, LONGEST_GAME - self.moves)


def _usable(limit_s: float) -> float:
    """Return the part of a limit that may be used."""
    return max(limit_s - RESERVE_S, limit_s * LEAST_SHARE)


KALAH_MOVES_PER_SEED = 0.45
"""Expected own moves per seed in the pits: at manchester (98 seeds) 43 moves a player, as in games between
quick bots."""
KALAH_LAST_MOVES = 4
"""Expected own moves beside these: the last seeds are moved one by one."""
KALAMALA_MOVES = 30
"""Expected own moves at Kalamala.  Games of the search against minimax had 41 to 65 turns in the mean, of
both players together."""
UNKNOWN_MOVES = 40.0
"""Expected own moves in any other game."""


def _kalah_moves(game: Kalah, state: KalahState) -> float:
    in_pits = game.total_seeds - state.board[game.pits] - state.board[-1]
    return KALAH_LAST_MOVES + KALAH_MOVES_PER_SEED * in_pits


def _kalamala_moves(game: Kalamala, state: KalamalaState) -> float:
    return KALAMALA_MOVES


EXPECTED_MOVES: dict[type, Callable[[Any, Any], float]] = {Kalah: _kalah_moves, Kalamala: _kalamala_moves}
"""Class of the rule book -> expected own moves in a state."""


def expected_moves(game: AnyGame, state: Any) -> float:
    """Return the expected number of moves of the player to move, this one included."""
    moves_in = EXPECTED_MOVES.get(type(game))
    return UNKNOWN_MOVES if moves_in is None else moves_in(game, state)
