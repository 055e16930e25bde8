"""Round robin: every bot meets every other bot."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from tournaments.schedule.formats.rounds import drawn_lots, to_be_played
from tournaments.schedule.pairing import Entrant, History, Pairing, Schedule, pair_of_games


@dataclass(frozen=True)
class RoundRobin(Schedule):
    """Every pair meets twice in each round, once from each side."""

    PAIRS_ROUNDS: ClassVar[bool] = False
    entrants: Sequence[Entrant]
    rounds: int
    seed: int = 0
    width: int = 1
    """Digits of a bot's number in keys."""

    def pairings(self, history: History) -> list[Pairing]:
        """Return the games by round, in the order of the circle method: no bot waits long between games.

        A bot that joined late plays the games of all rounds; one that withdrew has those that it played.
        """
        return to_be_played(self._all(), history, self.entrants)

    def total(self, history: History) -> int:
        """Return the number of games of all rounds."""
        count = len(self.entrants)
        if all(entrant.until is None for entrant in self.entrants):  # making all games takes longer
            return self.rounds * count * (count - 1)
        return len(self.pairings(history))

    def _all(self) -> tuple[Pairing, ...]:
        return games_of(len(self.entrants), self.rounds, self.seed, self.width)


@lru_cache(maxsize=8)
def games_of(count: int, rounds: int, seed: int, width: int) -> tuple[Pairing, ...]:
    """Return the games of all rounds of ``count`` bots; cached, since thousands of them take a while."""
    games: list[Pairing] = []
    for number in range(1, rounds + 1):
        lots = drawn_lots(count, f"{seed}/{number}")
        chairs = sorted(range(count), key=lots.__getitem__)
        for day in circle(count):
            for one, other in day:
                games += pair_of_games(number, chairs[one], chairs[other], width)
    return tuple(games)


def circle(count: int) -> list[list[tuple[int, int]]]:
    """Return the days of a round robin by the circle method (E. Lucas, 1883): each bot at most once a day.

    With an odd number, the bot that meets the empty chair has the bye.
    """
    chairs: list[int | None] = list(range(count))
    if count % 2:
        chairs.append(None)
    days = []
    half = len(chairs) // 2
    for _ in range(len(chairs) - 1):
        opposite = zip(chairs[:half], reversed(chairs[half:]), strict=True)
        days.append([(one, other) for one, other in opposite if one is not None and other is not None])
        chairs = [chairs[0], chairs[-1], *chairs[1:-1]]
    return days
