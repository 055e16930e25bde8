"""The transposition table of the Kalah search.

Theory of operation.  An entry is two numbers: the position's key, and a packed number with the value, the
kind of bound, the depth, the age and the best pit.  A bucket has two entries and lies in one line of the
processor's cache.  The first entry of a bucket keeps the deepest search, the second the latest.  Pits are
numbered from the player to move, and values count the seeds that are still to be won, so one entry serves
both seats and every state of the stores.
"""

from sample_bots.strong.compiled import Array, kernel

EXACT, AT_LEAST, AT_MOST = 0, 1, 2
"""Kinds of bounds: the value of an entry is exact, a lower bound, or an upper bound."""
PROVEN = 255
"""Depth of an entry whose value is exact to the end of the game."""
NO_PIT = 63
"""In place of a pit's number if no best pit is known."""

VALUE_BIAS = 1 << 24
"""Offset that makes every value positive: 6,000 seeds (30 pits of 100 on both sides) are under 2**17
units."""
VALUE_SHIFT, BOUND_SHIFT, DEPTH_SHIFT, AGE_SHIFT = 24, 22, 14, 6
AGES = 256
ENTRY, BUCKET = 2, 4
"""Numbers in an entry, and in a bucket."""


@kernel
def bucket_of(key: int, mask: int) -> int:
    """Return the index of a key's bucket; ``mask`` is the number of buckets less one."""
    return ((key ^ (key >> 31)) & mask) * BUCKET


@kernel
def probe(table: Array, bucket: int, key: int) -> int:
    """Return the packed number of a key's entry in its bucket; -1 if there is none."""
    if table[bucket] == key:
        return table[bucket + 1]  # type: ignore[no-any-return]
    if table[bucket + ENTRY] == key:
        return table[bucket + ENTRY + 1]  # type: ignore[no-any-return]
    return -1


@kernel
def store(table: Array, bucket: int, key: int, packed: int) -> None:
    """Write an entry.

    It replaces the first entry if that has the same key, is older, or was searched less deep.  Otherwise it
    replaces the second.
    """
    first = table[bucket + 1]
    deeper = ((packed >> DEPTH_SHIFT) & 255) >= ((first >> DEPTH_SHIFT) & 255)
    if table[bucket] == key:
        table[bucket + 1] = packed
    elif deeper or ((packed ^ first) >> AGE_SHIFT) & 255 != 0:
        table[bucket + ENTRY] = table[bucket]
        table[bucket + ENTRY + 1] = first
        table[bucket] = key
        table[bucket + 1] = packed
    else:
        table[bucket + ENTRY] = key
        table[bucket + ENTRY + 1] = packed
