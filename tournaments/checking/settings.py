"""Settings of a check.  Pure."""

from dataclasses import dataclass, field

from referee.games.catalog import DEFAULT_GAME
from referee.judge.clock import DEFAULT_MOVE_S, TimeControl
from referee.judge.limits import Limits
from referee.sandbox.bubblewrap import Sandbox

DEFAULT_TOTAL_S = 120.0
"""Seconds for a whole check.  A bot that answers at once needs 3 s, one that thinks for 0.1 s a move 60 s."""
DEFAULT_SEED = 1


@dataclass(frozen=True)
class Settings:
    """Settings of a check.  Raises ValueError for values that make no sense."""

    games: tuple[str, ...] = (DEFAULT_GAME,)
    """Spec texts; the first one is checked fully, of each other one four games are played."""
    control: TimeControl = field(default_factory=lambda: TimeControl(move_s=DEFAULT_MOVE_S))
    limits: Limits = field(default_factory=Limits)
    sandbox: Sandbox = field(default_factory=Sandbox)
    rounds: int = 1
    """Games against each opponent from each seat."""
    seed: int = DEFAULT_SEED
    """Seed of the random opponent; each further game against it has the next seed."""
    total_s: float = DEFAULT_TOTAL_S
    """Seconds after which the remaining games are left out; the report names them."""

    def __post_init__(self) -> None:
        if not self.games:
            raise ValueError("a check needs a game")
        if self.rounds < 1:
            raise ValueError(f"the games against each opponent must be at least 1, not {self.rounds}")
        if not 0 <= self.seed < 10**9:
            raise ValueError(f"a seed is a whole number from 0 to 999999999, not {self.seed}")
        if not 0 < self.total_s < float("inf"):
            raise ValueError(f"the time for a check must be more than 0 seconds, not {self.total_s:g}")
