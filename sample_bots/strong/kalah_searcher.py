"""The Kalah search with its memory: one position, one depth at a time."""

from dataclasses import dataclass

from referee.games.kalah import NORTH, EndRule, Kalah, KalahState
from sample_bots.strong import kalah_search as kernel
from sample_bots.strong.compiled import COMPILED, Array, array_of, zeros
from sample_bots.strong.kalah_board import key_of
from sample_bots.strong.kalah_evaluation import UNIT, weights_of
from sample_bots.strong.kalah_meter import Meter
from sample_bots.strong.kalah_table import AGES, ENTRY, NO_PIT, find, place_of, random_numbers
from sample_bots.strong.kalah_words import fits, tables_of, word_of

DEFAULT_TABLE_BITS = 22
"""A table of 2**22 entries takes 64 MB compiled, of the 512 MB that a bot may have."""
CACHE_LINE = 64
"""Bytes, on the usual processors; on others nothing but speed is lost."""
LONGEST_LINE = 20
"""Moves of the expected line that are given."""


@dataclass(frozen=True)
class Settings:
    """What of the search can be turned off, for tests and measurements.

    The scores are those of the defaults in games at manchester from 4 or 5 random plies, both sides.
    """

    extra_cost: int = 0
    """Depth that an extra turn costs, in halves of a ply; 60% against 1 (240 games, 5,000 nodes a move)."""
    quiet_plies: int = 8
    """Plies that captures and extra turns may go on beyond the depth; 62% against 0 (160 games, 3,000)."""
    late_moves: int = 3
    """Moves that are looked at in full depth before others are reduced; 0: none is reduced, and 3 scores 56%
    against it (160 games, 3,000 nodes)."""
    table_ends: bool = True
    """Whether the table can end the search of a position; if not, it only says with which move to begin."""
    words: bool = True
    """Whether boards are kept in words where they fit (kalah_board.py), which finds the same sooner."""


@dataclass(frozen=True)
class Looked:
    """What one look at a position, to one depth, found."""

    pit: int
    """The best one, 1..p; of an unfinished look the best of those that were seen, 0 if none was."""
    value: int
    """Its value, in units, the stores included."""
    proven: bool
    finished: bool
    """Whether all moves were seen."""


