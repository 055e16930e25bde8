"""Who meets whom next on the practice ladder.  Pure.

Whoever has played least goes first, so that a new version soon has a rating.  It meets the bot that it has
met least, among those about as strong as itself: a game against somebody far above or below tells little.
A match-up that was played often enough is not played again while there is another one.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

ENOUGH_PAIRS = 25
"""Pairs of games of one match-up: 50 games tell a difference of 100 points of rating from chance."""
ENOUGH_ALIKE = 5
"""The same where both games of every pair begin from the same start, since one of the two takes no openings:
bots mostly repeat the line that they played before, and a repetition says nothing new."""
POINTS_A_PAIR = 100.0
"""An opponent so many points of rating further away is as welcome as one that was met one pair more."""
FIRST_K, LEAST_K = 64.0, 8.0
"""By how much of a surprise a rating moves, at the first game and after many.  It only has to find opponents;
what people are shown comes from ``tournaments.ratings``."""
SCALE = 400.0
"""Points for ten to one, as Elo's scale has it."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A bot that may play now."""

    name: str
    takes_openings: bool


@dataclass(frozen=True, slots=True)
class Match:
    """Two bots that are to play a pair of games."""

    first: str
    """Moves first in the first of the two."""
    second: str
    is_leisure: bool
    """Whether they have met often enough, and all others have, too."""


class Tally:
    """What was played so far: how often each two met, and about how strong each is.

    Bounded by the match-ups that there were, not by the games.
    """

    def __init__(self) -> None:
        self._games: Counter[tuple[str, str]] = Counter()
        self._played: Counter[str] = Counter()
        self._ratings: dict[str, float] = {}

    def add(self, first: str, second: str, winner: int | None) -> None:
        """A game was kept; ``winner`` is 0, 1, or None for a draw."""
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
        """How many pairs of games two bots have played; half a one counts half."""
        return self._games[_both(one, other)] / 2

    def played(self, name: str) -> int:
        """How many games a bot has played, against whomever."""
        return self._played[name]

    def rating(self, name: str) -> float:
        """About how strong a bot is; 0 is where all begin."""
        return self._ratings.get(name, 0.0)


def next_match(
    field: Sequence[Contender],
    tally: Tally,
    under_way: Collection[tuple[str, str]] = (),
    *,
    resting: Collection[str] = (),
) -> Match | None:
    """The next two, None if nobody can play.

    ``under_way`` are the pairs that are being played, ``resting`` bots that are to be left alone for now.
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


def enough(one: Contender, other: Contender) -> int:
    """How many pairs of games are enough of a match-up."""
    return ENOUGH_PAIRS if one.takes_openings and other.takes_openings else ENOUGH_ALIKE


def _met(one: Contender, other: Contender, tally: Tally, playing: Mapping[tuple[str, str], int]) -> float:
    both = _both(one.name, other.name)
    return tally.pairs(*both) + playing.get(both, 0)


def _cost(
    one: Contender,
    other: Contender,
    tally: Tally,
    playing: Mapping[tuple[str, str], int],
    load: Mapping[str, int],
) -> tuple[float, int, str]:
    far = abs(tally.rating(one.name) - tally.rating(other.name)) / POINTS_A_PAIR
    return _met(one, other, tally, playing) + far, load[other.name], other.name


def _both(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one <= other else (other, one)
