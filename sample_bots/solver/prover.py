"""Proofs about single positions by the search and the database, and the bounds proved so far."""

from collections.abc import Callable

from sample_bots.solver.database import EndgameDatabase
from sample_bots.solver.layout import FACTS, MAX_BITS, Layout, UnsuitableBoardError, positions_up_to
from sample_bots.solver.search import (
    BUCKETS,
    CHILD,
    DATABASE_SIZE,
    EFFORT_BITS,
    F_COUNT,
    F_GOAL,
    F_NUMBER,
    F_OTHER,
    F_OWN,
    F_SEEDS,
    FRAME,
    MOST_PLIES,
    PER_PIT,
    S_DEPTH,
    S_POSITIONS,
    S_RESULT,
    S_RETURNED,
    SEARCH_FACTS,
    STATE,
    VALUE_BITS,
    search,
)
from sample_bots.strong.compiled import COMPILED, array_of, zeros

SLICE = 500_000 if COMPILED else 1_000
"""Positions searched between two calls of ``on_slice``: some tenths of a second."""

BYTES_PER_ENTRY = 8 if COMPILED else 48
"""Bytes of an entry of the memory; in plain Python a slot of a list and a number."""

FAR_PITS_FIRST = {5}
"""Boards, by pits a side, for which the search begins with the pits far from the store.  With databases of 16
and 14 seeds, the proof that (5,5) is won took 7 million positions this way and 18 million the other way; that
(6,4) is won by at least 6, 108 and 10 million."""


class TooDeepError(RuntimeError):
    """A line has more than MOST_PLIES plies, which happens on no board that can be solved."""


class Prover:
    """Margins still to be won from positions of one board, from the mover's view.

    A position is (own, other): the packed sides, see layout.py.  The game is not over in it.
    """

    def __init__(
        self,
        layout: Layout,
        database: EndgameDatabase,
        entries: int,
        on_slice: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the memory.  Raises UnsuitableBoardError if an entry cannot hold a position of this board.

        ``entries`` is the size of the memory in positions.  ``on_slice`` is called regularly, and may raise.
        """
        buckets = max(1, entries // 2)
        value_bits = layout.seeds.bit_length()
        rest = (positions_up_to(layout.pits, layout.seeds) - 1) // buckets + 1
        if rest.bit_length() + 2 * value_bits + EFFORT_BITS > MAX_BITS:
            raise UnsuitableBoardError(
                f"{layout.seeds} seeds in {2 * layout.pits} pits need more memory: "
                "an entry cannot hold such a position"
            )
        facts = [int(fact) for fact in layout.facts] + [0] * (SEARCH_FACTS - FACTS)
        facts[DATABASE_SIZE] = database.size
        facts[BUCKETS] = buckets
        facts[VALUE_BITS] = value_bits
        facts[PER_PIT] = -1 if layout.pits in FAR_PITS_FIRST else 1
        self.layout = layout
        self.on_slice = on_slice
        self._database = database
        self._facts = array_of(facts, "int64")
        self._memory = zeros(2 * buckets, "int64")
        self._state = zeros(STATE, "int64")
        self._frames = zeros(MOST_PLIES * FRAME, "int64")
        self._children = zeros(MOST_PLIES * layout.pits * CHILD, "int64")
        self._proved: dict[tuple[int, int], tuple[int, int]] = {}

    @property
    def positions(self) -> int:
        """Number of positions searched so far, each with a list of all its successors."""
        return int(self._state[S_POSITIONS])

    def bounds(self, own: int, other: int) -> tuple[int, int]:
        """Return the proved bounds of a position's margin."""
        seeds = self.layout.seeds_in(own) + self.layout.seeds_in(other)
        if seeds < self._database.layers:
            value = self._database.value(own, other)
            return value, value
        return self._proved.get((own, other), (-seeds, seeds))

    def at_least(self, own: int, other: int, goal: int) -> bool:
        """Return whether the mover gets at least ``goal`` more seeds of the pits than the other player.

        Raises TooDeepError, and the exceptions of ``on_slice``.
        """
        low, high = self.bounds(own, other)
        if goal <= low:
            return True
        if goal > high:
            return False
        seeds = self.layout.seeds_in(own) + self.layout.seeds_in(other)
        goal += (goal - seeds) % 2  # the margin has the parity of the seeds
        result = self._search(own, other, seeds, goal)
        if result >= goal:
            low = max(low, result)
        else:
            high = min(high, result)
        self._proved[own, other] = low, high
        return result >= goal

    def _search(self, own: int, other: int, seeds: int, goal: int) -> int:
        """Return a bound of the margin: a lower one if it is at least the goal, else an upper one."""
        state, frames, layout = self._state, self._frames, self.layout
        frames[F_OWN], frames[F_OTHER], frames[F_SEEDS] = own, other, seeds
        frames[F_NUMBER], frames[F_GOAL], frames[F_COUNT] = layout.number(own, other), goal, -1
        state[S_DEPTH] = state[S_RETURNED] = 0
        while True:
            status = search(
                state,
                frames,
                self._children,
                self._memory,
                self._database.values,
                self._facts,
                layout.sowings,
                layout.numbers,
                SLICE,
            )
            if status < 0:
                raise TooDeepError(f"a line of more than {MOST_PLIES} plies")
            if status > 0:
                return int(state[S_RESULT])
            self.on_slice()
