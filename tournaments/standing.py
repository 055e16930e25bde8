"""One bot's line of the table."""

from dataclasses import dataclass, field
from typing import NamedTuple


class Estimate(NamedTuple):
    """A rating with its 95 % interval, in Elo."""

    value: float
    low: float
    high: float


@dataclass
class Standing:
    """One bot's line of the table."""

    name: str
    wins: int = 0
    draws: int = 0
    losses: int = 0
    forfeits: int = 0
    """Those of the losses that were by a fault, not by score."""
    unique: int = 0
    """Games that differ from all others between the same bots from the same start: see docs/statistics.md."""
    bye_points: float = 0.0
    """Points that it got without a game."""
    moves: int = 0
    charged_us: int = 0
    rank: int = 0
    """Counted from 1; bots that the ranking cannot tell apart share one."""
    criteria: dict[str, float | None] = field(default_factory=dict)
    """Criterion of the ranking -> this bot's value."""
    rating: Estimate | None = None
    """Strength in Elo; None without a game that counts."""
    withdrawn: bool = False
    versus: dict[str, "Versus"] = field(default_factory=dict)
    """Opponent -> record against it, from this bot's side."""

    @property
    def games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """1 for a win, 0.5 for a draw, and those of byes."""
        return self.wins + self.draws / 2 + self.bye_points

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

    @property
    def points(self) -> float:
        """1 for a win, 0.5 for a draw."""
        return self.wins + self.draws / 2

    @property
    def games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses
