"""The solver's positions: two packed numbers, a table of sowings, and a number for each position.

Theory of operation.  A position is given from the view of the player to move: ``own`` and ``other`` are the
seeds of the two sides, with a field of ``width`` bits for each pit, pit 1 lowest.  Stores are not part of it,
because the seeds that can still be won depend on the pits alone.  A sowing adds one number to each side, from
a table indexed by pit and seeds.

Positions are numbered by the combinatorial number system: with s(i) the seeds in the first i + 1 of all 2p
pits, the sum of C(s(i) + i, i + 1) is different for all positions, and those with at most k seeds have the
numbers from 0 to C(k + 2p, 2p) - 1.
"""

from dataclasses import dataclass
from math import comb
from typing import Any

from sample_bots.strong.compiled import Array, array_of, kernel

MAX_BITS = 63
"""Maximum bits of a packed side and of a position's number, which are signed 64-bit integers."""

SOWING_FIELDS = 4
ADD_OWN, ADD_OTHER, ADD_STORE, LAST = range(SOWING_FIELDS)
"""Fields of a sowing: the numbers to add to each side and to the store, and the position of the last seed:
the mover's pits from 0, p for the store, more for the other side."""

FACTS = 6
PITS, WIDTH, MASK, MOST, ON_TURN, EMPTY_CAPTURE = range(FACTS)
"""Fields of the facts, an argument of all kernels: p, bits of a field, a field full of ones, the maximum
seeds of the tables, and the options of K5 and K4 as 0 or 1."""


class UnsuitableBoardError(ValueError):
    """A board is too large for the solver; the message is for people."""


@dataclass(frozen=True)
class Layout:
    """Tables for positions of one board with at most ``seeds`` seeds in the pits."""

    pits: int
    seeds: int
    facts: Array
    sowings: Array
    """SOWING_FIELDS numbers for each pit and number of seeds, which implement K2."""
    numbers: Array
    """C(s + i, i + 1) at i * (seeds + 1) + s."""

    def number(self, own: int, other: int) -> int:
        """Return the number of a position."""
        return int(number_of(own, other, self.facts, self.numbers))

    def pack(self, side: tuple[int, ...]) -> int:
        """Return the packed number of one side's seeds, pit 1 first."""
        width = self.seeds.bit_length()
        return sum(seeds << (width * pit) for pit, seeds in enumerate(side))

    def seeds_in(self, side: int) -> int:
        """Return the number of seeds of a packed side."""
        width = self.seeds.bit_length()
        total = 0
        while side:
            total += side & ((1 << width) - 1)
            side >>= width
        return total


def positions_up_to(pits: int, seeds: int) -> int:
    """Return the number of positions with at most ``seeds`` seeds in the pits."""
    return comb(seeds + 2 * pits, 2 * pits)


def make_layout(pits: int, seeds: int, *, on_turn: bool, empty_capture: bool) -> Layout:
    """Return the tables for positions with at most ``seeds`` >= 1 seeds.

    Raises UnsuitableBoardError if there are too many seeds.
    """
    width = seeds.bit_length()
    if pits * width > MAX_BITS or positions_up_to(pits, seeds).bit_length() > MAX_BITS:
        raise UnsuitableBoardError(
            f"{seeds} seeds in {2 * pits} pits are too many for the solver: "
            "such positions cannot be packed and numbered in 63 bits"
        )
    sowings: list[int] = []
    for pit in range(pits):
        for sown in range(seeds + 1):
            sowings += _sowing(pits, width, pit, sown)
    numbers = [comb(s + i, i + 1) for i in range(2 * pits) for s in range(seeds + 1)]
    facts = [0] * FACTS
    facts[PITS], facts[WIDTH], facts[MASK] = pits, width, (1 << width) - 1
    facts[MOST], facts[ON_TURN], facts[EMPTY_CAPTURE] = seeds, int(on_turn), int(empty_capture)
    return Layout(
        pits, seeds, array_of(facts, "int64"), array_of(sowings, "int64"), array_of(numbers, "int64")
    )


def _sowing(pits: int, width: int, pit: int, sown: int) -> list[int]:
    """Return the fields of a sowing (K2) of ``sown`` seeds from a pit, counted from 0."""
    fields: list[Any] = [-(sown << (width * pit)), 0, 0, pit]
    at = pit
    for _ in range(sown):
        at = (at + 1) % (2 * pits + 1)  # own pits, own store, the other's pits: their store is skipped
        if at < pits:
            fields[ADD_OWN] += 1 << (width * at)
        elif at == pits:
            fields[ADD_STORE] += 1
        else:
            fields[ADD_OTHER] += 1 << (width * (at - pits - 1))
    fields[LAST] = at
    return fields


@kernel
def number_of(own: int, other: int, facts: Array, numbers: Array) -> int:
    """Return the number of a position."""
    pits = facts[PITS]
    width = facts[WIDTH]
    mask = facts[MASK]
    row = facts[MOST] + 1
    seeds = 0
    total = 0
    base = 0
    for _ in range(pits):
        seeds += own & mask
        total += numbers[base + seeds]
        own >>= width
        base += row
    for _ in range(pits):
        seeds += other & mask
        total += numbers[base + seeds]
        other >>= width
        base += row
    return total
