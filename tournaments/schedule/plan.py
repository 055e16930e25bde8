"""Plan of a tournament: all inputs of its pairings but the results, stored so that the store suffices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tournaments.schedule.formats.catalog import ROUND_ROBIN, schedule_of
from tournaments.schedule.pairing import Entrant, Schedule


@dataclass(frozen=True)
class Plan:
    """A format with its parameters."""

    format: Mapping[str, Any] = field(default_factory=lambda: {"kind": ROUND_ROBIN})
    """Name of the format as ``kind``, and its own parameters; bots are named."""
    rounds: int = 1
    seed: int = 0
    width: int = 1
    """Digits of a bot's number in keys: those of the number of bots in the tournament's file."""
    openings: int = 0
    """Number of different openings; 0 is the game's own start alone."""

    @property
    def kind(self) -> str:
        """Name of the format."""
        return str(self.format["kind"])

    def schedule(self, names: Sequence[str], entrants: Sequence[Entrant]) -> Schedule:
        """Return the schedule for these bots.  Raises ValueError if the format cannot be played with them."""
        parameters = dict(self.format)
        if "challengers" in parameters:
            parameters["challengers"] = tuple(map(names.index, parameters["challengers"]))
        if self.kind == "sprt":
            parameters["openings"] = self.openings
        return schedule_of(parameters, entrants, self.rounds, self.seed, self.width)

    def to_json(self) -> dict[str, Any]:
        """Return the plan for the store."""
        return {
            "format": dict(self.format),
            "rounds": self.rounds,
            "seed": self.seed,
            "width": self.width,
            "openings": self.openings,
        }

    @classmethod
    def from_json(cls, config: Mapping[str, Any]) -> "Plan":
        """Create the plan from a store's configuration of its tournament.

        Stores of the first versions hold the number of games instead, of a round robin.
        """
        if "format" in config:
            return cls(**{name: config[name] for name in ("format", "rounds", "seed", "width", "openings")})
        bots = len(config["bots"])
        rounds = config["total"] // max(1, bots * (bots - 1))
        return cls(rounds=rounds, width=len(str(bots)))