class KalahSearcher:
    """The kernel with its memory, for one game."""

    def __init__(
        self, game: Kalah, table_bits: int = DEFAULT_TABLE_BITS, settings: Settings | None = None
    ) -> None:
        self._game = game
        self._settings = settings = settings or Settings()
        self._table_bits = table_bits
        self._numbers = random_numbers(game.pits, game.total_seeds)
        self._weights = weights_of(game)
        in_words = settings.words and fits(game.pits, game.total_seeds)
        self._tables = tables_of(game.pits, self._weights) if in_words else None
        self._age = 0
        width = 2 * game.pits
        self._cells = zeros(width * kernel.MAX_PLIES, "int16")
        self._frames = zeros(kernel.FRAME * kernel.MAX_PLIES, "int64")
        self._orders = zeros(game.pits * kernel.MAX_PLIES, "int64")
        self.forget()

    def forget(self) -> None:
        """Empty the table."""
        length = ENTRY << self._table_bits
        self._table = zeros(length + CACHE_LINE // 8, "int64")
        if COMPILED:
            # No place may lie in two lines of the processor's cache.  The system gives memory when it is
            # first touched, which took up to 0.4 s of the first move.
            skipped = -self._table.ctypes.data % CACHE_LINE // 8
            self._table = self._table[skipped : skipped + length]
            self._table[:] = 0
        self._age = 0
        self.new_search()

    def new_search(self) -> None:
        """Another move of the game: what the table holds may be replaced sooner."""
        self._age = (self._age + 1) % AGES
        self._killers = zeros(kernel.KILLERS * kernel.MAX_PLIES, "int64")
        self._history = zeros(kernel.SEEDS_KEPT * self._game.pits, "int64")

    def look(
        self,
        state: KalahState,
        depth: int,
        meter: Meter,
        first: int = 0,
        window: tuple[int, int] | None = None,
    ) -> Looked:
        """Search a position of the middle of the game to a depth in plies, as far as the meter allows.

        ``first`` is the pit to begin with; ``window`` are the values, in units, between which the
        value is wanted: outside it is a bound.
        """
        if meter.nodes and not meter.may_go_on():
            return Looked(0, 0, False, False)
        cells, difference = self._seen_by_mover(state)
        for at, seeds in enumerate(cells):
            self._cells[at] = seeds
        frames, p = self._frames, self._game.pits
        offset = UNIT * difference
        low, high = window or (-kernel.INFINITE, kernel.INFINITE)
        frames[kernel.DEPTH] = kernel.PLY * depth
        frames[kernel.ALPHA], frames[kernel.BETA] = low - offset, high - offset
        frames[kernel.OWN], frames[kernel.OTHER] = sum(cells[:p]), sum(cells[p:])
        frames[kernel.MINE], frames[kernel.THEIRS] = self._words(cells)
        control = self._control(meter, first)
        value = 0
        while True:
            control[kernel.PAUSE] = meter.next_pause()
            value = kernel.search(
                self._cells,
                frames,
                self._orders,
                self._killers,
                self._history,
                self._table,
                self._numbers,
                self._weights,
                self._tables,
                control,
            )
            meter.nodes = int(control[kernel.NODES])
            if not control[kernel.PAUSED]:
                pit = int(control[kernel.BEST_PIT]) or self.likeliest()
                return Looked(pit, int(value) + offset, not control[kernel.TAINT], True)
            if not meter.may_go_on():
                return Looked(
                    int(control[kernel.BEST_PIT]), int(control[kernel.BEST_VALUE]) + offset, False, False
                )

    def likeliest(self) -> int:
        """The pit that the latest look tried first; there is one however short it was."""
        return int(self._orders[0] & NO_PIT) + 1

    def line(self, state: KalahState, pit: int) -> tuple[int, ...]:
        """The expected pits, beginning with this one, as far as the table knows them."""
        pits = [pit]
        state = self._game.apply(state, pit)
        mask = (1 << self._table_bits - 1) - 1
        while len(pits) < LONGEST_LINE and (legal := self._game.legal_moves(state)):
            cells = self._seen_by_mover(state)[0]
            board, (mine, theirs) = array_of(cells, "int16"), self._words(cells)
            key = key_of(board, 0, mine, theirs, self._game.pits, self._numbers, self._tables)
            packed = find(self._table, place_of(key, mask), key)
            pit = int(packed & NO_PIT) + 1
            if packed < 0 or pit not in legal:
                break
            pits.append(pit)
            state = self._game.apply(state, pit)
        return tuple(pits)

    def _seen_by_mover(self, state: KalahState) -> tuple[list[int], int]:
        """The pits as the kernel wants them, and how far ahead the mover's store is."""
        p, board = self._game.pits, state.board
        north, south = list(board[:p]), list(board[p + 1 : -1])
        ahead = board[p] - board[-1]
        return (north + south, ahead) if state.seat == NORTH else (south + north, -ahead)

    def _words(self, cells: list[int]) -> tuple[int, int]:
        """The mover's and the opponent's half as words; 0 if they do not fit."""
        p = self._game.pits
        return (word_of(cells[:p]), word_of(cells[p:])) if self._tables is not None else (0, 0)

    def _control(self, meter: Meter, first: int) -> Array:
        control = zeros(kernel.CONTROLS, "int64")
        control[kernel.PITS] = self._game.pits
        control[kernel.EMPTY_CAPTURE] = int(self._game.empty_capture)
        control[kernel.ON_TURN] = int(self._game.end is EndRule.ON_TURN)
        control[kernel.TABLE_MASK] = (1 << self._table_bits - 1) - 1
        control[kernel.AGE] = self._age
        control[kernel.EXTRA_COST] = self._settings.extra_cost
        control[kernel.QUIET_PLIES] = self._settings.quiet_plies
        control[kernel.LATE_MOVES] = self._settings.late_moves
        control[kernel.TABLE_ENDS] = int(self._settings.table_ends)
        control[kernel.NODES] = meter.nodes
        control[kernel.FIRST_PIT] = first
        return control
