"""Catalog of the sample bots: spec text -> the command that runs the bot, and the digest of its play.

A sample bot's digest identifies its play, not its source files: it covers the spec text and the ``version``
that the catalog declares.  So tournaments and databases stay valid when a comment changes or a file moves.
A change of a bot's moves raises its version; ``tests/sample_bots/test_sample_bots_identity.py``
holds fingerprints of the play of all bots.

Releases without versions hashed their source files instead.  Version 1 is the play of these releases, and
its digests are theirs: they are computed from the file hashes in ``play_version_1.json``.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from referee.games.catalog import AnyGame
from referee.games.kalah import Kalah
from referee.games.kalamala import Kalamala
from sample_bots.minimax import DEFAULT_DEPTH
from sample_bots.options import (
    HIGHEST_LEVEL,
    LOWEST_LEVEL,
    BadOptionError,
    parse_depth,
    parse_level,
    parse_seconds,
    parse_seed,
)
from sample_bots.search import MAX_DEPTH
from sample_bots.strong import kernels

__all__ = [
    "SAMPLE_BOTS",
    "BadOptionError",
    "SampleBot",
    "needs_kernels",
    "play_digest",
    "readable_directories",
    "sample_bot_command",
    "searches",
]

_HERE = Path(__file__).resolve().parent

_VERSION_1_FILE = _HERE / "play_version_1.json"

_ISOLATED = ("-I",)
"""Option of Python: PYTHON* variables and the current directory have no influence."""
_ALONE = (*_ISOLATED, "-S")
"""Options of Python without site-packages, which only compiled searches need: a quicker start."""

LOWEST_SEARCH = 5
"""Lowest level of any game's ladder that searches with an engine."""


@dataclass(frozen=True)
class SampleBot:
    """Bots with the same name; an option may select one of them."""

    about: str
    """Description in one line."""
    script: tuple[str, ...]
    """The file in this folder to run, and its first arguments."""
    option: str = ""
    """Placeholder of the option in help texts, for example ``DEPTH``; empty if there is no option."""
    parse: Callable[[str], object] | None = None
    """Parser of the option, which raises BadOptionError; None if there is no option."""
    must: bool = False
    """True if the option is required."""
    searches: Callable[[str], bool] = lambda _option: False
    """Predicate of the option: whether the bot uses its time to search, in some game."""
    needs_kernels: Callable[[str, AnyGame], bool] = lambda _option, _game: True
    """Predicate of the option and the game: whether a bot that searches does so with compiled kernels."""
    only_reference_games: bool = False
    """True if the bot plays only the games of ``REFERENCE_GAMES``; all others play every game."""
    version: int = 1
    """Version of the play.  Raise it whenever the bot plays other moves than before."""


def _level_needs_kernels(option: str, game: AnyGame) -> bool:
    from sample_bots.ladder.levels import level_of  # slow to import, and seldom needed

    return level_of(game, parse_level(option)[0]).searches


REFERENCE_GAMES = (Kalah, Kalamala)
"""Rule books for which there are levels of the ladder and an engine."""
SAMPLE_BOTS: dict[str, SampleBot] = {
    "first_legal": SampleBot(
        "plays its first legal move (in Kalah the lowest pit with seeds); the bot to start from",
        ("launch.py", "first_legal"),
    ),
    "random": SampleBot(
        "plays random moves, the same ones again with the same SEED",
        ("launch.py", "random_bot"),
        "SEED",
        parse_seed,
    ),
    "greedy": SampleBot("plays the move that looks best at once", ("launch.py", "greedy")),
    "minimax": SampleBot(
        f"looks DEPTH plies ahead, 1 to {MAX_DEPTH}, default {DEFAULT_DEPTH}",
        ("launch.py", "minimax"),
        "DEPTH",
        parse_depth,
    ),
    "ladder": SampleBot(
        f"the reference player of LEVEL: {LOWEST_LEVEL}, random moves, to {HIGHEST_LEVEL}, the strongest",
        ("launch.py", "searching", "ladder"),
        "LEVEL",
        parse_level,
        must=True,
        searches=lambda option: parse_level(option)[0] >= LOWEST_SEARCH,
        needs_kernels=_level_needs_kernels,
        only_reference_games=True,
    ),
    "strong": SampleBot(
        "the strongest player, in all the time that it has, at most SECONDS a move",
        ("launch.py", "searching", "strong"),
        "SECONDS",
        parse_seconds,
        searches=lambda _option: True,
        only_reference_games=True,
    ),
    "swap_happy": SampleBot(
        "takes the other seat whenever it may, then plays its last legal move", ("launch.py", "swap_happy")
    ),
}


