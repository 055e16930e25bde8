"""Alpha-beta search of any game, to a fixed depth.

Theory of operation.  The value of a position is always that for the player to move.  If the same player moves
again after a move (an extra turn), the value after the move is used unchanged, else negated; ``to_move`` of
the position after the move determines the player.  The swap of the pie rule is a move like any other, since a
player's side stays the same when the seats change.
"""

from collections.abc import Callable
from typing import Any, Generic

from referee.games.base import Game, M, S, Side

Evaluation = Callable[[Any, Any, Side], int]
"""Function (game, state, side) -> estimated lead of the side, in a game that is not over."""

DECIDED = 1_000_000
"""Bonus of a won game beside its margin: far above any evaluation."""

MAX_DEPTH = 20
"""Maximum depth that a user may choose; pure Python needs hours a move well below it."""


def static_value(game: Game[S, M], state: S, side: Side, evaluate: Evaluation) -> int:
    """Return the value of a position for a side without search; exact if the game is over."""
    outcome = game.outcome(state)
    if outcome is None:
        return evaluate(game, state, side)
    if outcome.winner is None:
        return 0
    margin = outcome.score[side] - outcome.score[side.other]
    return margin + (DECIDED if outcome.winner is side else -DECIDED)


class OutOfTimeError(Exception):
    """The search was stopped."""


class AlphaBeta(Generic[S, M]):
    """Search without memory between calls; deterministic."""

    def __init__(
        self, game: Game[S, M], evaluate: Evaluation, stop: Callable[[], bool] | None = None
    ) -> None:
        """``stop`` is called at each position; when it returns True, OutOfTimeError is raised."""
        self._game = game
        self._evaluate = evaluate
        self._stop = stop
        self.nodes = 0
        """Number of positions searched so far."""

    def best(self, state: S, depth: int) -> tuple[M, int]:
        """Return the best move of a game that is not over, and its value, at a depth of at least 1 ply.

        Among moves of equal value it is the one with the best evaluation after one ply, then the lowest.
        """
        best_move, best_value = None, -2 * DECIDED
        for move, child, again in self._successors(state, order=depth > 1):
            if again:
                value = self._value(child, depth - 1, best_value, 2 * DECIDED)
            else:
                value = -self._value(child, depth - 1, -2 * DECIDED, -best_value)
            if best_move is None or value > best_value:
                best_move, best_value = move, value
        if best_move is None:
            raise ValueError("the game is over: there is no best move")
        return best_move, best_value

    def _value(self, state: S, depth: int, alpha: int, beta: int) -> int:
        """Return the value for the player to move if it lies between alpha and beta, else a bound."""
        game = self._game
        self.nodes += 1
        if self._stop is not None and self._stop():
            raise OutOfTimeError
        if depth == 0 or game.outcome(state) is not None:
            return static_value(game, state, game.to_move(state), self._evaluate)
        best = -2 * DECIDED
        for _, child, again in self._successors(state, order=depth > 1):
            if again:
                value = self._value(child, depth - 1, alpha, beta)
            else:
                value = -self._value(child, depth - 1, -beta, -alpha)
            if value > best:
                best = value
                if value >= beta:
                    break
                alpha = max(alpha, value)
        return best

    def _successors(self, state: S, *, order: bool) -> list[tuple[M, S, bool]]:
        """Return every move, the state after it, and whether the same player moves again.

        With ``order``, moves with the best evaluation for the mover come first, which causes early cutoffs.
        Ordering the moves before the last ply saves nothing but evaluations.
        """
        game = self._game
        mover = game.to_move(state)
        successors = []
        for move in game.legal_moves(state):
            child = game.apply(state, move)
            successors.append((move, child, game.to_move(child) is mover))
        if order:
            evaluate = self._evaluate
            # An extra turn is worth about one unit; the sort keeps equal moves in their order.
            successors.sort(key=lambda item: -evaluate(game, item[1], mover) - item[2])
        return successors
