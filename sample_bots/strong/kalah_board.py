"""The board of the Kalah search: in words where they fit, else in cells.

Theory of operation.  Each ply of the search has a board.  Where ``tables`` are given, it is two words (see
kalah_words.py), which stand in the ply's frame; where they are None, it is 2p cells of a flat array from
``here`` on (see kalah_rules.py), and the words are 0.  There is one search, and all that it asks of a board
goes through here.  numba compiles a kernel for None apart, and leaves out what is not for it.  Both ways find
the same; at manchester, words make the compiled search about 1.5 times as quick.
"""

from sample_bots.strong import kalah_evaluation, kalah_rules, kalah_table, kalah_words
from sample_bots.strong.compiled import Array, kernel
from sample_bots.strong.kalah_evaluation import UNIT

Tables = Array | None
"""Those of kalah_words.py, or None for boards in cells."""


@kernel
def seeds_in(cells: Array, here: int, mine: int, pit: int, tables: Tables) -> int:
    """The seeds in a pit (0..p-1) of the player to move."""
    if tables is not None:
        return kalah_words.seeds_in(mine, pit)
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
    """The guess for the player to move, in units; ``own`` and ``other`` are the seeds on the two sides."""
    if tables is not None:
        return kalah_words.evaluate(mine, theirs, UNIT * (own + other), tables)
    return kalah_evaluation.evaluate(cells, here, p, own, other, weights)


@kernel
def key_of(cells: Array, here: int, mine: int, theirs: int, p: int, numbers: Array, tables: Tables) -> int:
    """What the board is called in the transposition table."""
    if tables is not None:
        return kalah_words.key_of(mine, theirs)
    return kalah_table.key_of(cells, here, p, numbers)


@kernel
def lively_pits(cells: Array, here: int, mine: int, p: int, tables: Tables) -> int:
    """Which pits give an extra turn (K3) or may capture (K4), as bits 0..p-1."""
    if tables is not None:
        return kalah_words.lively_pits(mine, p, tables)
    return kalah_rules.lively_pits(cells, here, p)


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
    """What playing a lively pit with so many seeds captures (K4), or -1 for an extra turn (K3)."""
    if tables is not None:
        return kalah_words.captured(theirs, p, pit, seeds, empty_capture, tables)
    return kalah_rules.captured(cells, here, here + p, p, pit, empty_capture)


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
    """Play a pit; cells go to the next ply's.

    Returns the seeds for the store, 1 for an extra turn or else 0, the two words, and the seeds on the two
    sides, these four in the mover's order.
    """
    if tables is not None:
        gain, again, mine, theirs = kalah_words.play(mine, theirs, p, pit, empty_capture, tables)
        return gain, again, mine, theirs, kalah_words.all_seeds(mine), kalah_words.all_seeds(theirs)
    gain, again, own, other = kalah_rules.play(cells, here, here + 2 * p, p, own, other, pit, empty_capture)
    return gain, again, 0, 0, own, other