def sample_bot_command(spec: str, game: AnyGame | None = None, *, compiled: bool = True) -> list[str] | None:
    """Return the command that runs a bot, ``NAME`` or ``NAME:OPTION``, in any directory.

    With ``compiled``, a bot for which ``needs_kernels`` is true uses the compiled kernels.  Returns None if
    there is no sample bot of that name.  Raises BadOptionError.
    """
    found = _find(spec)
    if found is None:
        return None
    bot, option = found
    script, *arguments = bot.script
    if not (compiled and needs_kernels(spec, game)):
        return [sys.executable, *_ALONE, str(_HERE / script), *arguments, *option]
    module, *rest = arguments
    kernels_option = ["--kernels", str(kernels.directory())]
    return [sys.executable, *_ISOLATED, str(_HERE / script), module, *kernels_option, *rest, *option]


def check_game(spec: str, game: AnyGame) -> None:
    """Raise BadOptionError if a sample bot cannot play a game."""
    found = _find(spec)
    if found is None or not found[0].only_reference_games or isinstance(game, REFERENCE_GAMES):
        return
    others = ", ".join(name for name, bot in SAMPLE_BOTS.items() if not bot.only_reference_games)
    raise BadOptionError(
        f"{spec} cannot play {game.name}: it plays Kalah and Kalamala alone; sample bots for every game are "
        f"{others}"
    )


def searches(spec: str) -> bool:
    """Return whether a bot uses its time to search, in some game.  Raises BadOptionError."""
    found = _find(spec)
    return found is not None and found[0].searches("".join(found[1]))


def needs_kernels(spec: str, game: AnyGame | None = None) -> bool:
    """Return whether a bot searches with compiled kernels, and these are available.

    ``game`` is one that the bot can play (``check_game``).  Without it, the result is for any game.  Raises
    BadOptionError.
    """
    found = _find(spec)
    if found is None or not searches(spec) or not kernels.can_compile():
        return False
    bot, option = found
    return game is None or bot.needs_kernels("".join(option), game)


def readable_directories() -> list[Path]:
    """Return the directories that a sample bot reads: this package, the protocol and the rule books."""
    return [_HERE, *(_HERE.parent / name for name in ("protocol", "referee"))]


def play_digest(spec: str) -> str:
    """Return the SHA-256 that identifies the play of a sample bot, in hexadecimal.

    The spec text is part of it as it was written: ``random:7`` and ``random:07`` have different digests.
    """
    name = spec.partition(":")[0]
    return _digest(spec, name, SAMPLE_BOTS[name].version)


def _digest(spec: str, name: str, version: int) -> str:
    total = hashlib.sha256(f"{spec}\0".encode())
    if version == 1:
        for line in _version_1_lines(name):
            total.update(line.encode())
    else:
        total.update(f"{name}, play version {version}\n".encode())
    return total.hexdigest()


@cache
def _version_1_lines(name: str) -> list[str]:
    """Return the names and hashes of a bot's files as they were hashed before there were versions."""
    table: dict[str, Any] = json.loads(_VERSION_1_FILE.read_text(encoding="utf-8"))
    folders = ("", *table["folders"].get(name, ()))
    lines = []
    for path, content in table["files"].items():
        folder, _, file = path.rpartition("/")
        if folder in folders:
            lines.append(f"{file}\0{content}\n")
    return lines


def _find(spec: str) -> tuple[SampleBot, list[str]] | None:
    """Return a bot and its option as a list of at most one text.  Raises BadOptionError."""
    name, separator, option = spec.partition(":")
    bot = SAMPLE_BOTS.get(name)
    if bot is None:
        return None
    if not separator and not bot.must:
        return bot, []
    if bot.parse is None:
        raise BadOptionError(f"{spec!r}: {name} takes no option")
    try:
        value = bot.parse(option)
    except BadOptionError as error:
        raise BadOptionError(f"{spec!r}: {error}") from None
    return bot, [str(value) if isinstance(value, int) else option]
