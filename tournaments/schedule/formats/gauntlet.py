"""Gauntlet: a few challengers against the whole field."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from tournaments.schedule.formats.rounds import drawn_lots, to_be_played
from tournaments.schedule.pairing import Entrant, History, Pairing, Schedule, pair_of_games


@dataclass(frozen=True)
class Gauntlet(Schedule):
    """Every challenger meets every other bot twice in each round, once from each side.

    Challengers do not meet one another, nor do the others.  A bot that joins late is one of the others, and
    plays the games of all rounds.  Raises ValueError if a challenger is not among the entrants.
    """

    PAIRS_ROUNDS: ClassVar[bool] = False
    entrants: Sequence[Entrant]
    rounds: int
    seed: int = 0
    width: int = 1
    """Digits of a bot's number in keys."""
    challengers: tuple[int, ...] = field(kw_only=True)
    """Numbers of the challenging bots."""

    def __post_init__(self) -> None:
        strangers = sorted(set(self.challengers) - set(range(len(self.entrants))))
        if strangers:
            raise ValueError(f"challengers {strangers} are not among the {len(self.entrants)} entrants")

    def pairings(self, history: History) -> list[Pairing]:
        """Return the games by round; within a round, opponents by lot, each challenger beginning elsewhere.

        A bot that withdrew has the games that it played.
        """
        return to_be_played(self._all(), history, self.entrants)

    def total(self, history: History) -> int:
        """Return the number of games of all rounds."""
        challengers = len(set(self.challengers))
        if all(entrant.until is None for entrant in self.entrants):  # making all games takes longer
            return self.rounds * 2 * challengers * (len(self.entrants) - challengers)
        return len(self.pairings(history))

    def _all(self) -> tuple[Pairing, ...]:
        challengers = tuple(sorted(set(self.challengers)))
        return games_of(len(self.entrants), challengers, self.rounds, self.seed, self.width)


@lru_cache(maxsize=8)
def games_of(
    count: int, challengers: tuple[int, ...], rounds: int, seed: int, width: int
) -> tuple[Pairing, ...]:
    """Return the games of all rounds; cached, since thousands of them take a while."""
    games: list[Pairing] = []
    for number in range(1, rounds + 1):
        lots = drawn_lots(count, f"{seed}/{number}")
        others = sorted(set(range(count)) - set(challengers), key=lots.__getitem__)
        for turn in range(len(others)):
            for seat, challenger in enumerate(challengers):
                ahead = seat * len(others) // len(challengers)  # spread out, so that all bots play early
                games += pair_of_games(number, challenger, others[(turn + ahead) % len(others)], width)
    return tuple(games)
