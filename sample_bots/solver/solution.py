"""The solution of a position, which may be incomplete, and its computation."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from referee.games.base import Side
from referee.games.kalah import Kalah, KalahState
from sample_bots.solver.solver import Bounds, Solver, StopSolving


@dataclass
class MoveValue:
    """Value of one move of the position."""

    move: int
    bounds: Bounds
    """Proved bounds of the first player's final margin after the move."""
    best: bool | None
    """True if no other move is better; None if that is not known."""


@dataclass
class Solution:
    """The answer to `kalarena solve`.  Margins are the first player's, as in K7."""

    game: Kalah
    state: KalahState
    bounds: Bounds
    moves: list[MoveValue] = field(default_factory=list)
    """All moves, in the rule book's order."""
    line: list[int] = field(default_factory=list)
    """Best play of both sides to the end, or the first moves of it if ``complete`` is false."""
    complete: bool = False
    """False if the solver was stopped."""
    positions: int = 0
    """Number of positions searched."""
    seconds: float = 0.0
    """Total time in seconds."""
    database_seconds: float = 0.0
    """Time in seconds for filling the database."""

    @property
    def best_moves(self) -> list[int]:
        """Moves that are proved to be best."""
        return [each.move for each in self.moves if each.best]

    def turns(self) -> list[tuple[str, list[str]]]:
        """Return the expected line as (seat, moves as texts), one for each turn."""
        turns: list[tuple[str, list[str]]] = []
        state, game = self.state, self.game
        previous = None
        for move in self.line:
            seat = game.seats(state)[game.to_move(state)]
            if previous is not game.to_move(state):
                turns.append((seat, []))
            previous = game.to_move(state)
            turns[-1][1].append(game.format_move(state, move))
            state = game.apply(state, move)
        return turns

    def to_json(self) -> dict[str, Any]:
        """Return all data for JSON; an unknown value is null, with its bounds in ``low`` and ``high``."""
        game, state = self.game, self.state
        return {
            "game": game.name,
            "position": game.format_state(state),
            "first_player": game.seats(state)[Side.FIRST],
            "to_move": game.seats(state)[game.to_move(state)],
            "unit": "result" if game.majority_end else "margin",
            **_known(self.bounds),
            "best": [game.format_move(state, move) for move in self.best_moves],
            "moves": [
                {"move": game.format_move(state, each.move), **_known(each.bounds), "best": each.best}
                for each in self.moves
            ],
            "line": [{"seat": seat, "moves": moves} for seat, moves in self.turns()],
            "complete": self.complete,
            "positions": self.positions,
            "seconds": round(self.seconds, 3),
            "database_seconds": round(self.database_seconds, 3),
        }


def _known(bounds: Bounds) -> dict[str, int | None]:
    return {"value": bounds.low if bounds.exact else None, "low": bounds.low, "high": bounds.high}


def solve(
    solver: Solver, state: KalahState, clock: Callable[[], float], *, all_moves: bool = False
) -> Solution:
    """Solve a state that is not over: the value, the best moves, the expected line.

    With ``all_moves`` every move's value is computed, else only whether it is a best one.  ``clock`` returns
    seconds.  If the solver is stopped (StopSolving), the solution has the bounds proved until then.
    """
    game = solver.game
    started = clock()
    solution = Solution(game, state, solver.bounds(state))
    best: dict[int, bool] = {}
    try:
        solver.prepare()
        solution.database_seconds = clock() - started
        value = solver.value(state)
        for move in game.legal_moves(state):
            best[move] = solver.keeps(state, move, value)
        if all_moves:
            for move in game.legal_moves(state):
                solver.value(game.apply(state, move))
        at = state
        while game.outcome(at) is None:
            move = solver.next_best(at, value)
            solution.line.append(move)
            at = game.apply(at, move)
        solution.complete = True
    except StopSolving:
        pass
    solution.bounds = solver.bounds(state)
    for move in game.legal_moves(state):
        # A best move has the position's own value.  An upper bound of the move itself was not proved.
        known = solution.bounds if best.get(move) else solver.bounds(game.apply(state, move))
        solution.moves.append(MoveValue(move, known, best.get(move)))
    solution.positions = solver.prover.positions
    solution.seconds = clock() - started
    return solution
