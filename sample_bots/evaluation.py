"""How good a position looks without searching: everything that the bots know of one game or the other.

A new game gets a function here and a line in EVALUATIONS; nothing else of the sample bots changes.
"""

from typing import Any

from referee.games.base import Side
from referee.games.catalog import AnyGame
from referee.games.kalah import Kalah, KalahState
from sample_bots.search import Evaluation


def store_difference(game: Kalah, state: KalahState, side: Side) -> int:
    """Kalah: the seeds in the side's own store less those in the opponent's."""
    north, south = state.board[game.pits], state.board[-1]
    # FIRST sits South until a swap.
    sits_south = (side is Side.FIRST) is not state.swapped
    return south - north if sits_south else north - south


def no_opinion(game: AnyGame, state: Any, side: Side) -> int:
    """Any other game: all positions look alike until the game is over."""
    return 0


EVALUATIONS: dict[type, Evaluation] = {Kalah: store_difference}
"""Class of the rule book -> evaluation."""


def evaluation_of(game: AnyGame) -> Evaluation:
    """The evaluation for a game's positions."""
    return EVALUATIONS.get(type(game), no_opinion)
