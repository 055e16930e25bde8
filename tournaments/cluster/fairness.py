"""The same time on hosts of different speed."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from referee.clock import TimeControl

DIGITS = 6
"""Microseconds: as exact as anything here is timed, and a text that people can read."""


def scaled(control: TimeControl, reference_speed: float | None, host_speed: float | None) -> TimeControl:
    """What a time control is on a host, so that a bot can compute as much in it as on the reference.

    Both speeds are in positions per second, see tournaments/cluster/calibration.py; where one of them is
    None, nothing is scaled.  The margin stays as it is: it forgives what a line takes between two processes.
    """
    if reference_speed is None or host_speed is None:
        return control
    ratio = reference_speed / host_speed

    def longer(seconds: float) -> float:
        return round(seconds * ratio, DIGITS)

    return replace(
        control,
        move_s=None if control.move_s is None else longer(control.move_s),
        game_s=None if control.game_s is None else longer(control.game_s),
        increment_s=longer(control.increment_s),
        start_s=longer(control.start_s),
        setup_s=longer(control.setup_s),
    )


@dataclass(frozen=True, slots=True)
class ScaledControl:
    """What a tournament's time limits are on each host."""

    control: TimeControl
    """On the reference."""
    reference_speed: float

    def on(self, host_speed: float | None) -> TimeControl:
        """On a host of this speed; where that was not measured, as on the reference."""
        return scaled(self.control, self.reference_speed, host_speed)

    def to_json(self) -> dict[str, Any]:
        """As a store keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ScaledControl":
        """What ``to_json`` made this of."""
        return cls(TimeControl(**data["control"]), data["reference_speed"])
