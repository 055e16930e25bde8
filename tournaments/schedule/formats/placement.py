"""Placement: games that determine a bot's place among players of known order.

The challenger meets, in each round, the two players around its estimated place; ``pairs`` pairs
of games with each.  Thus games are spent where they are most informative: games against a player that
it nearly always beats, or loses to, show little.  It begins in the middle.

The estimated place is the mean of a simple model, which serves the pairing and nothing else: players
``STEP_ELO`` apart, a place that was drawn from a normal distribution over all of them, and the usual expected
scores.  The strength of the challenger is estimated by its rating (tournaments/analysis/ladder_position.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import exp, log1p

from tournaments.schedule.formats.rounds import DRAW, WIN, match_of, to_be_played
from tournaments.schedule.pairing import Entrant, History, Pairing, Schedule, withdrawn

STEP_ELO = 150.0
"""The assumed difference between neighbours, in Elo: an expected score of 70 %."""
ELO_PER_UNIT = 173.718
"""400 / ln 10: Elo per unit of log odds (Elo 1978)."""
GRID = 10
"""Places that are evaluated per step between two neighbours."""
LARGEST_LEAD = 709.0
"""Log odds l from which log(1 + e^l) is l to the last bit; e^l overflows shortly after."""
BEYOND = 2
"""The range of places below the first and above the last player, in steps between neighbours."""


@dataclass(frozen=True)
class Placement(Schedule):
    """A challenger and the players that it is compared with; see the module.

    All entrants but the challenger are players in ascending order of strength.  A bot that joins late plays
    no game.  When a player withdraws, the others go on; when the challenger does, it is over.  Raises
    ValueError if there is not exactly one challenger, or nobody else.
    """

    entrants: Sequence[Entrant]
    rounds: int
    width: int = 1
    """Digits of a bot's number in keys."""
    pairs: int = 1
    """Pairs of games with each of the two players of a round."""
    challengers: tuple[int, ...] = field(kw_only=True)
    """Number of the bot that is placed."""

    def __post_init__(self) -> None:
        if len(self.challengers) != 1:
            raise ValueError(f"a placement has one challenger, not {len(self.challengers)}")
        if self.challengers[0] not in range(len(self.entrants)):
            raise ValueError(
                f"challenger {self.challengers[0]} is not among the {len(self.entrants)} entrants"
            )
        if not self._players:
            raise ValueError("a placement needs somebody to be compared with")

    def pairings(self, history: History) -> list[Pairing]:
        """Return the games of the rounds that were paired."""
        games: list[Pairing] = []
        for number in range(1, self.rounds + 1):
            seen = history.at(number)
            if any(game.key not in seen and not withdrawn(game, self.entrants) for game in games):
                break
            halves = dict.fromkeys(self._players, 0)
            played = dict.fromkeys(self._players, 0)
            for game in games:
                result = seen.get(game.key)
                if result is not None and result.counts:
                    seat = int(game.second == self._challenger)
                    player = game.first if seat else game.second
                    played[player] += 1
                    halves[player] += DRAW if result.winner is None else WIN * (result.winner == seat)
            place = _place(tuple(halves.values()), tuple(played.values()))
            for player in self._around(place, number):
                games += match_of(number, self._challenger, player, self.width, self.pairs)
        return games

    def total(self, history: History) -> int:
        """Return the number of games of all rounds, if no bot withdraws."""
        games = self.pairings(history)
        now = max((game.round for game in games), default=0)
        later = (len(self._around(0.0, number)) for number in range(now + 1, self.rounds + 1))
        return len(to_be_played(games, history, self.entrants)) + 2 * self.pairs * sum(later)

    @property
    def _challenger(self) -> int:
        return self.challengers[0]

    @property
    def _players(self) -> list[int]:
        return [
            bot for bot, entrant in enumerate(self.entrants) if bot != self._challenger and entrant.since <= 1
        ]

    def _around(self, place: float, number: int) -> list[int]:
        """Return the two players around a place among those of a round; fewer if fewer are left."""
        if not self.entrants[self._challenger].plays(number):
            return []
        playing = [
            (index, player)
            for index, player in enumerate(self._players)
            if self.entrants[player].plays(number)
        ]
        above = next((at for at, (index, _) in enumerate(playing) if index > place), len(playing))
        begin = min(max(above - 1, 0), max(len(playing) - 2, 0))
        return [player for _, player in playing[begin : begin + 2]]


@lru_cache(maxsize=1 << 12)  # a schedule recomputes its rounds after every game
def _place(halves: Sequence[int], games: Sequence[int]) -> float:
    """Return the estimated place of the challenger: the index of a player, or a number between two.

    It is computed from the half points against each player and the number of games with it.
    """
    last = len(games) - 1
    middle, spread = last / 2, max(1.0, len(games) / 2)
    grid = [at / GRID for at in range(-BEYOND * GRID, (last + BEYOND) * GRID + 1)]
    weights = []
    for place in grid:
        height = -(((place - middle) / spread) ** 2) / 2
        for index, (half, played) in enumerate(zip(halves, games, strict=True)):
            if played:
                lead = (place - index) * STEP_ELO / ELO_PER_UNIT
                # With w wins of n games the log-likelihood is w lead - n ln(1 + e^lead).
                height += half / WIN * lead - played * (log1p(exp(lead)) if lead < LARGEST_LEAD else lead)
        weights.append(height)
    most = max(weights)
    weights = [exp(height - most) for height in weights]
    return sum(place * weight for place, weight in zip(grid, weights, strict=True)) / sum(weights)
