"""Choices of forms: games, time zones and reference players; a game or a player may also be a text."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from zoneinfo import available_timezones

from referee.games.catalog import all_games
from sample_bots.options import HIGHEST_LEVEL, LOWEST_LEVEL
from tournaments.web.lecturer.forms import FormField, Section
from tournaments.web.views.lists import natural_key

GAME_TEXT = "game_text"
"""Form value of a game that is not among the choices; it takes precedence."""
PLAYER = "player."
"""Beginning of the names of the boxes of reference players, before the player."""
SMALLER_BOARDS = ("manchester(6,6)", "manchester(6,4)", "manchester(4,4)")
"""Games for a course's first weeks."""
PLAYERS = (
    *(f"ladder:{level}" for level in range(LOWEST_LEVEL, HIGHEST_LEVEL + 1)),
    *("random", "first_legal", "greedy", "minimax", "swap_happy", "strong"),
)
"""Reference players with a box."""


def game_choices(chosen: str) -> tuple[tuple[str, str], ...]:
    """Return the games of a form with their descriptions; the chosen one is always among them."""
    known = {game.example: f"{game.example}: {game.about}" for game in all_games().values()}
    for game in (*SMALLER_BOARDS, chosen):
        known.setdefault(game, game)
    return tuple((game, words) for game, words in known.items() if game)


@cache
def zone_choices() -> tuple[tuple[str, str], ...]:
    """Return all time zones of the system."""
    return tuple((zone, zone) for zone in sorted({"UTC", *available_timezones()}, key=natural_key))


def with_choices(sections: Sequence[Section], values: Mapping[str, str]) -> list[Section]:
    """Return a form's sections with choices instead of texts for the game, the time zone and the players."""

    def field_of(field: FormField) -> FormField:
        chosen = values.get(field.name, "")
        match field.name:
            case "game":
                return replace(field, kind="game", choices=game_choices(chosen))
            case "time_zone":
                zones = zone_choices()
                known = any(zone == chosen for zone, _ in zones)
                return replace(
                    field, kind="choice", choices=zones if known or not chosen else ((chosen, chosen), *zones)
                )
            case "references":
                return replace(field, kind="players", choices=tuple((name, name) for name in PLAYERS))
        return field

    return [replace(section, fields=tuple(map(field_of, section.fields))) for section in sections]


def from_choices(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a form with the chosen game and players as the texts that a model reads."""
    found = {
        name: value for name, value in values.items() if name != GAME_TEXT and not name.startswith(PLAYER)
    }
    if values.get(GAME_TEXT, "").strip():
        found["game"] = values[GAME_TEXT].strip()
    ticked = [name for name in PLAYERS if f"{PLAYER}{name}" in values]
    if ticked or "references" in values:
        others = players_in(values.get("references", ""))
        found["references"] = " ".join([*ticked, *(name for name in others if name not in ticked)])
    return found


def players_in(text: str) -> list[str]:
    """Return the players in a text, between spaces or commas."""
    return [word for word in re.split(r"[\s,]+", text) if word]
