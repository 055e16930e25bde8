"""The transposition table of the Kalamala search.

A bucket has two entries in four numbers: key, entry, key, entry.  The first entry keeps the deepest search,
unless that is from an earlier move of the game; the second takes all others.  An entry is a number:

    bits 0-31   the best turn's code
    bits 32-38  depth
    bits 39-40  bound
    bits 41-45  number of its search (AGE)
    bits 46-61  value + 32768, counted from the position, not from the root
"""

from sample_bots.strong.compiled import Array, kernel
from sample_bots.strong.kalamala.evaluation import WON
from sample_bots.strong.kalamala.memory import AGE, BUCKET, TABLE_MASK

AT_MOST, AT_LEAST, EXACT = 1, 2, 3
TURN_MASK = (1 << 32) - 1
DEPTH, BOUND, ENTRY_AGE, VALUE = 32, 39, 41, 46
AGES = 32
ZERO = 1 << 15
"""Offset of the values in entries."""


@kernel
def turn_of(entry: int) -> int:
    """Return the code of the best turn, or NO_TURN."""
    return entry & TURN_MASK


@kernel
def depth_of(entry: int) -> int:
    """Return the depth of the search."""
    return entry >> DEPTH & 127


@kernel
def bound_of(entry: int) -> int:
    """Return the kind of bound: AT_MOST, AT_LEAST or EXACT."""
    return entry >> BOUND & 3


@kernel
def value_at(entry: int, ply: int) -> int:
    """Return the value, with wins and losses counted from the root."""
    value = (entry >> VALUE) - ZERO
    return value - ply if value >= WON else value + ply if value <= -WON else value


@kernel
def probe(memory: Array, table: Array, key: int) -> int:
    """Return the entry of a position; 0 if there is none."""
    bucket = (key & memory[TABLE_MASK]) * BUCKET
    entry: int = 0
    if table[bucket] == key:
        entry = table[bucket + 1]
    elif table[bucket + 2] == key:
        entry = table[bucket + 3]
    return entry


@kernel
def store(
    memory: Array, table: Array, key: int, depth: int, bound: int, value: int, turn: int, ply: int
) -> None:
    """Write the result of a position's search."""
    bucket = (key & memory[TABLE_MASK]) * BUCKET
    if value >= WON:
        value += ply
    elif value <= -WON:
        value -= ply
    age = memory[AGE]
    entry = turn | depth << DEPTH | bound << BOUND | age << ENTRY_AGE | (value + ZERO) << VALUE
    old = table[bucket + 1]
    if table[bucket] != key and (old >> ENTRY_AGE) & (AGES - 1) == age and depth_of(old) > depth:
        bucket += 2
    table[bucket] = key
    table[bucket + 1] = entry
