"""All tournament formats by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
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

FORMATS: dict[str, Callable[..., Schedule]] = {
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
"""The format of a tournament that names none."""


def schedule_of(
    parameters: Mapping[str, Any], entrants: Sequence[Entrant], rounds: int, seed: int, width: int
) -> Schedule:
    """The schedule of a tournament.

    ``parameters`` holds the format's name as ``kind`` and its own parameters; ``rounds`` and ``seed`` go to
    the formats that have them, ``width`` is the number of digits of a bot's number in keys.
    """
    kind = FORMATS[parameters["kind"]]
    common = {"rounds": rounds, "seed": seed, "width": width}
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    own = {name: value for name, value in parameters.items() if name != "kind"}
    return kind(entrants=entrants, **{name: common[name] for name in common if name in known}, **own)
