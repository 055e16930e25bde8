"""Time limits that are scaled by the speed of a host."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from referee.judge.clock import TimeControl

DIGITS = 6
"""Decimals of seconds: microseconds, as exact as any measurement here, and readable as text."""


def scaled(control: TimeControl, reference_speed: float | None, host_speed: float | None) -> TimeControl:
    """Return a time control for a host in which a bot can compute as much as on the reference.

    Both speeds are in positions per second, see tournaments/config/calibration.py; where one of them is
    None, nothing is scaled.  The margin is not scaled: it covers the time that a line takes between two
    processes.
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
    """Time limits of a tournament on hosts of any speed."""

    control: TimeControl
    """Time control on the reference."""
    reference_speed: float

    def on(self, host_speed: float | None) -> TimeControl:
        """Return the time control on a host of this speed; an unknown speed counts as the reference speed."""
        return scaled(self.control, self.reference_speed, host_speed)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for a store."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ScaledControl":
        """Create the object from the result of ``to_json``."""
        return cls(TimeControl(**data["control"]), data["reference_speed"])
