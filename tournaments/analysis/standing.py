"""Table line of one bot, with its rating and its records against opponents."""

from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple


class Estimate(NamedTuple):
    """A rating, or another number in Elo, with its 95 % interval; without one, its ends are infinite."""

    value: float
    low: float
    high: float

    @property
    def has_interval(self) -> bool:
        """True if both ends are finite."""
        return isfinite(self.low) and isfinite(self.high)


@dataclass
class Standing:
    """One bot's line of the table."""

    name: str
    wins: int = 0
    draws: int = 0
    losses: int = 0
    forfeits: int = 0
    """Number of losses by a fault, not by score."""
    unique: int = 0
    """Number of games that differ from all others from the same start, see docs/statistics.md."""
    bye_points: float = 0.0
    """Points without a game."""
    match_points: int | None = None
    """Match points: 2 for a won match, 1 for a drawn one, and those of byes; None if games give points."""
    bye_matches: int = 0
    """Number of matches won without a game that counts."""
    moves: int = 0
    charged_us: int = 0
    rank: int = 0
    """Rank, counted from 1; bots that are tied on all criteria share one."""
    criteria: dict[str, float | None] = field(default_factory=dict)
    """Criterion of the ranking -> this bot's value."""
    rating: Estimate | None = None
    """Strength in Elo; None without a game that counts."""
    withdrawn: bool = False
    versus: dict[str, "Versus"] = field(default_factory=dict)
    """Opponent -> record against it, from this bot's side."""

    @property
    def games(self) -> int:
        """Number of games played."""
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """Points: 1 for a win, 0.5 for a draw, and those of byes."""
        return self.wins + self.draws / 2 + self.bye_points

    @property
    def score(self) -> float | None:
        """Share of the possible points, from 0 to 1; None without a game or a bye."""
        possible = self.games + self.bye_points
        return self.points / possible if possible else None

    @property
    def mean_move_ms(self) -> float | None:
        """Average charged time of a move in milliseconds over all games; None without a move."""
        return self.charged_us / self.moves / 1000 if self.moves else None


@dataclass
class Versus:
    """One bot's record against another."""

    wins: int = 0
    draws: int = 0
    losses: int = 0
    matches: int = 0
    match_points: int = 0
    """Match points in these matches."""

    @property
    def points(self) -> float:
        """Points: 1 for a win, 0.5 for a draw."""
        return self.wins + self.draws / 2

    @property
    def games(self) -> int:
        """Number of games played."""
        return self.wins + self.draws + self.losses
