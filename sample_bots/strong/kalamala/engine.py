"""The Kalamala engine: iterative deepening over the kernels of the search."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from referee.games.kalamala import Kalamala, KalamalaState
from sample_bots.strong.compiled import COMPILED, zeros
from sample_bots.strong.engine import SearchLimits, SearchResult
from sample_bots.strong.kalamala.evaluation import WIN, WON
from sample_bots.strong.kalamala.geometry import code_of, text_of
from sample_bots.strong.kalamala.memory import (
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
from sample_bots.strong.kalamala.ordering import score_turns
from sample_bots.strong.kalamala.position import search_tables, set_up
from sample_bots.strong.kalamala.search import INFINITE, search_root
from sample_bots.strong.kalamala.transposition_table import AGES

COMPILED_TABLE_BITS, PLAIN_TABLE_BITS = 22, 18
"""Default binary logarithm of the table's entries: 64 MB of machine words, or lists that take less."""
UNLIMITED = 1 << 60
"""Limit of nodes if there is none."""
WINDOW = 40
"""Half width in points of the aspiration window around the value of the last iteration."""
WINDOW_DEPTH = 4
"""Least depth of an iteration with an aspiration window."""


class KalamalaEngine:
    """``Engine`` for Kalamala, which keeps its transposition table from one search to the next."""

    def __init__(self, game: Kalamala, table_bits: int | None = None, features: int = ALL_FEATURES) -> None:
        """The table has 2**table_bits entries; ``features`` are parts of the search (memory.py)."""
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
        """Compile or load all kernels of the search."""
        game = Kalamala("kalamala")
        cls(game, table_bits=8).search(game.initial_state(), SearchLimits(depth=3))

    def clear(self) -> None:
        """Empty the memory: the next search has the same result as a new engine's."""
        if COMPILED:
            self._table.fill(0)
        else:
            self._table[:] = [0] * len(self._table)
        self._memory[AGE] = 0

    def search(self, state: KalamalaState, limits: SearchLimits) -> SearchResult:
        """Return the best turn of a state, see ``Engine``.  Raises ValueError if the game is over.

        ``proven`` means a forced win or loss; table entries may not take account of rule 8.
        """
        with self._stopped_after(limits.seconds):
            turns = self._game.legal_moves(state)
            if not turns:
                raise ValueError("the game is over: there is no best move")
            if len(turns) == 1:
                return SearchResult(turns[0], 0, 0, 0, False, (turns[0],))
            self._prepare(state, turns, limits)
            return self._deepen(state, limits)

    @contextmanager
    def _stopped_after(self, seconds: float | None) -> Iterator[None]:
        """Stop searches after a time: another thread sets STOPPED, which the kernels read."""
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
            timer.join()  # else it might stop the next search

    def _prepare(self, state: KalamalaState, turns: list[str], limits: SearchLimits) -> None:
        """Set up the root, with its turns in the order of their scores."""
        memory = self._memory
        set_up(self._tables, memory, self._game, state)
        memory[NODES] = 0
        memory[NODE_LIMIT] = UNLIMITED if limits.nodes is None else limits.nodes
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

    def _deepen(self, state: KalamalaState, limits: SearchLimits) -> SearchResult:
        """Search deeper and deeper until a limit is reached or the game is decided."""
        memory = self._memory
        deepest = MAX_PLY - 1 if limits.depth is None else min(limits.depth, MAX_PLY - 1)
        result = SearchResult(text_of(int(memory[TURNS])), 0, 0, 0, False)
        for depth in range(1, deepest + 1):
            value = self._iterate(state.side, depth, result.value)
            if memory[STOPPED]:
                break
            line = self._line()
            result = SearchResult(line[0], value, depth, int(memory[NODES]), abs(value) >= WON, line)
            if abs(value) >= WON and WIN - abs(value) <= depth:
                break  # a deeper search cannot change it
        best = text_of(int(memory[TURNS]))
        if best != result.move:  # the stopped iteration had found a better turn
            result = replace(result, move=best, value=int(memory[ROOT_VALUE]), line=(best,), proven=False)
        return replace(result, nodes=int(memory[NODES]))

    def _iterate(self, side: int, depth: int, guess: int) -> int:
        """Search one iteration with a window around ``guess``, which is widened if the value is outside."""
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
        """Return the best line of the last iteration."""
        length = int(self._memory[LINE_LENGTHS])
        return tuple(text_of(int(code)) for code in self._memory[BEST_LINES : BEST_LINES + length])
