"""The catalog of all games by name: spec text -> rule book.  New games are registered here alone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from referee.games import kalah_spec, kalamala_spec
from referee.games.base import Game
from referee.games.spec import Spec, SpecError, did_you_mean, parse_spec

AnyGame = Game[Any, Any]
"""A rule book whose states and moves the caller does not examine."""


@dataclass(frozen=True)
class Entry:
    """One name that a spec text can begin with."""

    about: str
    """One line for people."""
    board: str
    """The form of the board: ``(PITS,SEEDS), default (7,7)``; empty if the board is fixed."""
    options: dict[str, tuple[str, str]]
    """Option -> (its values or default, as shown; one line for people)."""
    build: Callable[[Spec], AnyGame]
    """Spec -> rule book; raises SpecError."""
    example: str
    """A spec text of the name, with the most common board where one has to be given."""


def _kalah_entry(name: str, preset: kalah_spec.Preset) -> Entry:
    def default(option: kalah_spec.Option) -> str:
        word = next(word for word, value in option.values.items() if value == preset.rules[option.field])
        return f"{'|'.join(option.values)}, default {word}"

    board = f"default ({preset.board[0]},{preset.board[1]})" if preset.board else "to be given"
    options = {key: (default(option), option.about) for key, option in kalah_spec.OPTIONS.items()}
    example = name if preset.board else f"{name}(6,4)"
    return Entry(preset.about, f"(PITS,SEEDS), {board}", options, kalah_spec.build, example)


def _kalamala_entry() -> Entry:
    options = {key: (values, about) for key, values, about in kalamala_spec.OPTIONS}
    return Entry(kalamala_spec.ABOUT, "", options, kalamala_spec.build, kalamala_spec.NAME)


GAMES: dict[str, Entry] = {
    **{name: _kalah_entry(name, preset) for name, preset in kalah_spec.PRESETS.items()},
    kalamala_spec.NAME: _kalamala_entry(),
}

DEFAULT_GAME = "manchester"
"""The default game, that of the course that defined the protocol."""

OPENING_VARIABLE = "KALARENA_OPENING"
"""Environment variable with the number of CHANGE lines that announce an opening, if the game has one: then
START gives no turn."""

GAME_VARIABLE = "KALARENA_GAME"
"""Environment variable with the game's spec text; the protocol itself does not contain it."""


@lru_cache(maxsize=64)  # rule books are stateless; a tournament needs the same one for every game
def parse_game(text: str) -> AnyGame:
    """Return the rule book that a spec text names.  Raises SpecError with a list of what exists."""
    spec = parse_spec(text)
    entry = GAMES.get(spec.name)
    if entry is None:
        raise SpecError(
            f"no game {spec.name!r}{did_you_mean(spec.name, GAMES)}; there are {', '.join(GAMES)} "
            "(`kalarena games` lists their options)"
        )
    return entry.build(spec)
