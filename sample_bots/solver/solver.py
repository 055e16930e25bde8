"""Exact values of Kalah positions, their best moves, and best play to the end.

Theory of operation.  All answers are built on one question: "does the first player end with a margin of at
least GOAL?"  In the middle of a game the prover answers it, for the pits alone.  The special rules of the
first decisions of a game (K8, K9) are played with the rule book, and the question is asked about the states
after each move.

With majority-end (K6) the last seeds are not played, so the stores at the end of a game have little meaning;
only the winner counts.  The winner cannot change any more by then, so the result is that of the game without
K6, and values are 1, 0 or -1: won, drawn or lost for the first player.
"""

from collections.abc import Callable
from dataclasses import dataclass

from referee.games.base import Side
from referee.games.kalah import NORTH, EndRule, Kalah, KalahState, Phase
from sample_bots.solver.database import MOST_SEEDS, EndgameDatabase
from sample_bots.solver.layout import make_layout, positions_up_to
from sample_bots.solver.prover import BYTES_PER_ENTRY, Prover
from sample_bots.strong.compiled import COMPILED, execution_mode

MOST_DATABASE_POSITIONS = 1 << 26 if COMPILED else 30_000
"""Maximum positions in the database: 64 MiB compiled.  A core filled 13 million a second compiled, 280
thousand in plain Python."""

WHOLE_DATABASE_POSITIONS = 200_000 if COMPILED else 3_000
"""Maximum positions of a board that is put into the database completely: some hundredths of a second."""


@dataclass(frozen=True)
class Bounds:
    """Proved bounds of a value."""

    low: int
    high: int

    @property
    def exact(self) -> bool:
        """True if the value is known."""
        return self.low == self.high


class StopSolving(Exception):  # noqa: N818 - not an error: the caller has asked for it
    """Raised by ``on_slice`` to stop a solver, which keeps the bounds proved until then."""


def database_seeds(pits: int, seeds: int, memory: int) -> int:
    """Return the maximum seeds of the database for a position with ``seeds`` seeds, in ``memory`` bytes.

    It is two fifths of the seeds (the search seldom gets below before all is decided), or less if the limits
    above or a quarter of the memory require that.
    """
    if positions_up_to(pits, seeds) <= WHOLE_DATABASE_POSITIONS and seeds <= MOST_SEEDS:
        return seeds
    most = min(MOST_DATABASE_POSITIONS, memory // 4)
    reach = 0
    while reach < min(2 * seeds // 5, MOST_SEEDS) and positions_up_to(pits, reach + 1) <= most:
        reach += 1
    return reach


class Solver:
    """Solver for positions of one game that have no more seeds in the pits than the first state."""

    def __init__(
        self,
        game: Kalah,
        state: KalahState,
        memory: int,
        on_slice: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the tables, in about ``memory`` bytes; ``prepare`` fills the database.

        ``on_slice`` is called several times in a second while the solver works, and may raise StopSolving.
        Raises UnsuitableBoardError if the board is too large.
        """
        self.game = game
        seeds = max(1, sum(state.board) - state.board[game.pits] - state.board[-1])
        layout = make_layout(
            game.pits, seeds, on_turn=game.end is EndRule.ON_TURN, empty_capture=game.empty_capture
        )
        self.database = EndgameDatabase(layout, database_seeds(game.pits, seeds, memory))
        entries = 2 if self.database.seeds == seeds else (memory - self.database.size) // BYTES_PER_ENTRY
        self.prover = Prover(layout, self.database, entries, on_slice)
        self.unit = 1 if game.majority_end else 2
        """Least difference of two values: margins are even, since the number of all seeds is."""

    @property
    def kernels(self) -> str:
        """Description for people how the kernels run in this process."""
        return execution_mode()

    def prepare(self) -> None:
        """Fill the database."""
        self.database.fill(lambda _: self.prover.on_slice())

    def bounds(self, state: KalahState) -> Bounds:
        """Return the bounds of a state's value that are proved so far, without a search."""
        game = self.game
        outcome = game.outcome(state)
        if outcome is not None:
            low = high = outcome.score[Side.FIRST] - outcome.score[Side.SECOND]
        elif self._is_ordinary(state):
            own, other, ahead, sign = self._view_of_mover(state)
            low, high = self.prover.bounds(own, other)
            low, high = low + ahead, high + ahead
            if sign < 0:
                low, high = -high, -low
        else:
            known = [self.bounds(game.apply(state, move)) for move in game.legal_moves(state)]
            choose = max if game.to_move(state) is Side.FIRST else min
            return Bounds(choose(each.low for each in known), choose(each.high for each in known))
        return Bounds(_sign(low), _sign(high)) if game.majority_end else Bounds(low, high)

    def at_least(self, state: KalahState, goal: int) -> bool:
        """Return whether the value of a state is at least ``goal``."""
        game = self.game
        known = self.bounds(state)
        if known.low >= goal:
            return True
        if known.high < goal:
            return False
        if not self._is_ordinary(state):
            each = (self.at_least(game.apply(state, move), goal) for move in game.legal_moves(state))
            return any(each) if game.to_move(state) is Side.FIRST else all(each)
        own, other, ahead, sign = self._view_of_mover(state)
        if sign > 0:
            return self.prover.at_least(own, other, goal - ahead)
        # The second player is to move, and keeps the first below the goal with a lead of more than -goal.
        return not self.prover.at_least(own, other, 1 - goal - ahead)

    def value(self, state: KalahState) -> int:
        """Return the first player's final margin (K7) with best play; 1, 0 or -1 with majority-end.

        The winner is determined first, so that it is known early.
        """
        unit = self.unit
        if self.at_least(state, unit):
            goal = 2 * unit
            while self.at_least(state, goal):
                goal = max(goal, self.bounds(state).low) + unit
            return goal - unit
        goal = 0
        while not self.at_least(state, goal):
            goal = min(goal, self.bounds(state).high + unit) - unit
        return goal

    def keeps(self, state: KalahState, move: int, value: int) -> bool:
        """Return whether a move leads to the value of its state, so that it is a best one."""
        after = self.game.apply(state, move)
        if self.game.to_move(state) is Side.FIRST:
            return self.at_least(after, value)
        return not self.at_least(after, value + self.unit)

    def next_best(self, state: KalahState, value: int) -> int:
        """Return one best move of a state that is not over and has this value."""
        moves = self.game.legal_moves(state)
        # Moves that need no search come first; pits near the store are often best.
        moves.sort(key=lambda move: (not self._is_settled(state, move, value), -move))
        return next(move for move in moves if self.keeps(state, move, value))

    def _is_settled(self, state: KalahState, move: int, value: int) -> bool:
        known = self.bounds(self.game.apply(state, move))
        return known.low >= value if self.game.to_move(state) is Side.FIRST else known.high <= value

    def _is_ordinary(self, state: KalahState) -> bool:
        """Return whether no special rule applies to the next decision."""
        game = self.game
        if state.phase is Phase.OPENING:
            return game.first_move_repeats and not game.pie
        return state.phase is Phase.PLAY

    def _view_of_mover(self, state: KalahState) -> tuple[int, int, int, int]:
        """Return own and other side, the lead of the mover's store, and the mover's sign.

        The sign is 1 for the first player, else -1.
        """
        p = self.game.pits
        board = state.board
        north, south = self.prover.layout.pack(board[:p]), self.prover.layout.pack(board[p + 1 : -1])
        sign = 1 if self.game.to_move(state) is Side.FIRST else -1
        if state.seat == NORTH:
            return north, south, board[p] - board[-1], sign
        return south, north, board[-1] - board[p], sign


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
