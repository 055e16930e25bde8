"""How good a Kalamala position looks without search.

Theory of operation.  Everything that the evaluation wants to know of the board is a sum over its lines, kept
up to date as stones come and go.  Each line adds one number, in which several counts lie side by side:

    bits 0-5    White's stones on rows and columns (twice those on the board)
    bits 6-11   Black's
    bits 12-20  White's movements (those of one line; the same effect on two lines counts twice)
    bits 21-29  Black's
    bits 30-37  White's removals of Black's stones
    bits 38-45  Black's
    bits 46-    how much better White's stones stand, in 1/16 points

A stone is about 100 points.
"""

from sample_bots.strong.compiled import Array, array_of, kernel
from sample_bots.strong.kalamala_memory import EFFECTS_OF, RESERVES, SUMS, SWAPPED, TERMS

BLACK_STONES, WHITE_TURNS, BLACK_TURNS, WHITE_CAPTURES, BLACK_CAPTURES, STANDING = 6, 12, 21, 30, 38, 46

# Fitted by logistic regression to the results of 1,564 games of the search against itself (500 or 1,500
# nodes a turn, 2 to 8 random turns first, one in 25 later; 32,352 positions before turns that remove
# nothing), which were played with the result of a first such fit, to 4,338 games.  The first fit won 56 of 60
# games at 2,000 nodes a turn against numbers that were guessed; FEWER 60 of 100 against no such factor; the
# second fit 65 of 120 against the first.

PLACE_VALUES: Array = array_of(
    [
        *(51, 65, 58, 55),  # the edge, from the corner on
        *(65, 93, 98, 104),
        *(58, 98, 134, 150),
        *(55, 104, 150, 195),
    ],
    "int64",
)
"""Of a stone, by its distance from the nearest edge to the left or right, and from that above or below."""
TURN = 5
"""Each possible movement."""
CAPTURE = 7
"""Each possible removal, whoever is to move."""
PAIR = 10
"""Each two stones of a side that touch."""
RESERVE = 160
"""An unplaced stone."""
TO_MOVE = 30
"""The right to move."""
FEWER, FEWER_UNIT = 25, 10
"""With fewer stones on both sides a lead is worth more: the factor is (FEWER - stones) / FEWER_UNIT."""

WIN = 30_000
"""A won game, less the plies until then."""
WON = WIN - 1_000
"""Values from here on are wins."""
FINE = 4
"""Bits of a fraction of a point in the sum."""


@kernel
def fill_terms(tables: Array, first: int, length: int, edge_distance: int) -> None:
    """What each filling of a class adds to the sum; ``edge_distance`` is that of its line, -1 for a
    diagonal."""
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
    """Movements of a side, of which several can have the same effect; 0 if there is none."""
    return total >> (WHITE_TURNS if side == 0 else BLACK_TURNS) & 511


@kernel
def captures_of(total: int, side: int) -> int:
    """Removals of the other side's stones, of which several can be the same."""
    return total >> (WHITE_CAPTURES if side == 0 else BLACK_CAPTURES) & 255


@kernel
def stones_left(memory: Array, ply: int, side: int) -> int:
    """A side's stones, on the board and unplaced."""
    on_lines: int = memory[SUMS + ply] >> (0 if side == 0 else BLACK_STONES) & 63
    unplaced: int = memory[RESERVES + 2 * ply + side]
    return on_lines // 2 + unplaced


@kernel
def value_of(memory: Array, ply: int, side: int) -> int:
    """How much better the position looks for the side to move, in points."""
    standing: int = memory[SUMS + ply] >> STANDING
    reserve: int = RESERVE * (memory[RESERVES + 2 * ply] - memory[RESERVES + 2 * ply + 1])
    value = (standing if side == 0 else -standing) >> FINE
    value += (reserve if side == 0 else -reserve) + TO_MOVE
    stones = stones_left(memory, ply, 0) + stones_left(memory, ply, 1)
    return value * (FEWER - stones) // FEWER_UNIT
