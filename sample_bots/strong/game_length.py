"""How many moves are still to come, to share out a game's time."""

from collections.abc import Callable
from typing import Any

from referee.games.catalog import AnyGame
from referee.games.kalah import Kalah, KalahState
from referee.games.kalamala import Kalamala, KalamalaState

KALAH_MOVES_A_SEED = 0.45
"""Own moves for each seed in the pits: at manchester (98 seeds) 43 moves a player, as games between quick
bots have."""
KALAH_LAST_MOVES = 4
"""Beside them: the last seeds are moved one by one."""
KALAMALA_MOVES = 30
"""Games of the search against minimax had 41 to 65 turns in the mean, of both players."""


def _kalah(game: Kalah, state: KalahState) -> float:
    in_pits = game.total_seeds - state.board[game.pits] - state.board[-1]
    return KALAH_LAST_MOVES + KALAH_MOVES_A_SEED * in_pits


def _kalamala(game: Kalamala, state: KalamalaState) -> float:
    return KALAMALA_MOVES


LENGTHS: dict[type, Callable[[Any, Any], float]] = {Kalah: _kalah, Kalamala: _kalamala}
"""Class of the rule book -> own moves to come in a state."""

UNKNOWN_MOVES = 40.0
"""For any other game."""


def moves_to_come(game: AnyGame, state: Any) -> float:
    """How many moves the player to move may expect to make, this one included."""
    length = LENGTHS.get(type(game))
    return UNKNOWN_MOVES if length is None else length(game, state)
