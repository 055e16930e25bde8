"""The Kalah engine: iterative deepening, and the special rules of a game's first decisions.

Theory of operation.  The kernel knows all rules but the swap and the first turn.  A swap takes the other side
of the same board.  So its value is minus the value of staying, and the value of the position is the larger of
the two (K8).  The opener, whose turn is followed by that choice, therefore searches for the turn after which
neither side is ahead.  Where first_turns.py has values of long searches, these decide.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from referee.games.kalah import SWAP, EndRule, Kalah, KalahState, Phase
from sample_bots.strong.engine import SearchLimits, SearchResult
from sample_bots.strong.kalah.cell_board import UNIT
from sample_bots.strong.kalah.first_turns import MOST_TURNS, FirstTurn, first_turns, stored_values
from sample_bots.strong.kalah.packed_board import MOST_PITS
from sample_bots.strong.kalah.search import INFINITE
from sample_bots.strong.kalah.searcher import (
    DEFAULT_TABLE_BITS,
    IterationResult,
    KalahSearcher,
    LimitMonitor,
    Settings,
)

DEEPEST = 100
"""Maximum depth in plies; every game that can be solved needs less."""
FORCED_NODES = 5_000
"""Maximum nodes for the value of a position with one legal move, unless the only limit is a depth."""


@dataclass(frozen=True)
class EvaluatedTurn:
    """A first turn and its value."""

    turn: FirstTurn
    reply: int
    """The opponent's best pit if the seats stay."""
    value: int
    """Value for the opener in units."""
    proven: bool


