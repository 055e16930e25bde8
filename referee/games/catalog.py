"""The catalog of all games by name: spec text -> rule book; and the registration of further games."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from referee.games import kalah_spec, kalamala_spec, plugins
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
    source: str = ""
    """The file of a game that is not part of Kalarena."""


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

_BUILT_IN = frozenset(GAMES)

DEFAULT_GAME = "manchester"
"""The default game, that of the course that defined the protocol."""

OPENING_VARIABLE = "KALARENA_OPENING"
"""Environment variable with the number of CHANGE lines that announce an opening, if the game has one: then
START gives no turn."""

GAME_VARIABLE = "KALARENA_GAME"
"""Environment variable with the game's spec text; the protocol itself does not contain it."""


def register_game(
    name: str,
    build: Callable[[Spec], AnyGame],
    *,
    about: str,
    board: str = "",
    options: Mapping[str, tuple[str, str]] | None = None,
    example: str = "",
) -> None:
    """Add a game to the catalog of this process; docs/games.md shows a whole module.

    Args:
        name: First word of its spec texts: letters, digits, ``_`` and ``-``, beginning with a letter.
        build: Function spec -> rule book; raises SpecError for values that the game does not have.
        about: One line for people.
        board: The form of the board in a spec text, such as ``(PITS,SEEDS), default (6,4)``; empty if the
            board is fixed.
        options: Option -> (its values as shown, one line for people).
        example: A spec text of the name; needed if ``name`` alone is none.

    Raises:
        ValueError: The name is not valid, or another game has it.
    """
    known = dict(options or {})
    source = getattr(sys.modules.get(build.__module__), "__file__", None) or ""
    if parse_spec(name).name != name:
        raise ValueError(f"{name!r} is no name of a game: letters, digits, _ and -, beginning with a letter")
    other = GAMES.get(name)
    if name in _BUILT_IN or (other is not None and other.source != source):
        where = f", in {other.source}" if other is not None and other.source else ""
        raise ValueError(f"there is a game {name} already{where}")

    def checked(spec: Spec) -> AnyGame:
        if spec.board is not None and not board:
            raise SpecError(f"{spec.text!r}: the board of {name} is always the same; leave {spec.board} out")
        for option in spec.options:
            if option not in known:
                there = f"; there are {', '.join(known)}" if known else ", which has none"
                raise SpecError(
                    f"{spec.text!r}: no option {option!r} for {name}{did_you_mean(option, known)}{there}"
                )
        return build(spec)

    GAMES[name] = Entry(about, board, known, checked, example or name, source)


def all_games() -> Mapping[str, Entry]:
    """Return the catalog with all games that can be found.  Raises SpecError if a module cannot be loaded."""
    try:
        plugins.load_named_files()
        plugins.load_entry_points()
    except plugins.GameModuleError as error:
        raise SpecError(str(error)) from error
    return GAMES


def find_game(name: str) -> Entry | None:
    """Return the entry of a game; None if there is none.  Raises SpecError if a module cannot be loaded."""
    if name not in GAMES:
        try:
            plugins.load_named_files()
            if name not in GAMES:
                plugins.load_entry_points(name)
        except plugins.GameModuleError as error:
            raise SpecError(str(error)) from error
    return GAMES.get(name)


@lru_cache(maxsize=64)  # rule books are stateless; a tournament needs the same one for every game
def parse_game(text: str) -> AnyGame:
    """Return the rule book that a spec text names.  Raises SpecError with a list of what exists."""
    spec = parse_spec(text)
    entry = find_game(spec.name)
    if entry is None:
        games = all_games()
        raise SpecError(
            f"no game {spec.name!r}{did_you_mean(spec.name, games)}; there are {', '.join(games)} "
            "(`kalarena games` lists their options)"
        )
    return entry.build(spec)
