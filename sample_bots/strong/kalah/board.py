"""The board of the Kalah search: packed into two numbers if it fits, else in cells.

Theory of operation.  Each ply of the search has a board.  If ``tables`` are given, the board is packed (see
packed_board.py): it is two numbers in the ply's frame, ``mine`` and ``theirs``.  If ``tables`` is None, the
board is 2p cells of a flat array from index ``here`` on (see cell_board.py), and the two numbers are 0.  The
search calls the functions of this module, which select the kind of board.  numba compiles a kernel for None
separately, without the other branch.  Both kinds give the same results; at manchester, the compiled search is
about 1.5 times as fast with packed boards.
"""

from sample_bots.strong.compiled import Array, kernel
from sample_bots.strong.kalah import cell_board, packed_board
from sample_bots.strong.kalah.cell_board import UNIT

Tables = Array | None
"""Tables of packed_board.py; None for boards in cells."""


@kernel
def seeds_in(cells: Array, here: int, mine: int, pit: int, tables: Tables) -> int:
    """Return the seeds in a pit (0..p-1) of the player to move."""
    if tables is not None:
        return packed_board.seeds_in(mine, pit)
    return int(cells[here + pit])


@kernel
def evaluate(
    cells: Array,
    here: int,
    mine: int,
    theirs: int,
    p: int,
    own: int,
    other: int,
    weights: Array,
    tables: Tables,
) -> int:
    """Return the evaluation for the player to move; ``own`` and ``other`` are the seeds on the two sides."""
    if tables is not None:
        return packed_board.evaluate(mine, theirs, UNIT * (own + other), tables)
    return cell_board.evaluate(cells, here, p, own, other, weights)


@kernel
def key_of(cells: Array, here: int, mine: int, theirs: int, p: int, numbers: Array, tables: Tables) -> int:
    """Return the key of the board in the transposition table."""
    if tables is not None:
        return packed_board.key_of(mine, theirs)
    return cell_board.key_of(cells, here, p, numbers)


@kernel
def tactical_moves(cells: Array, here: int, mine: int, p: int, tables: Tables) -> int:
    """Return the pits that give an extra turn (K3) or may capture (K4), as bits 0..p-1."""
    if tables is not None:
        return packed_board.tactical_moves(mine, p, tables)
    return cell_board.tactical_moves(cells, here, p)


@kernel
def captured(
    cells: Array,
    here: int,
    theirs: int,
    p: int,
    pit: int,
    seeds: int,
    empty_capture: int,
    tables: Tables,
) -> int:
    """Return the seeds that a tactical move captures (K4), or -1 for an extra turn (K3).

    ``seeds`` are the seeds in the pit.
    """
    if tables is not None:
        return packed_board.captured(theirs, p, pit, seeds, empty_capture, tables)
    return cell_board.captured(cells, here, here + p, p, pit, empty_capture)


@kernel
def play(
    cells: Array,
    here: int,
    mine: int,
    theirs: int,
    p: int,
    own: int,
    other: int,
    pit: int,
    empty_capture: int,
    tables: Tables,
) -> tuple[int, int, int, int, int, int]:
    """Play a pit; a board in cells is written to the cells of the next ply.

    Returns:
        The seeds for the store, 1 for an extra turn or else 0, the two packed halves, and the seeds on the
        two sides.  The mover's half and side come first.
    """
    if tables is not None:
        gain, again, mine, theirs = packed_board.play(mine, theirs, p, pit, empty_capture, tables)
        return gain, again, mine, theirs, packed_board.seed_count(mine), packed_board.seed_count(theirs)
    gain, again, own, other = cell_board.play(cells, here, here + 2 * p, p, own, other, pit, empty_capture)
    return gain, again, 0, 0, own, other