class KalahEngine:
    """``Engine`` for one variant of Kalah.  Values are final leads in seeds."""

    def __init__(
        self,
        game: Kalah,
        table_bits: int = DEFAULT_TABLE_BITS,
        settings: Settings | None = None,
        now: Callable[[], float] = time.monotonic,
        *,
        use_stored: bool = True,
    ) -> None:
        """The table has 2**table_bits entries of 16 bytes; without ``use_stored`` every swap is searched."""
        self._game = game
        self._searcher = KalahSearcher(game, table_bits, settings)
        self._stored = stored_values(game) if use_stored else {}
        self._now = now

    @staticmethod
    def warm_up() -> None:
        """Compile or load all kernels."""
        for pits in (2, MOST_PITS + 1):  # packed boards, and boards in cells
            game = Kalah(
                "warm-up", pits, 2, False, True, end=EndRule.EITHER, majority_end=False, empty_capture=False
            )
            KalahEngine(game, table_bits=4).search(game.initial_state(), SearchLimits(depth=2))

    def clear(self) -> None:
        """Empty the memory: the next search has the same result as a new engine's."""
        self._searcher.clear()

    def search(self, state: KalahState, limits: SearchLimits) -> SearchResult:
        """Return the best move of a state, see ``Engine``.  Raises ValueError if the game is over."""
        moves = self._game.legal_moves(state)
        if not moves:
            raise ValueError("the game is over: there is no best move")
        monitor = LimitMonitor(limits, self._now)
        if len(moves) == 1 and not (limits.nodes is None and limits.seconds is None):
            monitor.node_limit = min(monitor.node_limit, FORCED_NODES)
        self._searcher.new_search()
        depths = range(1, 1 + (DEEPEST if limits.depth is None else min(limits.depth, DEEPEST)))
        if state.phase in (Phase.OPENING, Phase.REPEATING) and (
            self._game.pie or not self._game.first_move_repeats
        ):
            return self._search_first_turn(state, monitor, depths)
        may_swap = state.phase is Phase.REPLY
        if may_swap and (stored := self._stored.get(state.board)) is not None:
            may_swap = False
            if stored.value > 0:
                return SearchResult(SWAP, round(stored.value), stored.depth, 0, stored.proven, (SWAP,))
        return self._deepen(state, monitor, depths, may_swap=may_swap)

    def _deepen(
        self, state: KalahState, monitor: LimitMonitor, depths: Iterable[int], *, may_swap: bool
    ) -> SearchResult:
        """Search the middle of the game, or the second player's first decision, deeper and deeper."""
        result = None
        first = 0
        for depth in depths:
            iteration = self._searcher.search(state, depth, monitor, first)
            if not iteration.finished:
                if result is None:
                    iteration = replace(iteration, pit=iteration.pit or self._searcher.likeliest())
                    result = self._result(state, iteration, 0, monitor, may_swap=may_swap)
                elif iteration.pit and not (may_swap and iteration.value < 0):
                    # A negative value is no reason to swap here: a better move might still have followed.
                    result = self._result(state, iteration, depth - 1, monitor, may_swap=may_swap)
                break
            first = iteration.pit
            result = self._result(state, iteration, depth, monitor, may_swap=may_swap)
            if iteration.proven:
                break
        assert result is not None
        return replace(result, nodes=monitor.nodes)

    def _result(
        self,
        state: KalahState,
        iteration: IterationResult,
        depth: int,
        monitor: LimitMonitor,
        *,
        may_swap: bool,
    ) -> SearchResult:
        """Return the result of a search whose last iteration was this one."""
        line = self._searcher.line(state, iteration.pit)
        value, nodes, proven = iteration.value, monitor.nodes, iteration.proven
        if may_swap and value < 0:  # K8
            return SearchResult(SWAP, in_seeds(-value), depth, nodes, proven, (SWAP, *line))
        return SearchResult(iteration.pit, in_seeds(value), depth, nodes, proven, line)

    def _search_first_turn(
        self, state: KalahState, monitor: LimitMonitor, depths: Iterable[int]
    ) -> SearchResult:
        """Search the opener's first turn, or the rest of it."""
        turns = first_turns(self._game, state)
        stored = [self._stored.get(turn.state.board) for turn in turns]
        if all(stored):
            value, index = max((-abs(one.value), -index) for index, one in enumerate(stored) if one)
            best_stored = stored[-index]
            assert best_stored is not None
            moves = turns[-index].moves
            return SearchResult(moves[0], round(value), best_stored.depth, 0, best_stored.proven, moves)
        complete = len(turns) < MOST_TURNS
        result = None
        evaluated = [EvaluatedTurn(turn, 0, -INFINITE, False) for turn in turns]
        for depth in depths:
            best = -INFINITE
            again: list[EvaluatedTurn] = []
            for before in evaluated:
                now = self._evaluate_turn(before, depth, monitor, best)
                if now is None:
                    break
                again.append(now)
                best = max(best, now.value)
            finished = len(again) == len(evaluated)
            proven = finished and complete and all(one.proven for one in again)
            if again:
                # The best turn of the last depth was searched first; missing turns were worse there.
                again.sort(key=lambda one: -one.value)
                result = SearchResult(
                    again[0].turn.moves[0],
                    in_seeds(again[0].value),
                    depth if finished else depth - 1,
                    monitor.nodes,
                    proven,
                    again[0].turn.moves,
                )
            if not finished or result is None:
                break
            evaluated = again
            if proven:
                break
        if result is None:
            result = SearchResult(turns[0].moves[0], 0, 0, monitor.nodes, False, turns[0].moves)
        return replace(result, nodes=monitor.nodes)

    def _evaluate_turn(
        self, before: EvaluatedTurn, depth: int, monitor: LimitMonitor, best: int
    ) -> EvaluatedTurn | None:
        """Return a first turn with its value at this depth, or an upper bound if that is less than ``best``.

        Returns None if the search reached a limit before it was finished.
        """
        state = before.turn.state
        if (outcome := self._game.outcome(state)) is not None:
            return replace(before, value=UNIT * (outcome.score[0] - outcome.score[1]), proven=True)
        pie = state.phase is Phase.REPLY
        window = (best if pie else -INFINITE, -best)
        if pie and (stored := self._stored.get(state.board)) is not None:
            return replace(before, value=-round(UNIT * abs(stored.value)), proven=stored.proven)
        if pie and best == 0:
            return replace(before, value=-1, proven=True)  # no turn is better than one that favours nobody
        iteration = self._searcher.search(state, depth, monitor, before.reply, window)
        if not iteration.finished:
            return None
        value = -abs(iteration.value) if pie else -iteration.value
        return EvaluatedTurn(before.turn, iteration.pit, value, iteration.proven)


def in_seeds(units: int) -> int:
    """Return units of the search as whole seeds, rounded."""
    return (units + UNIT // 2) // UNIT
