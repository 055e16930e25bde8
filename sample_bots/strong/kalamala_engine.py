"""The strong player's search of Kalamala."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from referee.games.kalamala import Kalamala, KalamalaState
from sample_bots.strong.compiled import COMPILED, zeros
from sample_bots.strong.engine import Budget, Found
from sample_bots.strong.kalamala_geometry import code_of, text_of
from sample_bots.strong.kalamala_memory import (
    AGE,
    ALL_FEATURES,
    BEST_LINES,
    BUCKET,
    FEATURES,
    HISTORY,
    HISTORY_SIZE,
    KILLERS,
    LINE_LENGTHS,
    MAX_PLY,
    MEMORY_SIZE,
    NODE_LIMIT,
    NODES,
    PASSED,
    ROOT_COUNT,
    ROOT_VALUE,
    SCORES,
    STOPPED,
    TABLE_MASK,
    TURNS,
)
from sample_bots.strong.kalamala_ordering import score_turns
from sample_bots.strong.kalamala_position import set_up
from sample_bots.strong.kalamala_search import INFINITE, search_root
from sample_bots.strong.kalamala_table import AGES
from sample_bots.strong.kalamala_tables import search_tables
from sample_bots.strong.kalamala_value import WIN, WON

COMPILED_TABLE_BITS, PLAIN_TABLE_BITS = 22, 18
"""Size of the table unless another is asked for: 64 MB of machine words, or lists that take less."""
NO_LIMIT = 1 << 60
WINDOW = 40
"""Points above and below the value of the last iteration, from WINDOW_DEPTH on."""
WINDOW_DEPTH = 4


class KalamalaEngine:
    """An ``Engine``: iterative deepening, keeping its transposition table from one search to the next.

    ``table_bits``: the table has 2 ** table_bits entries.
    """

    def __init__(self, game: Kalamala, table_bits: int | None = None, features: int = ALL_FEATURES) -> None:
        """``features``: parts of the search, as bits of kalamala_memory.py; all of them but in tests."""
        if table_bits is None:
            table_bits = COMPILED_TABLE_BITS if COMPILED else PLAIN_TABLE_BITS
        self._game = game
        self._tables = search_tables()
        self._memory = zeros(MEMORY_SIZE, "int64")
        buckets = 2**table_bits // 2
        self._table = zeros(BUCKET * buckets, "int64")
        self._memory[TABLE_MASK] = buckets - 1
        self._memory[FEATURES] = features

    @classmethod
    def warm_up(cls) -> None:
        """Compile all kernels of the search, or load them."""
        game = Kalamala("kalamala")
        cls(game, table_bits=8).search(game.initial_state(), Budget(depth=3))

    def forget(self) -> None:
        """Empty the memory: the next search is the same as a new engine's."""
        if COMPILED:
            self._table.fill(0)
        else:
            self._table[:] = [0] * len(self._table)
        self._memory[AGE] = 0

    def search(
        self,
        state: KalamalaState,
        budget: Budget,
        on_depth: Callable[[Found], None] | None = None,
    ) -> Found:
        """See ``Engine``.  ``proven`` means a forced win or loss, within what the table can know of rule 8.

        Raises ValueError if the game is over.
        """
        with self._stopped_after(budget.seconds):
            turns = self._game.legal_moves(state)
            if not turns:
                raise ValueError("the game is over: there is no best move")
            if len(turns) == 1:
                return Found(turns[0], 0, 0, 0, False, (turns[0],))
            self._prepare(state, turns, budget)
            return self._deepen(state, budget, on_depth)

    @contextmanager
    def _stopped_after(self, seconds: float | None) -> Iterator[None]:
        """Within it, a search ends after so many seconds: another thread writes what the kernels look at."""
        self._memory[STOPPED] = 0
        if seconds is None:
            yield
            return
        timer = threading.Timer(seconds, self._memory.__setitem__, (STOPPED, 1))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # lest it still stop the next search

    def _prepare(self, state: KalamalaState, turns: list[str], budget: Budget) -> None:
        """Set up the root, its turns in the order that they look good without search."""
        memory = self._memory
        set_up(self._tables, memory, self._game, state)
        memory[NODES] = 0
        memory[NODE_LIMIT] = NO_LIMIT if budget.nodes is None else budget.nodes
        memory[AGE] = (memory[AGE] + 1) % AGES
        for first, size in ((PASSED, MAX_PLY), (KILLERS, 2 * MAX_PLY), (HISTORY, HISTORY_SIZE)):
            if COMPILED:
                memory[first : first + size] = 0
            else:
                memory[first : first + size] = [0] * size
        own = state.black if state.side else state.white
        memory[ROOT_COUNT] = len(turns)
        for index, turn in enumerate(turns):
            memory[TURNS + index] = code_of(turn, own)
        score_turns(memory, 0, state.side, len(turns))
        ranks = sorted(range(len(turns)), key=lambda index: -int(memory[SCORES + index]))
        for place, code in enumerate([int(memory[TURNS + index]) for index in ranks]):
            memory[TURNS + place] = code

    def _deepen(
        self, state: KalamalaState, budget: Budget, on_depth: Callable[[Found], None] | None
    ) -> Found:
        """Search deeper and deeper until the budget is used up or the game is decided."""
        memory = self._memory
        deepest = MAX_PLY - 1 if budget.depth is None else min(budget.depth, MAX_PLY - 1)
        found = Found(text_of(int(memory[TURNS])), 0, 0, 0, False)
        for depth in range(1, deepest + 1):
            value = self._iterate(state.side, depth, found.value)
            if memory[STOPPED]:
                break
            line = self._line()
            found = Found(line[0], value, depth, int(memory[NODES]), abs(value) >= WON, line)
            if on_depth is not None:
                on_depth(found)
            if abs(value) >= WON and WIN - abs(value) <= depth:
                break  # whatever is deeper cannot change it
        best = text_of(int(memory[TURNS]))
        if best != found.move:  # the broken iteration had found a better one
            found = replace(found, move=best, value=int(memory[ROOT_VALUE]), line=(best,), proven=False)
        return replace(found, nodes=int(memory[NODES]))

    def _iterate(self, side: int, depth: int, guess: int) -> int:
        """One iteration, with a window around ``guess`` that is widened where it has to be."""
        alpha, beta, width = -INFINITE, INFINITE, WINDOW
        if depth >= WINDOW_DEPTH and abs(guess) < WON:
            alpha, beta = guess - width, guess + width
        while True:
            value = int(search_root(self._tables, self._memory, self._table, 0, side, depth, alpha, beta))
            if self._memory[STOPPED] or alpha < value < beta:
                return value
            width *= 4
            if value <= alpha:
                alpha = -INFINITE if width > 1_000 else alpha - width
            else:
                beta = INFINITE if width > 1_000 else beta + width

    def _line(self) -> tuple[str, ...]:
        """The best line of the last iteration."""
        length = int(self._memory[LINE_LENGTHS])
        return tuple(text_of(int(code)) for code in self._memory[BEST_LINES : BEST_LINES + length])
