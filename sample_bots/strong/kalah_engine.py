"""The Kalah engine: what is special about a game's first decisions, around the search of its middle.

Theory of operation.  From the second player's first decision on, the search knows all rules but the swap.  To
swap is to take the other side of the same board, so it is worth minus what staying is worth, and the position
the larger of the two (K8).  The opener, whose turn is followed by that choice, therefore looks for the turn
after which neither side is ahead.  Where long searches were made before (kalah_swaps.py), they decide.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from referee.games.kalah import SWAP, EndRule, Kalah, KalahState, Phase
from sample_bots.strong.engine import Budget, Found
from sample_bots.strong.kalah_evaluation import UNIT
from sample_bots.strong.kalah_first_turns import MOST_TURNS, FirstTurn, first_turns
from sample_bots.strong.kalah_meter import Meter
from sample_bots.strong.kalah_search import INFINITE
from sample_bots.strong.kalah_searcher import DEFAULT_TABLE_BITS, KalahSearcher, Looked, Settings
from sample_bots.strong.kalah_swaps import swaps_of
from sample_bots.strong.kalah_words import MOST_PITS

DEEPEST = 100
"""Plies: more than any game needs to be solved that can be."""
FORCED_NODES = 5_000
"""For the value of a position with one move; where the budget is a depth alone, it is the depth."""

OnDepth = Callable[[Found], None]


@dataclass(frozen=True)
class Judged:
    """A first turn and what it is worth."""

    turn: FirstTurn
    reply: int
    """The opponent's best pit, if the seats stay."""
    worth: int
    """To the opener, in units."""
    proven: bool


