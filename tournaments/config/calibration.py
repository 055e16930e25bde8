"""Speed measurement of one core: a fixed job, timed.

The job is typical of bots: walking a tree of Kalah positions.  It is plain Python, so that only hosts with
the same version of Python can be compared: workers with another version are refused.
"""

import time
from collections.abc import Callable

from referee.games.catalog import parse_game
from referee.games.perft import perft

GAME, DEPTH = "kalah(6,4)", 6
POSITIONS = 23_233
"""Number of sequences of DEPTH plies, see tests/test_cluster_calibration.py; a walk of 30 ms or so."""
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
