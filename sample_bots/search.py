"""Alpha-beta search of any game, to a fixed depth.

Theory of operation.  The value of a position is always that for the player who is to move in it.  A
move may leave the same player to move (an extra turn, and the same holds for any rule that a game may
have): then the value after the move counts as it is, else with its sign turned.  Nothing here knows
whose turn follows; ``to_move`` of the position after the move tells.  The pie rule's swap is a move like
any other, since a player's side stays the same when the seats change.
"""

from collections.abc import Callable
from typing import Any, Generic

from referee.games.base import Game, M, S, Side

Evaluation = Callable[[Any, Any, Side], int]
"""(game, state, side) -> how far ahead the side seems to be, in a game that is not over."""

DECIDED = 1_000_000
"""Added to the margin of a game that is won: far above any evaluation."""

MAX_DEPTH = 20
"""Bound of the depth that a user may ask for; pure Python needs hours a move well below it."""


def static_value(game: Game[S, M], state: S, side: Side, evaluate: Evaluation) -> int:
    """The value of a position for a side without search: exact if the game is over."""
    outcome = game.outcome(state)
    if outcome is None:
        return evaluate(game, state, side)
    if outcome.winner is None:
        return 0
    margin = outcome.score[side] - outcome.score[side.other]
    return margin + (DECIDED if outcome.winner is side else -DECIDED)


class OutOfTimeError(Exception):
    """The search was told to stop."""


class AlphaBeta(Generic[S, M]):
    """A search; deterministic, and without memory from one call to the next."""

    def __init__(
        self, game: Game[S, M], evaluate: Evaluation, stop: Callable[[], bool] | None = None
    ) -> None:
        """``stop`` is asked at each position; once it says yes, OutOfTimeError is raised."""
        self._game = game
        self._evaluate = evaluate
        self._stop = stop
        self.nodes = 0
        """Positions looked at so far."""

    def best(self, state: S, depth: int) -> tuple[M, int]:
        """The best move of a game that is not over, and its value, looking ``depth`` >= 1 plies ahead.

        Among moves of equal value it is the one that looks best after one ply, then the lowest.
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
        """The value for the player to move if it lies between alpha and beta, else a bound beyond."""
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
        """Every move, the state after it, and whether the same player moves again.

        In order, those that look best for the mover come first, so that the others are cut off early.
        The moves before the last ply are not worth ordering: all there is to cut off is an evaluation.
        """
        game = self._game
        mover = game.to_move(state)
        successors = []
        for move in game.legal_moves(state):
            child = game.apply(state, move)
            successors.append((move, child, game.to_move(child) is mover))
        if order:
            evaluate = self._evaluate
            # An extra turn is worth about one more unit; the sort keeps equal ones in the moves' order.
            successors.sort(key=lambda item: -evaluate(game, item[1], mover) - item[2])
        return successors
