"""Speed of a host's cores, and time limits that are scaled by it.

The speed is measured by a fixed job that is typical of bots: walking a tree of Kalah positions.  It is plain
Python, so that only hosts with the same version of Python can be compared: workers with another version are
refused.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from referee.games.catalog import parse_game
from referee.games.perft import perft
from referee.judge.clock import TimeControl

DIGITS = 6
"""Decimals of seconds: microseconds, as exact as any measurement here, and readable as text."""


def scaled(control: TimeControl, reference_speed: float | None, host_speed: float | None) -> TimeControl:
    """Return a time control for a host in which a bot can compute as much as on the reference.

    Both speeds are in positions per second, see tournaments/config/host_speed.py; where one of them is
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


GAME, DEPTH = "kalah(6,4)", 6
POSITIONS = 23_233
"""Number of sequences of DEPTH plies, see tests/config/test_host_speed.py; a walk of 30 ms or so."""
REPETITIONS = 8
"""Number of walks, of which the fastest counts: disturbances make a core slower, never faster."""
REFERENCE_SPEED = 1_000_000.0
"""Positions per second of the core for which time limits are specified.

It applies where limits are scaled and no other reference is given.  Cores of servers were seen to do 700,000
to 1,400,000 with Python 3.11.
"""


def measure(clock: Callable[[], float] = time.process_time) -> float:
    """Return the positions per second of one core, by the fastest of some repetitions; takes 0.3 s.

    By default ``clock`` counts the CPU time of this process alone, in seconds: programs that run beside it do
    not make the host seem slower than it is when it plays.
    """
    game = parse_game(GAME)
    start = game.initial_state()
    shortest_s = float("inf")
    for _ in range(REPETITIONS):
        began = clock()
        perft(game, start, DEPTH)
        shortest_s = min(shortest_s, clock() - began)
    return POSITIONS / shortest_s
