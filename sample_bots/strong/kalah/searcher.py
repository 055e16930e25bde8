"""The Kalah search with its memory: one position and one depth per call, within the limits of a search."""

from collections.abc import Callable
from dataclasses import dataclass

from referee.games.kalah import NORTH, EndRule, Kalah, KalahState
from sample_bots.strong.compiled import COMPILED, Array, array_of, zeros
from sample_bots.strong.engine import SearchLimits
from sample_bots.strong.kalah import search as kernel
from sample_bots.strong.kalah.board import key_of
from sample_bots.strong.kalah.cell_board import UNIT, random_numbers, weights_of
from sample_bots.strong.kalah.packed_board import fits, make_tables, pack_half
from sample_bots.strong.kalah.transposition_table import AGES, ENTRY, NO_PIT, bucket_of, probe

DEFAULT_TABLE_BITS = 22
"""Binary logarithm of the entries of the table: 2**22 entries take 64 MB compiled, of 512 MB for a bot."""
CACHE_LINE = 64
"""Bytes of a cache line on the usual processors; a wrong value costs only speed."""
LONGEST_LINE = 20
"""Maximum number of moves in an expected line."""
SLICE_S = 0.001
"""Target interval in seconds between two readings of the clock."""
SLICE_BOUNDS = (1_000, 20_000) if COMPILED else (100, 2_000)
"""Minimum and maximum number of nodes between two readings of the clock."""
UNLIMITED = 1 << 60
"""Limit of nodes if there is none."""


@dataclass(frozen=True)
class Settings:
    """Parameters of the search, which tests and measurements change.

    The scores are those of the defaults in games at manchester after 4 or 5 random plies, from both sides.
    """

    extra_cost: int = 0
    """Depth that an extra turn costs, in halves of a ply; scores 60 % against 1 (240 games, 5,000 nodes a
    move)."""
    quiet_plies: int = 8
    """Maximum plies of the quiescence search; scores 62 % against 0 (160 games, 3,000 nodes)."""
    late_moves: int = 3
    """Number of moves that are searched to the full depth before others are reduced; 0: none is reduced.  3
    scores 56 % against 0 (160 games, 3,000 nodes)."""
    table_ends: bool = True
    """True if a table entry may replace the search of a position; else it only determines the first move."""
    packed: bool = True
    """True if boards are packed where they fit (board.py): a faster search with the same results."""


@dataclass(frozen=True)
class IterationResult:
    """Result of the search of a position to one depth."""

    pit: int
    """The best pit, 1..p; the best of the searched ones if the iteration is not finished, or 0 if none
    was."""
    value: int
    """Value of the pit in units, the stores included."""
    proven: bool
    finished: bool
    """True if all moves were searched."""


class LimitMonitor:
    """Nodes and time that a search has used, and its limits."""

    def __init__(self, limits: SearchLimits, now: Callable[[], float]) -> None:
        self.nodes = 0
        self.node_limit = UNLIMITED if limits.nodes is None else limits.nodes
        self._now = now
        self._began = now()
        self._seconds = limits.seconds
        self._slice = SLICE_BOUNDS[0]

    def may_continue(self) -> bool:
        """Return whether neither limit is reached."""
        return self.nodes < self.node_limit and (self._seconds is None or self._used() < self._seconds)

    def next_check(self) -> int:
        """Return the number of nodes after which to call ``may_continue`` again."""
        if self._seconds is None:
            return self.node_limit
        if used := self._used():
            wanted = int(SLICE_S * self.nodes / used)
            self._slice = min(max(wanted, SLICE_BOUNDS[0]), SLICE_BOUNDS[1])
        return min(self.node_limit, self.nodes + self._slice)

    def _used(self) -> float:
        return self._now() - self._began


