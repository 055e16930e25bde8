"""Name and picture of the course's game, for people who do not know it yet."""

from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup

from referee.games.catalog import parse_game
from referee.games.kalah import Kalah
from referee.games.kalamala import Kalamala
from tournaments.reporting.board.board_renderer import svg_picture
from tournaments.reporting.site.replay_page import without_styles

MOST_GAMES = 8
"""Games kept: a course has one, and changes it rarely."""


@dataclass(frozen=True)
class CourseGame:
    """The game that the bots of a course play."""

    name: str
    """Such as ``Kalah with 7 pits a side and 7 seeds in each``."""
    rules: str
    """Address of its rules; empty for a game of another distribution."""
    picture: Markup
    """The start position; its page loads pictures.css."""


@lru_cache(MOST_GAMES)
def course_game(spec: str) -> CourseGame:
    """Return the game of a spec text, which is valid: settings are validated."""
    game = parse_game(spec)
    name, rules = game.name, ""
    if isinstance(game, Kalah):
        name, rules = (
            f"Kalah with {game.pits} pits a side and {game.seeds} seeds in each",
            "/help/rules#kalah",
        )
    elif isinstance(game, Kalamala):
        name, rules = "Kalamala", "/help/rules#kalamala"
    picture = svg_picture(game, game.initial_state(), title=f"The start position of {name}")
    return CourseGame(name, rules, Markup(without_styles(picture)))


def game_label(spec: str) -> str:
    """Return a short name of a game for a list of choices: ``Kalah, 7 pits, 7 seeds (manchester)``."""
    game = parse_game(spec)
    if isinstance(game, Kalah):
        return f"Kalah, {game.pits} pits, {game.seeds} seeds ({spec})"
    return "Kalamala" if spec == "kalamala" else spec
