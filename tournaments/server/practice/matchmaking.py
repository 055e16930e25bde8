"""Pairing of bots on the practice ladder (pure).

The bot that has played least goes first, so that a new version soon has a rating.  Its opponent is the bot
that it has met least, among those about as strong as itself: a game against a far stronger or weaker bot
gives little information.  A match-up that was played often enough is not played again while there is another
one.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

ENOUGH_PAIRS = 25
"""Pairs of games of one match-up: 50 games distinguish a difference of 100 rating points from chance."""
ENOUGH_ALIKE = 5
"""Pairs of games of a match-up in which both games of a pair have the same start.

This is so if one of the two takes no openings.  Bots mostly repeat the line that they played before, and a
repetition gives no new information.
"""
POINTS_A_PAIR = 100.0
"""Distance in rating points that weighs as much as one more pair already played."""
FIRST_K, LEAST_K = 64.0, 8.0
"""Factor by which a surprise changes a rating, at the first game and after many.

These ratings only have to find opponents; published ratings come from ``tournaments.analysis.ratings``.
"""
SCALE = 400.0
"""Rating points for odds of ten to one, as on Elo's scale."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A bot that can play now."""

    name: str
    takes_openings: bool


@dataclass(frozen=True, slots=True)
class Match:
    """Two bots that are to play a pair of games."""

    first: str
    """Bot that moves first in the first of the two games."""
    second: str
    is_leisure: bool
    """True if these two, and all others, have met often enough."""


class Tally:
    """Games so far: the number of pairs of each match-up, and a rough rating of each bot.

    Its size is bounded by the number of match-ups, not of games.
    """

    def __init__(self) -> None:
        self._games: Counter[tuple[str, str]] = Counter()
        self._played: Counter[str] = Counter()
        self._ratings: dict[str, float] = {}

    def add(self, first: str, second: str, winner: int | None) -> None:
        """Add a game; ``winner`` is 0, 1, or None for a draw."""
        expected = 1 / (1 + 10 ** ((self.rating(second) - self.rating(first)) / SCALE))
        surprise = {0: 1.0, 1: 0.0, None: 0.5}[winner] - expected
        moved = {
            name: self.rating(name) + sign * surprise * max(LEAST_K, FIRST_K / (1 + self._played[name] / 8))
            for name, sign in ((first, 1), (second, -1))
        }
        self._ratings |= moved
        self._played.update((first, second))
        self._games[_both(first, second)] += 1

    def pairs(self, one: str, other: str) -> float:
        """Return the number of pairs that two bots have played; half a pair counts half."""
        return self._games[_both(one, other)] / 2

    def played(self, name: str) -> int:
        """Return the number of games that a bot has played."""
        return self._played[name]

    def rating(self, name: str) -> float:
        """Return a bot's rough rating; all begin at 0."""
        return self._ratings.get(name, 0.0)


def next_match(
    field: Sequence[Candidate],
    tally: Tally,
    under_way: Collection[tuple[str, str]] = (),
    *,
    resting: Collection[str] = (),
) -> Match | None:
    """Return the next match, or None if no bot can play.

    ``under_way`` are the pairs that are being played, ``resting`` bots that are not paired for now.
    """
    able = [one for one in field if one.name not in resting]
    playing = Counter(_both(*names) for names in under_way)
    busy = Counter(name for names in under_way for name in names)
    load = {one.name: tally.played(one.name) + 2 * busy[one.name] for one in able}
    least_first = sorted(able, key=lambda one: (load[one.name], one.name))
    for is_leisure in (False, True):
        for one in least_first:
            opponents = [
                other
                for other in able
                if other is not one and (is_leisure or _met(one, other, tally, playing) < enough(one, other))
            ]
            if opponents:
                other = min(opponents, key=lambda other: _cost(one, other, tally, playing, load))
                first, second = (one, other) if _met(one, other, tally, playing) % 2 < 1 else (other, one)
                return Match(first.name, second.name, is_leisure)
    return None


def enough(one: Candidate, other: Candidate) -> int:
    """Return the number of pairs that are enough for a match-up."""
    return ENOUGH_PAIRS if one.takes_openings and other.takes_openings else ENOUGH_ALIKE


def _met(one: Candidate, other: Candidate, tally: Tally, playing: Mapping[tuple[str, str], int]) -> float:
    both = _both(one.name, other.name)
    return tally.pairs(*both) + playing.get(both, 0)


def _cost(
    one: Candidate,
    other: Candidate,
    tally: Tally,
    playing: Mapping[tuple[str, str], int],
    load: Mapping[str, int],
) -> tuple[float, int, str]:
    far = abs(tally.rating(one.name) - tally.rating(other.name)) / POINTS_A_PAIR
    return _met(one, other, tally, playing) + far, load[other.name], other.name


def _both(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one <= other else (other, one)
