"""How fast one core of a host is: a fixed job, timed.

The job is what bots do: walking a tree of Kalah positions.  It is plain Python, so that only hosts with the
same version of Python can be compared: workers with another one are turned away.
"""

import time
from collections.abc import Callable

from referee.games.catalog import parse_game
from referee.games.perft import perft

GAME, DEPTH = "kalah(6,4)", 6
POSITIONS = 23_233
"""Sequences of so many plies, see tests/test_cluster_calibration.py; a walk of 30 ms or so."""
REPETITIONS = 8
"""The fastest counts: whatever disturbs a core makes it slower, never faster."""
REFERENCE_SPEED = 1_000_000.0
"""Positions per second of the core that time limits are meant for, where they are scaled and no other
reference is given.  Cores of servers were seen to do 700,000 to 1,400,000 with Python 3.11."""


def measure(clock: Callable[[], float] = time.process_time) -> float:
    """Positions per second of one core, by the fastest of some repetitions; takes 0.3 s.

    By default ``clock`` counts the CPU time of this process alone, in seconds: programs that run beside it
    do not make the host seem slower than it is when it plays.
    """
    game = parse_game(GAME)
    start = game.initial_state()
    shortest_s = float("inf")
    for _ in range(REPETITIONS):
        began = clock()
        perft(game, start, DEPTH)
        shortest_s = min(shortest_s, clock() - began)
    return POSITIONS / shortest_s
