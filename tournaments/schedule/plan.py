"""Plan of a tournament: all inputs of its pairings except the results, as stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from tournaments.schedule.formats.gauntlet import Gauntlet
from tournaments.schedule.formats.groups import Groups
from tournaments.schedule.formats.knockout import Knockout
from tournaments.schedule.formats.ladder import Ladder
from tournaments.schedule.formats.placement import Placement
from tournaments.schedule.formats.round_robin import RoundRobin
from tournaments.schedule.formats.sprt import Sprt
from tournaments.schedule.formats.swiss import Swiss
from tournaments.schedule.pairing import Entrant, Schedule

FORMATS: dict[str, type[Any]] = {
    "round-robin": RoundRobin,
    "gauntlet": Gauntlet,
    "swiss": Swiss,
    "ladder": Ladder,
    "knockout": Knockout,
    "groups": Groups,
    "sprt": Sprt,
    "placement": Placement,
}
"""Name -> the format's class, whose fields are its parameters."""

ROUND_ROBIN = "round-robin"
"""The default format of a tournament."""


def pairs_rounds(kind: str) -> bool:
    """Return whether a format pairs each round from the results of the rounds before it."""
    schedules: type[Schedule] = FORMATS[kind]
    return schedules.PAIRS_ROUNDS


def schedule_of(
    parameters: Mapping[str, Any], entrants: Sequence[Entrant], rounds: int, seed: int, width: int
) -> Schedule:
    """Return the schedule of a tournament.

    ``parameters`` holds the format's name as ``kind`` and its own parameters; ``rounds`` and ``seed`` go to
    the formats that have them, ``width`` is the number of digits of a bot's number in keys.
    """
    kind = FORMATS[parameters["kind"]]
    common = {"rounds": rounds, "seed": seed, "width": width}
    known = {field.name for field in fields(kind)}
    own = {name: value for name, value in parameters.items() if name != "kind"}
    schedule: Schedule = kind(
        entrants=entrants, **{name: common[name] for name in common if name in known}, **own
    )
    return schedule


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