class KalahSearcher:
    """The kernel and its memory, for one game."""

    def __init__(
        self, game: Kalah, table_bits: int = DEFAULT_TABLE_BITS, settings: Settings | None = None
    ) -> None:
        self._game = game
        self._settings = settings = settings or Settings()
        self._table_bits = table_bits
        self._numbers = random_numbers(game.pits, game.total_seeds)
        self._weights = weights_of(game)
        packed = settings.packed and fits(game.pits, game.total_seeds)
        self._tables = make_tables(game.pits, self._weights) if packed else None
        self._age = 0
        width = 2 * game.pits
        self._cells = zeros(width * kernel.MAX_PLIES, "int16")
        self._frames = zeros(kernel.FRAME * kernel.MAX_PLIES, "int64")
        self._orders = zeros(game.pits * kernel.MAX_PLIES, "int64")
        self.clear()

    def clear(self) -> None:
        """Empty the table."""
        length = ENTRY << self._table_bits
        self._table = zeros(length + CACHE_LINE // 8, "int64")
        if COMPILED:
            # No bucket may lie in two cache lines.  The table is written once here, because the system
            # allocates memory at the first access, which took up to 0.4 s of the first move.
            skipped = -self._table.ctypes.data % CACHE_LINE // 8
            self._table = self._table[skipped : skipped + length]
            self._table[:] = 0
        self._age = 0
        self.new_search()

    def new_search(self) -> None:
        """Begin the search of another move: older entries of the table are replaced first."""
        self._age = (self._age + 1) % AGES
        self._killers = zeros(kernel.KILLERS * kernel.MAX_PLIES, "int64")
        self._history = zeros(kernel.SEEDS_KEPT * self._game.pits, "int64")

    def search(
        self,
        state: KalahState,
        depth: int,
        monitor: LimitMonitor,
        first: int = 0,
        window: tuple[int, int] | None = None,
    ) -> IterationResult:
        """Search a position of the middle of the game to a depth in plies, within the limits.

        ``first`` is the pit to search first.  ``window`` is alpha and beta in units; outside of it the value
        is a bound.
        """
        if monitor.nodes and not monitor.may_continue():
            return IterationResult(0, 0, False, False)
        cells, difference = self._board_of_mover(state)
        for at, seeds in enumerate(cells):
            self._cells[at] = seeds
        frames, p = self._frames, self._game.pits
        offset = UNIT * difference
        low, high = window or (-kernel.INFINITE, kernel.INFINITE)
        frames[kernel.DEPTH] = kernel.PLY * depth
        frames[kernel.ALPHA], frames[kernel.BETA] = low - offset, high - offset
        frames[kernel.OWN], frames[kernel.OTHER] = sum(cells[:p]), sum(cells[p:])
        frames[kernel.MINE], frames[kernel.THEIRS] = self._halves(cells)
        control = self._control(monitor, first)
        value = 0
        while True:
            control[kernel.PAUSE] = monitor.next_check()
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
            monitor.nodes = int(control[kernel.NODES])
            if not control[kernel.PAUSED]:
                pit = int(control[kernel.BEST_PIT]) or self.likeliest()
                return IterationResult(pit, int(value) + offset, not control[kernel.TAINT], True)
            if not monitor.may_continue():
                return IterationResult(
                    int(control[kernel.BEST_PIT]), int(control[kernel.BEST_VALUE]) + offset, False, False
                )

    def likeliest(self) -> int:
        """Return the pit that the latest search tried first; there is one however short the search was."""
        return int(self._orders[0] & NO_PIT) + 1

    def line(self, state: KalahState, pit: int) -> tuple[int, ...]:
        """Return the expected pits after a pit, which is the first, as far as they are in the table."""
        pits = [pit]
        state = self._game.apply(state, pit)
        mask = (1 << self._table_bits - 1) - 1
        while len(pits) < LONGEST_LINE and (legal := self._game.legal_moves(state)):
            cells = self._board_of_mover(state)[0]
            board, (mine, theirs) = array_of(cells, "int16"), self._halves(cells)
            key = key_of(board, 0, mine, theirs, self._game.pits, self._numbers, self._tables)
            packed = probe(self._table, bucket_of(key, mask), key)
            pit = int(packed & NO_PIT) + 1
            if packed < 0 or pit not in legal:
                break
            pits.append(pit)
            state = self._game.apply(state, pit)
        return tuple(pits)

    def _board_of_mover(self, state: KalahState) -> tuple[list[int], int]:
        """Return the mover's and the opponent's pits, and the lead of the mover's store."""
        p, board = self._game.pits, state.board
        north, south = list(board[:p]), list(board[p + 1 : -1])
        ahead = board[p] - board[-1]
        return (north + south, ahead) if state.seat == NORTH else (south + north, -ahead)

    def _halves(self, cells: list[int]) -> tuple[int, int]:
        """Return the mover's and the opponent's half as packed numbers; 0 for boards in cells."""
        p = self._game.pits
        return (pack_half(cells[:p]), pack_half(cells[p:])) if self._tables is not None else (0, 0)

    def _control(self, monitor: LimitMonitor, first: int) -> Array:
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
        control[kernel.NODES] = monitor.nodes
        control[kernel.FIRST_PIT] = first
        return control
