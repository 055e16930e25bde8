"""Kalah's rules, evaluation and hash keys as kernels, for boards of which each half fits into one number.

The functions correspond to those of cell_board.py, and a test compares the results.

Theory of operation.  A half of the board is packed into a number with a byte for each pit, pit 1 lowest, as
its owner sees it.  No byte overflows, since a pit cannot hold more seeds than there are.  Sowing adds two
numbers from a table, indexed by pit and seeds, instead of walking along the pits; a full lap around the board
(K2) also adds one to every pit.  As in cell_board.py, the stores are not part of the board.  A position on
the board is 0..p-1 for the mover's pits, p for the mover's store, and p+1..2p for the opponent's pits.
"""

from sample_bots.strong.compiled import Array, array_of, kernel
from sample_bots.strong.kalah.cell_board import KEY_BITS

MOST_PITS, MOST_SEEDS = 7, 255
"""Limits of a packed board: seven bytes are positive as a signed number of 64 bits, and no byte overflows."""
BYTE = 8
BYTE_MASK = 255
LOW = 0x01010101010101
"""Lowest bit of each of the seven bytes."""
REST = LOW * 0x7F
HIGH = LOW << 7
HIGHEST = 48
"""First bit of the seventh byte, which has the sum of all bytes after a multiplication by LOW."""
GATHER = sum(1 << HIGHEST - 7 * byte for byte in range(MOST_PITS))
"""Factor that moves the lowest bits of the seven bytes side by side, from the seventh byte on."""
GATHERED = (1 << MOST_PITS) - 1

ROW = 16
"""Numbers per pit in a table, for 0 to 15 seeds.  2p + 1 seeds are the most that may capture (K4); of more
seeds the rest after full laps is looked up."""
OWN_SOWN, OTHER_SOWN, LAST, WORTH, ONE_EACH = 0, 128, 256, 384, 512
"""First indices of the tables: the numbers to add to the two halves; the position of the last seed, if it is
relevant; the value of a set of pits to its owner; a half with a seed in each pit."""
TABLES = ONE_EACH + 1
IRRELEVANT = MOST_PITS + 1
"""In place of the last seed's position, if it is neither the store nor a pit that may capture."""

KEY_MASK = (1 << KEY_BITS) - 1
FIRST_FACTOR, SECOND_FACTOR = 0x1D8E4E27C47D124F, 0x2B2AE3D9A8F1C5E7
"""Arbitrary odd factors: no two halves have the same product."""


def fits(pits: int, total_seeds: int) -> bool:
    """Return whether a game's boards can be packed."""
    return pits <= MOST_PITS and total_seeds <= MOST_SEEDS


def pack_half(half: list[int]) -> int:
    """Return the packed number of a half's pits, pit 1 first."""
    return sum(seeds << BYTE * pit for pit, seeds in enumerate(half))


def make_tables(p: int, weights: Array) -> Array:
    """Return the tables of a game with p pits; ``weights`` are the values of occupied pits, in units."""
    tables = [0] * TABLES
    tables[ONE_EACH] = pack_half([1] * p)
    lap = 2 * p + 1
    for pit in range(p):
        for seeds in range(ROW):
            at = ROW * pit + seeds
            last = (pit + seeds) % lap
            matters = last == p or (last < p and seeds <= lap)
            tables[LAST + at] = last if matters and seeds > 0 else IRRELEVANT
            for sown in range(pit + 1, pit + min(seeds, lap - 1) + 1):
                position = sown % lap
                if position < p:
                    tables[OWN_SOWN + at] += 1 << BYTE * position
                elif position > p:
                    tables[OTHER_SOWN + at] += 1 << BYTE * (position - p - 1)
    for pits in range(1 << p):
        tables[WORTH + pits] = sum(int(weights[pit]) for pit in range(p) if pits >> pit & 1)
    return array_of(tables, "int64")


@kernel
def seeds_in(half: int, pit: int) -> int:
    """Return the seeds in a pit (0..p-1)."""
    return (half >> BYTE * pit) & BYTE_MASK


