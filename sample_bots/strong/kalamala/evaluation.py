"""Static evaluation of Kalamala positions.

Theory of operation.  All features of the board are sums over its lines, which are updated with every stone.
Each line adds one number, its term, with several counts side by side:

    bits 0-5    White's stones on rows and columns (twice those on the board)
    bits 6-11   Black's
    bits 12-20  White's movements (an effect that two lines have in common counts twice)
    bits 21-29  Black's
    bits 30-37  White's removals of Black's stones
    bits 38-45  Black's
    bits 46-    White's positional lead in 1/16 points

A stone is about 100 points.
"""

from sample_bots.strong.compiled import Array, array_of, kernel
from sample_bots.strong.kalamala.memory import EFFECTS_OF, RESERVES, SUMS, SWAPPED, TERMS

BLACK_STONES, WHITE_TURNS, BLACK_TURNS, WHITE_CAPTURES, BLACK_CAPTURES, STANDING = 6, 12, 21, 30, 38, 46

# The weights are fitted by logistic regression to the results of 1,564 games of the search against itself
# (500 or 1,500 nodes a turn, 2 to 8 random turns first, one random turn in 25 later; 32,352 positions before
# turns that remove nothing).  These games used the weights of a first fit, to 4,338 games.  The first fit won
# 56 of 60 games at 2,000 nodes a turn against guessed weights, the second 65 of 120 against the first; FEWER
# won 60 of 100 against no such factor.

PLACE_VALUES: Array = array_of(
    [
        *(51, 65, 58, 55),  # the edge, from the corner on
        *(65, 93, 98, 104),
        *(58, 98, 134, 150),
        *(55, 104, 150, 195),
    ],
    "int64",
)
"""Value of a stone by its distances from the nearest edge to the left or right, and above or below."""
TURN = 5
"""Value of each possible movement."""
CAPTURE = 7
"""Value of each possible capture, whichever side is to move."""
PAIR = 10
"""Value of two adjacent stones of a side."""
RESERVE = 160
"""Value of an unplaced stone."""
TO_MOVE = 30
"""Value of the right to move."""
FEWER, FEWER_UNIT = 25, 10
"""Factor of a lead, (FEWER - stones of both sides) / FEWER_UNIT: it is worth more with fewer stones."""

WIN = 30_000
"""Value of a won game; the number of plies until the win is subtracted."""
WON = WIN - 1_000
"""Least value of a win."""
FINE = 4
"""Number of fractional bits of a point in the sum."""


@kernel
def fill_terms(tables: Array, first: int, length: int, edge_distance: int) -> None:
    """Write the terms of all fillings of a class; ``edge_distance`` is -1 for diagonals."""
    for filling in range(first, first + 3**length):
        white = tables[EFFECTS_OF + filling]
        black = tables[EFFECTS_OF + tables[SWAPPED + filling]]
        white_turns, black_turns = white & 255, black & 255
        white_captures, black_captures = white >> 8 & 255, black >> 8 & 255
        standing = TURN * (white_turns - black_turns) + CAPTURE * (white_captures - black_captures) << FINE
        white_stones = 0
        black_stones = 0
        rest = filling - first
        before = 0
        for place in range(length):
            stone = rest % 3
            rest //= 3
            worth = 0
            if stone == before:
                worth = PAIR << FINE
            if edge_distance >= 0:  # each stone is on one row and one column: half of it here
                worth += PLACE_VALUES[4 * edge_distance + min(place, length - 1 - place)] << FINE - 1
                white_stones += stone & 1
                black_stones += stone >> 1
            if stone == 1:
                standing += worth
            elif stone == 2:
                standing -= worth
            before = stone
        tables[TERMS + filling] = (
            white_stones
            | black_stones << BLACK_STONES
            | white_turns << WHITE_TURNS
            | black_turns << BLACK_TURNS
            | white_captures << WHITE_CAPTURES
            | black_captures << BLACK_CAPTURES
        ) + (standing << STANDING)


@kernel
def turns_of(total: int, side: int) -> int:
    """Return the number of a side's movements, several of which can have the same effect."""
    return total >> (WHITE_TURNS if side == 0 else BLACK_TURNS) & 511


@kernel
def captures_of(total: int, side: int) -> int:
    """Return the number of a side's captures, several of which can be the same."""
    return total >> (WHITE_CAPTURES if side == 0 else BLACK_CAPTURES) & 255


@kernel
def stones_left(memory: Array, ply: int, side: int) -> int:
    """Return the number of a side's stones, on the board and unplaced."""
    on_lines: int = memory[SUMS + ply] >> (0 if side == 0 else BLACK_STONES) & 63
    unplaced: int = memory[RESERVES + 2 * ply + side]
    return on_lines // 2 + unplaced


@kernel
def value_of(memory: Array, ply: int, side: int) -> int:
    """Return the evaluation for the side to move, in points."""
    standing: int = memory[SUMS + ply] >> STANDING
    reserve: int = RESERVE * (memory[RESERVES + 2 * ply] - memory[RESERVES + 2 * ply + 1])
    value = (standing if side == 0 else -standing) >> FINE
    value += (reserve if side == 0 else -reserve) + TO_MOVE
    stones = stones_left(memory, ply, 0) + stones_left(memory, ply, 1)
    return value * (FEWER - stones) // FEWER_UNIT
