"""Pictures of positions, as text and as SVG.

A new game gets a module of its own, and a line in PICTURES (a test fails otherwise).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from referee.games.base import Game
from referee.games.kalah import Kalah
from referee.games.kalamala import Kalamala
from tournaments.reporting.board import kalah_picture, kalamala_picture


@dataclass(frozen=True, slots=True)
class BoardRenderer:
    """The functions that draw the positions of a game."""

    text: Callable[[Any, Any], str]
    """(game, state) -> lines of equal width, in ASCII."""
    svg: Callable[[Any, Any, Any, str], str]
    """(game, state, (state before, move) or None, title or nothing) -> SVG."""


PICTURES: dict[type, BoardRenderer] = {
    Kalah: BoardRenderer(kalah_picture.text, kalah_picture.svg),
    Kalamala: BoardRenderer(kalamala_picture.text, kalamala_picture.svg),
}
"""Class of the rule book -> painter."""


def text_picture(game: Game[Any, Any], state: Any) -> str:
    """Return the position in lines of equal width, ASCII, without a line feed at the end."""
    return PICTURES[type(game)].text(game, state)


def svg_picture(
    game: Game[Any, Any], state: Any, *, last: tuple[Any, Any] | None = None, title: str = ""
) -> str:
    """Return the position as a self-contained SVG element: a document of its own, or part of a page.

    ``last`` is the state before the last move, and that move, which is then marked.  ``title`` replaces the
    text for readers who do not see the picture; it may hold any characters.
    """
    return PICTURES[type(game)].svg(game, state, last, title)