class KalahEngine:
    """Search for one variant of Kalah (an ``Engine``).  Values are seeds ahead at the end."""

    def __init__(
        self,
        game: Kalah,
        table_bits: int = DEFAULT_TABLE_BITS,
        settings: Settings | None = None,
        now: Callable[[], float] = time.monotonic,
        *,
        use_swaps: bool = True,
    ) -> None:
        """The table has 2**table_bits entries of 16 bytes; without ``use_swaps`` every swap is searched."""
        self._game = game
        self._searcher = KalahSearcher(game, table_bits, settings)
        self._swaps = swaps_of(game) if use_swaps else {}
        self._now = now

    @staticmethod
    def warm_up() -> None:
        """Compile all kernels, or load them."""
        for pits in (2, MOST_PITS + 1):  # boards in words, and those that do not fit
            game = Kalah(
                "warm-up", pits, 2, False, True, end=EndRule.EITHER, majority_end=False, empty_capture=False
            )
            KalahEngine(game, table_bits=4).search(game.initial_state(), Budget(depth=2))

    def forget(self) -> None:
        """Empty the memory: the next search is the same as a new engine's."""
        self._searcher.forget()

    def search(self, state: KalahState, budget: Budget, on_depth: OnDepth | None = None) -> Found:
        """The best move of a state.  Raises ValueError if the game is over.  See ``Engine``."""
        moves = self._game.legal_moves(state)
        if not moves:
            raise ValueError("the game is over: there is no best move")
        meter = Meter(budget, self._now)
        if len(moves) == 1 and not (budget.nodes is None and budget.seconds is None):
            meter.node_limit = min(meter.node_limit, FORCED_NODES)
        self._searcher.new_search()
        depths = range(1, 1 + (DEEPEST if budget.depth is None else min(budget.depth, DEEPEST)))
        tell = on_depth or (lambda found: None)
        if state.phase in (Phase.OPENING, Phase.REPEATING) and (
            self._game.pie or not self._game.first_move_repeats
        ):
            return self._open(state, meter, depths, tell)
        may_swap = state.phase is Phase.REPLY
        if may_swap and (kept := self._swaps.get(state.board)) is not None:
            may_swap = False
            if kept.value > 0:
                return Found(SWAP, round(kept.value), kept.depth, 0, kept.proven, (SWAP,))
        return self._play(state, meter, depths, tell, may_swap=may_swap)

    def look(self, state: KalahState, depth: int) -> Looked:
        """The value, in units, of a state in the middle of a game at one depth, in plies: for tests."""
        return self._searcher.look(state, depth, Meter(Budget(), self._now))

    def _play(
        self, state: KalahState, meter: Meter, depths: Iterable[int], tell: OnDepth, *, may_swap: bool
    ) -> Found:
        """The middle of the game, or the second player's first decision."""
        found = None
        first = 0
        for depth in depths:
            looked = self._searcher.look(state, depth, meter, first)
            if not looked.finished:
                if found is None:
                    looked = replace(looked, pit=looked.pit or self._searcher.likeliest())
                    found = self._found(state, looked, 0, meter, may_swap=may_swap)
                elif looked.pit and not (may_swap and looked.value < 0):
                    # Only what is good enough already speaks against a swap: better might still have come.
                    found = self._found(state, looked, depth - 1, meter, may_swap=may_swap)
                break
            first = looked.pit
            found = self._found(state, looked, depth, meter, may_swap=may_swap)
            tell(found)
            if looked.proven:
                break
        assert found is not None
        return replace(found, nodes=meter.nodes)

    def _found(self, state: KalahState, looked: Looked, depth: int, meter: Meter, *, may_swap: bool) -> Found:
        """A look in the terms of the interface."""
        line = self._searcher.line(state, looked.pit)
        if may_swap and looked.value < 0:  # K8
            return Found(SWAP, in_seeds(-looked.value), depth, meter.nodes, looked.proven, (SWAP, *line))
        return Found(looked.pit, in_seeds(looked.value), depth, meter.nodes, looked.proven, line)

    def _open(self, state: KalahState, meter: Meter, depths: Iterable[int], tell: OnDepth) -> Found:
        """The opener's first turn, or what is left of it."""
        turns = first_turns(self._game, state)
        kept = [self._swaps.get(turn.state.board) for turn in turns]
        if all(kept):
            worth, index = max((-abs(one.value), -index) for index, one in enumerate(kept) if one)
            one = kept[-index]
            assert one is not None
            return Found(turns[-index].moves[0], round(worth), one.depth, 0, one.proven, turns[-index].moves)
        complete = len(turns) < MOST_TURNS
        found = None
        judged = [Judged(turn, 0, -INFINITE, False) for turn in turns]
        for depth in depths:
            best = -INFINITE
            again: list[Judged] = []
            for one_of in judged:
                now = self._judge(one_of, depth, meter, best)
                if now is None:
                    break
                again.append(now)
                best = max(best, now.worth)
            finished = len(again) == len(judged)
            proven = finished and complete and all(one.proven for one in again)
            if again:
                # The best of the depth before was looked at first; what is missing was less good then.
                again.sort(key=lambda one: -one.worth)
                found = Found(
                    again[0].turn.moves[0],
                    in_seeds(again[0].worth),
                    depth if finished else depth - 1,
                    meter.nodes,
                    proven,
                    again[0].turn.moves,
                )
            if not finished or found is None:
                break
            judged = again
            tell(found)
            if proven:
                break
        if found is None:
            found = Found(turns[0].moves[0], 0, 0, meter.nodes, False, turns[0].moves)
        return replace(found, nodes=meter.nodes)

    def _judge(self, judged: Judged, depth: int, meter: Meter, best: int) -> Judged | None:
        """What a first turn is worth to the opener, in units; a bound if that is less than the best one.

        None if the meter did not allow to see it all.
        """
        state = judged.turn.state
        if (outcome := self._game.outcome(state)) is not None:
            return replace(judged, worth=UNIT * (outcome.score[0] - outcome.score[1]), proven=True)
        pie = state.phase is Phase.REPLY
        window = (best if pie else -INFINITE, -best)
        if pie and (kept := self._swaps.get(state.board)) is not None:
            return replace(judged, worth=-round(UNIT * abs(kept.value)), proven=kept.proven)
        if pie and best == 0:
            return replace(judged, worth=-1, proven=True)  # nothing is better than a turn that favours nobody
        looked = self._searcher.look(state, depth, meter, judged.reply, window)
        if not looked.finished:
            return None
        worth = -abs(looked.value) if pie else -looked.value
        return Judged(judged.turn, looked.pit, worth, looked.proven)


def in_seeds(units: int) -> int:
    """Units of the search as whole seeds."""
    return (units + UNIT // 2) // UNIT
