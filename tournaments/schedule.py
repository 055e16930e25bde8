"""Who meets whom.  Pure: a schedule is computed anew from the results so far, hence resumable."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Pairing:
    """One game to be played."""

    key: str
    """Identifies it within the tournament, and never changes."""
    round: int
    """Counted from 1."""
    first: int
    """Index of the bot that moves first."""
    second: int


class Schedule(Protocol):
    """A tournament format."""

    def all(self) -> Sequence[Pairing]:
        """Every game of the tournament as far as it is known, in the order of play."""
        ...

    def due(self, played: Collection[str]) -> Sequence[Pairing]:
        """The games that can be started now, given the keys of those that were played."""
        ...


@dataclass(frozen=True)
class RoundRobin:
    """Every pair meets twice in each round, once from each side."""

    bots: int
    rounds: int

    def all(self) -> list[Pairing]:
        """Round by round, in the order of the circle method: no bot waits long between its games."""
        pairs = [pair for day in _circle(self.bots) for pair in day]
        width = len(str(self.bots))
        return [
            Pairing(f"r{number:03d}-{first + 1:0{width}d}v{second + 1:0{width}d}", number, first, second)
            for number in range(1, self.rounds + 1)
            for pair in pairs
            for first, second in (pair, pair[::-1])
        ]

    def due(self, played: Collection[str]) -> list[Pairing]:
        """All that were not played."""
        return [pairing for pairing in self.all() if pairing.key not in played]


def schedule_of(bots: int, rounds: int) -> Schedule:
    """The schedule of a tournament with this many bots and rounds."""
    return RoundRobin(bots, rounds)


def _circle(count: int) -> list[list[tuple[int, int]]]:
    """The days of a round robin by the circle method (E. Lucas, 1883): each bot at most once a day.

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
