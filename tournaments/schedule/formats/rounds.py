"""Matches and their points, for formats that pair round by round.

Points are counted in half points, so that they are whole numbers.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from tournaments.schedule.pairing import Entrant, History, Pairing, Result, pair_of_games, withdrawn

WIN, DRAW = 2, 1
"""Half points of a game."""

REMEMBERED_MATCHES = 1 << 14
"""Number of cached matches: 819 rounds of 41 bots.  Making one takes 5 us, a cache hit 0.1 us."""


@lru_cache(maxsize=REMEMBERED_MATCHES)
def match_of(number: int, first: int, second: int, width: int, pairs: int) -> tuple[Pairing, ...]:
    """Return the games of two bots in a round: ``pairs`` pairs of games, each from an opening of its own.

    ``first`` moves first in the first game; in the next pair the other one does, and so on.
    """
    games: list[Pairing] = []
    for leg in range(pairs):
        bots = (second, first) if leg % 2 else (first, second)
        games += pair_of_games(number, *bots, width, leg, (number - 1) * pairs + leg)
    return tuple(games)


def half_points(
    game: Pairing, results: Mapping[str, Result], entrants: Sequence[Entrant]
) -> tuple[int, int] | None:
    """Return the half points of a game's first and second bot; None while the game is awaited.

    A void game is worth nothing.  A game that was not played because a bot withdrew is won by the other one;
    if both withdrew, by the one that stayed longer, or by neither.
    """
    result = results.get(game.key)
    if result is not None:
        if not result.counts:
            return 0, 0
        if result.winner is None:
            return DRAW, DRAW
        return (WIN, 0) if result.winner == 0 else (0, WIN)
    one, other = entrants[game.first].until, entrants[game.second].until
    if one == other:
        return None if one is None else (0, 0)
    return (WIN, 0) if other is not None and (one is None or other < one) else (0, WIN)


def to_be_played(games: Iterable[Pairing], history: History, entrants: Sequence[Entrant]) -> list[Pairing]:
    """Return the games that were played or will be."""
    return [game for game in games if game.key in history.results or not withdrawn(game, entrants)]


@lru_cache(maxsize=256)
def drawn_lots(count: int, text: str) -> tuple[float, ...]:
    """Return a lot for each of the bots 0 .. count-1, which depends on the text and the bot alone.

    Bots that join later change no other bot's lot.  Of ``random``, only ``random()`` after seeding with a
    text is promised to be the same in every version of Python
    (https://docs.python.org/3/library/random.html#notes-on-reproducibility).
    """
    return tuple(random.Random(f"{text}/{bot}").random() for bot in range(count))
