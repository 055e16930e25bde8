"""Scenes: a board with its places, and what a move carries from place to place.

A picture shows one position; a scene lets a page show a game move by move without knowing its rules.  A new
game gets a module of its own, and a line in SCENES (a test fails otherwise).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from referee.games import kalah_scene, kalamala_scene
from referee.games.base import Game
from referee.games.kalah import Kalah
from referee.games.kalamala import Kalamala
from referee.games.scene_parts import Content, Phases, Scene


@dataclass(frozen=True, slots=True)
class Stage:
    """How the games of a rule book are shown move by move."""

    scene: Callable[[Any], Scene]
    """game -> scene."""
    contents: Callable[[Any, Any], Sequence[Content]]
    """(game, state) -> what lies in each cell."""
    transfers: Callable[[Any, Any, Any], Phases]
    """(game, state, move) -> phases."""
    tallies: Callable[[Any, Any], tuple[int, int]]
    """(game, state) -> what FIRST and SECOND have of that which decides the game."""


SCENES: dict[type, Stage] = {
    Kalah: Stage(kalah_scene.scene, kalah_scene.contents, kalah_scene.transfers, kalah_scene.tallies),
    Kalamala: Stage(
        kalamala_scene.scene, kalamala_scene.contents, kalamala_scene.transfers, kalamala_scene.tallies
    ),
}
"""Class of the rule book -> stage."""


def scene(game: Game[Any, Any]) -> Scene:
    """The board of a game without anything on it, and its places."""
    return SCENES[type(game)].scene(game)


def contents(game: Game[Any, Any], state: Any) -> list[Content]:
    """What lies in each of the scene's cells, in their order."""
    return list(SCENES[type(game)].contents(game, state))


def transfers(game: Game[Any, Any], state: Any, move: Any) -> Phases:
    """What a legal move does to the cells: phases one after another, the transfers of a phase together.

    Carried out on the contents before the move they give those after it.  A swap moves nothing.
    Raises IllegalMoveError.
    """
    return SCENES[type(game)].transfers(game, state, move)


def tallies(game: Game[Any, Any], state: Any) -> tuple[int, int]:
    """What FIRST and SECOND have of that which decides the game; ``Scene.tally`` says what it is."""
    return SCENES[type(game)].tallies(game, state)
