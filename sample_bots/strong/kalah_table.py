"""The transposition table of the Kalah search: what is known of positions that were met before.

Theory of operation.  Two numbers an entry, the position's key and the packed rest, and two entries a place,
which lie in one line of the processor's cache: the first entry keeps what was searched deepest, the second
what came last.  A key is the sum of a random number per pit, times the seeds in it.  The sum of all seeds is
bounded, so the random numbers are chosen small enough that no sum needs more than 62 bits: the same in plain
Python.  Pits are numbered from the player to move, and values count what is still to be won, so one entry
serves both seats and every state of the stores.
"""

import random

from sample_bots.strong.compiled import Array, array_of, kernel

EXACT, AT_LEAST, AT_MOST = 0, 1, 2
"""What an entry's value is."""
PROVEN = 255
"""The depth of an entry that no guess went into."""
NO_PIT = 63
"""In place of a pit's number where none is known."""

KEY_BITS = 62
VALUE_BIAS = 1 << 24
"""Added to a value to make it positive: 6,000 seeds (30 pits of 100 on both sides) are under 2**17 units."""
VALUE_SHIFT, BOUND_SHIFT, DEPTH_SHIFT, AGE_SHIFT = 24, 22, 14, 6
AGES = 256
ENTRY, PLACE = 2, 4
"""Numbers in an entry, and in a place."""


def random_numbers(pits: int, total_seeds: int) -> Array:
    """A random number for each pit, the mover's first; always the same."""
    dice = random.Random(f"{pits} pits, {total_seeds} seeds")
    return array_of(
        [dice.getrandbits(KEY_BITS - total_seeds.bit_length()) | 1 for _ in range(2 * pits)], "int64"
    )


@kernel
def key_of(cells: Array, here: int, p: int, numbers: Array) -> int:
    """The key of a board."""
    key = 0
    for i in range(2 * p):
        key += cells[here + i] * numbers[i]
    return key


@kernel
def place_of(key: int, mask: int) -> int:
    """Where in the table a key belongs; ``mask`` is the number of places less one."""
    return ((key ^ (key >> 31)) & mask) * PLACE


@kernel
def find(table: Array, place: int, key: int) -> int:
    """The packed entry of a key at its place, or -1."""
    if table[place] == key:
        return table[place + 1]  # type: ignore[no-any-return]
    if table[place + ENTRY] == key:
        return table[place + ENTRY + 1]  # type: ignore[no-any-return]
    return -1


@kernel
def keep(table: Array, place: int, key: int, packed: int) -> None:
    """Write an entry: over the same position's, over an older or less deep first one, or second."""
    first = table[place + 1]
    deeper = ((packed >> DEPTH_SHIFT) & 255) >= ((first >> DEPTH_SHIFT) & 255)
    if table[place] == key:
        table[place + 1] = packed
    elif deeper or ((packed ^ first) >> AGE_SHIFT) & 255 != 0:
        table[place + ENTRY] = table[place]
        table[place + ENTRY + 1] = first
        table[place] = key
        table[place + 1] = packed
    else:
        table[place + ENTRY] = key
        table[place + ENTRY + 1] = packed