@kernel
def seed_count(half: int) -> int:
    """Return the seeds in all pits of a half."""
    return (half * LOW >> HIGHEST) & BYTE_MASK


@kernel
def occupied(half: int) -> int:
    """Return the pits that are not empty, as bits 0..p-1."""
    some = (((half & REST) + REST) | half) & HIGH
    return ((some >> 7) * GATHER >> HIGHEST) & GATHERED


@kernel
def play(
    mine: int, theirs: int, p: int, pit: int, empty_capture: int, tables: Array
) -> tuple[int, int, int, int]:
    """Play a pit (0..p-1, not empty).  Seeds that are left at the end are not collected (K5).

    Returns:
        The seeds that went into the mover's store, 1 for an extra turn (K3) or else 0, and the mover's and
        the opponent's half.
    """
    seeds = seeds_in(mine, pit)
    mine -= seeds << BYTE * pit
    gain = 0
    if seeds > 2 * p:  # K2: every pit, the origin too, and the own store
        gain = seeds // (2 * p + 1)
        seeds -= gain * (2 * p + 1)
        mine += gain * tables[ONE_EACH]
        theirs += gain * tables[ONE_EACH]
    mine += tables[OWN_SOWN + ROW * pit + seeds]
    theirs += tables[OTHER_SOWN + ROW * pit + seeds]
    last = pit + seeds
    if last >= p:
        gain += 1
    if last == p:
        return gain, 1, mine, theirs
    if last > 2 * p:
        last -= 2 * p + 1
    if last < p and seeds_in(mine, last) == 1:  # K4
        taken = seeds_in(theirs, p - 1 - last)
        if taken > 0 or empty_capture != 0:
            theirs -= taken << BYTE * (p - 1 - last)
            mine -= 1 << BYTE * last
            gain += taken + 1
    return gain, 0, mine, theirs


@kernel
def last_position(p: int, pit: int, seeds: int, tables: Array) -> int:
    """Return the position of the last seed: p for the store, a pit that may capture, or IRRELEVANT."""
    if seeds < ROW:
        return tables[LAST + ROW * pit + seeds]  # type: ignore[no-any-return]
    return p if (pit + seeds) % (2 * p + 1) == p else IRRELEVANT


@kernel
def tactical_moves(mine: int, p: int, tables: Array) -> int:
    """Return the pits that give an extra turn (K3) or may capture (K4), as bits 0..p-1.

    Whether such a pit captures depends on the opposite pit.
    """
    wanted = (occupied(mine) ^ GATHERED) & ((1 << p) - 1) | 1 << p
    pits = 0
    for pit in range(p):
        seeds = seeds_in(mine, pit)
        last = last_position(p, pit, seeds, tables)
        # A full lap ends in the pit where it began, which is empty then.
        pits |= (((wanted >> last) & 1) | (last == pit)) << pit
    return pits


@kernel
def captured(theirs: int, p: int, pit: int, seeds: int, empty_capture: int, tables: Array) -> int:
    """Return the seeds that a tactical move captures (K4), with the capturing seed; 0 if none.

    Returns -1 for an extra turn (K3).
    """
    last = last_position(p, pit, seeds, tables)
    if last == p:
        return -1
    taken = seeds_in(theirs, p - 1 - last)
    if last <= pit:
        taken += 1  # sown on the way
    if taken > 0 or empty_capture != 0:
        return taken + 1
    return 0


@kernel
def key_of(mine: int, theirs: int) -> int:
    """Return the key of a board.

    The products are folded, since most of the product of the highest bytes is cut off: otherwise boards that
    differ in these bytes would often have the same key.
    """
    key = (mine * FIRST_FACTOR) & KEY_MASK
    key ^= key >> 31
    key = ((key ^ theirs) * SECOND_FACTOR) & KEY_MASK
    return key ^ (key >> 29)


@kernel
def evaluate(mine: int, theirs: int, rest: int, tables: Array) -> int:
    """Return the evaluation of cell_board.py, in units; ``rest`` are the seeds in all pits, in units."""
    value = tables[WORTH + occupied(mine)] - tables[WORTH + occupied(theirs)]
    return max(-rest, min(value, rest))  # type: ignore[no-any-return]
