"""Scenes: a board with its places, and the transfers between places that a move causes.

A picture shows one position; a scene lets a page show a game move by move without the game's rules.  A new
game gets a module of its own, and a line in SCENES (a test fails otherwise).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from referee.games.base import Game
from referee.games.kalah import Kalah
from referee.games.kalamala import Kalamala
from tournaments.reporting.board import kalah_animation, kalamala_animation
from tournaments.reporting.board.animation_parts import Content, Phases, Scene


@dataclass(frozen=True, slots=True)
class BoardAnimation:
    """The functions that show the games of a rule book move by move."""

    scene: Callable[[Any], Scene]
    """game -> scene."""
    contents: Callable[[Any, Any], Sequence[Content]]
    """(game, state) -> the content of each cell."""
    transfers: Callable[[Any, Any, Any], Phases]
    """(game, state, move) -> phases."""
    tallies: Callable[[Any, Any], tuple[int, int]]
    """(game, state) -> the deciding counts of FIRST and SECOND."""


SCENES: dict[type, BoardAnimation] = {
    Kalah: BoardAnimation(
        kalah_animation.scene, kalah_animation.contents, kalah_animation.transfers, kalah_animation.tallies
    ),
    Kalamala: BoardAnimation(
        kalamala_animation.scene,
        kalamala_animation.contents,
        kalamala_animation.transfers,
        kalamala_animation.tallies,
    ),
}
"""Class of the rule book -> stage."""


def scene(game: Game[Any, Any]) -> Scene:
    """Return the empty board of a game, and its places."""
    return SCENES[type(game)].scene(game)


def contents(game: Game[Any, Any], state: Any) -> list[Content]:
    """Return the contents of the scene's cells, in their order."""
    return list(SCENES[type(game)].contents(game, state))


def transfers(game: Game[Any, Any], state: Any, move: Any) -> Phases:
    """Return the transfers of a legal move: phases in order, with the simultaneous transfers of each.

    Carried out on the contents before the move they give those after it.  A swap moves nothing.  Raises
    IllegalMoveError.
    """
    return SCENES[type(game)].transfers(game, state, move)


def tallies(game: Game[Any, Any], state: Any) -> tuple[int, int]:
    """Return the counts of FIRST and SECOND that decide the game; ``Scene.tally`` names their unit."""
    return SCENES[type(game)].tallies(game, state)
