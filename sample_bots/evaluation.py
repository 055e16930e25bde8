"""Static evaluations: the only knowledge of the simple bots about particular games.

A new game needs a function here and a line in EVALUATIONS; the bots themselves do not change.
"""

from typing import Any

from referee.games.base import Side
from referee.games.catalog import AnyGame
from referee.games.kalah import Kalah, KalahState
from referee.games.kalamala import BLACK, SIZE, WHITE, Kalamala, KalamalaState
from sample_bots.search import Evaluation


def store_difference(game: Kalah, state: KalahState, side: Side) -> int:
    """Return the seeds in the side's store at Kalah, less those in the opponent's."""
    north, south = state.board[game.pits], state.board[-1]
    # FIRST sits South until a swap.
    sits_south = (side is Side.FIRST) is not state.swapped
    return south - north if sits_south else north - south


STONE = 100
"""Value of a stone: more than that of all stones in the centre together (at most 8 of 3 each)."""

INNER_SQUARES = tuple(
    sum(1 << SIZE * row + column for row in range(k, SIZE - k) for column in range(k, SIZE - k))
    for k in (1, 2, 3)
)
"""Squares at least 1, 2 and 3 steps from the edge, as bits."""


def stones_left(game: Kalamala, state: KalamalaState, side: Side) -> int:
    """Return the side's stones at Kalamala, placed or not, less the opponent's; then stones in the centre.

    At depth 2 this won all of 30 games against the number of stones alone.
    """
    white, black, reserves = state.white, state.black, state.reserves
    value = STONE * (white.bit_count() + reserves[WHITE] - black.bit_count() - reserves[BLACK])
    for squares in INNER_SQUARES:
        value += (white & squares).bit_count() - (black & squares).bit_count()
    return value if side is Side.FIRST else -value  # FIRST is White


def no_opinion(game: AnyGame, state: Any, side: Side) -> int:
    """Return 0, the evaluation of all positions of any other game."""
    return 0


EVALUATIONS: dict[type, Evaluation] = {Kalah: store_difference, Kalamala: stones_left}
"""Class of the rule book -> evaluation."""


def evaluation_of(game: AnyGame) -> Evaluation:
    """Return the evaluation of a game."""
    return EVALUATIONS.get(type(game), no_opinion)
