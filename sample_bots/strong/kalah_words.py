"""Kalah's rules as a kernel, for boards of which each half fits into one number.

The rule book is referee/games/kalah.py.  kalah_rules.py, for boards of every size, is held to it by a test,
and this to kalah_rules.py by another.

Theory of operation.  A half of the board is a word: a number with a byte for each pit, pit 1 lowest, seen by
its owner.  No byte ever overflows, since a pit cannot hold more seeds than there are.  To sow is to add two
words from a table, by pit and seeds, instead of a walk along the pits; what goes once around the board (K2)
adds one to every pit besides.  As in kalah_rules.py, stores are no part of the board, and a place on the
board is 0..p-1 for the mover's pits, p for the mover's store, and p+1..2p for the opponent's pits.
"""

from sample_bots.strong.compiled import Array, array_of, kernel

MOST_PITS, MOST_SEEDS = 7, 255
"""Seven bytes are positive as a signed number of 64 bits; with more seeds a byte could overflow."""
BYTE = 8
BYTE_MASK = 255
LOW = 0x01010101010101
"""The lowest bit of each of the seven bytes."""
REST = LOW * 0x7F
HIGH = LOW << 7
HIGHEST = 48
"""Where the seventh byte begins.  There a word times LOW has the sum of its bytes."""
GATHER = sum(1 << HIGHEST - 7 * byte for byte in range(MOST_PITS))
"""Times this, the lowest bits of the seven bytes come to stand side by side, from the seventh byte on."""
GATHERED = (1 << MOST_PITS) - 1

ROW = 16
"""A pit has so many numbers in a table, for 0 to 15 seeds: with 2p + 1, the most that may capture (K4), all
that matter; with more, the rest after full laps is looked up."""
OWN_SOWN, OTHER_SOWN, PLACE, WORTH, ONE_EACH = 0, 128, 256, 384, 512
"""Where in the tables these begin: the words to add to the two halves; where the last seed falls, if that can
matter; what a set of pits is worth to its owner; a word with a seed in each pit."""
TABLES = ONE_EACH + 1
NOWHERE = MOST_PITS + 1
"""In place of the last seed's place, if it is neither the store nor a pit that it may capture from."""

KEY_MASK = (1 << 62) - 1
"""As for the keys of cells: the same in plain Python, where numbers have no width."""
FIRST_FACTOR, SECOND_FACTOR = 0x1D8E4E27C47D124F, 0x2B2AE3D9A8F1C5E7
"""Odd, so that no two words have the same product, and with no pattern; nothing else is known of them."""


def fits(pits: int, total_seeds: int) -> bool:
    """Whether the halves of a game's boards fit into words."""
    return pits <= MOST_PITS and total_seeds <= MOST_SEEDS


def word_of(half: list[int]) -> int:
    """The word of a half's pits, pit 1 first."""
    return sum(seeds << BYTE * pit for pit, seeds in enumerate(half))


def tables_of(p: int, weights: Array) -> Array:
    """The tables of a game with p pits, where a pit that is not empty has a weight, in units."""
    tables = [0] * TABLES
    tables[ONE_EACH] = word_of([1] * p)
    lap = 2 * p + 1
    for pit in range(p):
        for seeds in range(ROW):
            at = ROW * pit + seeds
            last = (pit + seeds) % lap
            matters = last == p or (last < p and seeds <= lap)
            tables[PLACE + at] = last if matters and seeds > 0 else NOWHERE
            for sown in range(pit + 1, pit + min(seeds, lap - 1) + 1):
                place = sown % lap
                if place < p:
                    tables[OWN_SOWN + at] += 1 << BYTE * place
                elif place > p:
                    tables[OTHER_SOWN + at] += 1 << BYTE * (place - p - 1)
    for pits in range(1 << p):
        tables[WORTH + pits] = sum(int(weights[pit]) for pit in range(p) if pits >> pit & 1)
    return array_of(tables, "int64")


@kernel
def seeds_in(half: int, pit: int) -> int:
    """The seeds in a pit (0..p-1)."""
    return (half >> BYTE * pit) & BYTE_MASK


@kernel
def all_seeds(half: int) -> int:
    """The seeds in all pits of a half."""
    return (half * LOW >> HIGHEST) & BYTE_MASK


@kernel
def filled(half: int) -> int:
    """Which pits are not empty, as bits 0..p-1."""
    some = (((half & REST) + REST) | half) & HIGH
    return ((some >> 7) * GATHER >> HIGHEST) & GATHERED


@kernel
def play(
    mine: int, theirs: int, p: int, pit: int, empty_capture: int, tables: Array
) -> tuple[int, int, int, int]:
    """Play a pit (0..p-1, not empty).

    Returns the seeds that went into the mover's store, 1 for an extra turn (K3) or else 0, and the mover's
    and the opponent's half.  Collects nothing at the end (K5).
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
def place_of_last(p: int, pit: int, seeds: int, tables: Array) -> int:
    """Where the last of so many seeds falls: p for the store, an own pit if it may capture, or NOWHERE."""
    if seeds < ROW:
        return tables[PLACE + ROW * pit + seeds]  # type: ignore[no-any-return]
    return p if (pit + seeds) % (2 * p + 1) == p else NOWHERE


@kernel
def lively_pits(mine: int, p: int, tables: Array) -> int:
    """Which pits give an extra turn (K3) or may capture (K4), as bits 0..p-1.

    No other pit does either; whether one captures depends on what lies opposite.
    """
    wanted = (filled(mine) ^ GATHERED) & ((1 << p) - 1) | 1 << p
    pits = 0
    for pit in range(p):
        seeds = seeds_in(mine, pit)
        place = place_of_last(p, pit, seeds, tables)
        pits |= (
            ((wanted >> place) & 1) | (place == pit)
        ) << pit  # a lap ends where it began, in an empty pit
    return pits


@kernel
def captured(theirs: int, p: int, pit: int, seeds: int, empty_capture: int, tables: Array) -> int:
    """What playing a lively pit (0..p-1) would capture (K4), with the capturing seed; 0 if nothing.

    -1 means that it would give an extra turn (K3).
    """
    place = place_of_last(p, pit, seeds, tables)
    if place == p:
        return -1
    taken = seeds_in(theirs, p - 1 - place)
    if place <= pit:
        taken += 1  # sown on the way
    if taken > 0 or empty_capture != 0:
        return taken + 1
    return 0


@kernel
def key_of(mine: int, theirs: int) -> int:
    """The key of a board.

    Multiplied and folded, not only multiplied: else a difference in the highest bytes, of which most of the
    product is cut off, would often go unseen.
    """
    key = (mine * FIRST_FACTOR) & KEY_MASK
    key ^= key >> 31
    key = ((key ^ theirs) * SECOND_FACTOR) & KEY_MASK
    return key ^ (key >> 29)


@kernel
def evaluate(mine: int, theirs: int, rest: int, tables: Array) -> int:
    """The same guess as kalah_evaluation's, in units; ``rest`` are the seeds in all pits, in units."""
    value = tables[WORTH + filled(mine)] - tables[WORTH + filled(theirs)]
    return max(-rest, min(value, rest))  # type: ignore[no-any-return]
