"""Drawings of all games: pictures of positions as text and as SVG, and animations of moves.

A picture shows one position.  A scene is a board with its cells; with the contents of the cells and the
transfers of each move, a page shows a game move by move without the game's rules.  A game is drawn from the
layout of its board, unless it has drawings of its own in RENDERERS.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from referee.games.base import Game
from referee.games.kalah import Kalah
from referee.games.kalamala import Kalamala
from referee.games.layout import PitBoard
from tournaments.reporting.board import grid, kalah, kalamala, pits
from tournaments.reporting.board.drawing import Content, Phases, Scene


@dataclass(frozen=True, slots=True)
class BoardRenderer:
    """The functions that draw the games of a rule book."""

    text: Callable[[Any, Any], str]
    """(game, state) -> lines of equal width, in ASCII."""
    svg: Callable[[Any, Any, Any, str], str]
    """(game, state, (state before, move) or None, title or nothing) -> SVG."""
    scene: Callable[[Any], Scene]
    """game -> scene."""
    contents: Callable[[Any, Any], Sequence[Content]]
    """(game, state) -> the content of each cell."""
    transfers: Callable[[Any, Any, Any], Phases]
    """(game, state, move) -> phases."""
    tallies: Callable[[Any, Any], tuple[int, int]]
    """(game, state) -> the deciding counts of FIRST and SECOND."""


RENDERERS: dict[type, BoardRenderer] = {
    Kalah: BoardRenderer(pits.text, kalah.svg, pits.scene, pits.contents, kalah.transfers, kalah.tallies),
    Kalamala: BoardRenderer(
        kalamala.text, kalamala.svg, kalamala.scene, kalamala.contents, kalamala.transfers, kalamala.tallies
    ),
}
"""Class of the rule book -> renderer, for games with drawings of their own."""
_PITS = BoardRenderer(pits.text, pits.svg, pits.scene, pits.contents, pits.transfers, pits.tallies)
_GRID = BoardRenderer(grid.text, grid.svg, grid.scene, grid.contents, grid.transfers, grid.tallies)


def _renderer(game: Game[Any, Any]) -> BoardRenderer:
    """Return the renderer of a game, by default that of its board's layout."""
    found = RENDERERS.get(type(game))
    if found is not None:
        return found
    return _PITS if isinstance(game.layout(game.initial_state()), PitBoard) else _GRID


def text_picture(game: Game[Any, Any], state: Any) -> str:
    """Return the position in lines of equal width, ASCII, without a line feed at the end."""
    return _renderer(game).text(game, state)


def svg_picture(
    game: Game[Any, Any], state: Any, *, last: tuple[Any, Any] | None = None, title: str = ""
) -> str:
    """Return the position as a self-contained SVG element: a document of its own, or part of a page.

    ``last`` is the state before the last move, and that move, which is then marked.  ``title`` replaces the
    text for readers who do not see the picture; it may hold any characters.
    """
    return _renderer(game).svg(game, state, last, title)


def scene(game: Game[Any, Any]) -> Scene:
    """Return the empty board of a game, and its cells."""
    return _renderer(game).scene(game)


def contents(game: Game[Any, Any], state: Any) -> list[Content]:
    """Return the contents of the scene's cells, in their order."""
    return list(_renderer(game).contents(game, state))


def transfers(game: Game[Any, Any], state: Any, move: Any) -> Phases:
    """Return the transfers of a legal move: phases in order, with the simultaneous transfers of each.

    Applied to the contents before the move they give those after it.  A swap moves nothing.  Raises
    IllegalMoveError.
    """
    return _renderer(game).transfers(game, state, move)


def tallies(game: Game[Any, Any], state: Any) -> tuple[int, int]:
    """Return the counts of FIRST and SECOND that decide the game; ``Scene.tally`` names their unit."""
    return _renderer(game).tallies(game, state)
