"""Interpreter settings for a process that handles many games: frequent thread switches, rare collections."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = (20_000, 20, 20)
"""Thresholds of the garbage collector: objects, and collections of the younger generations.

A game that arrives is a thousand objects, none in a cycle: with Python's own 700, 10 and 10 a fourth of the
head's time for a game was spent on collections.
"""
SWITCH_S = 0.0005
"""Maximum seconds for which a thread keeps the interpreter while others wait.

Python's own 5 ms would be added to each message between two threads while a third one computes.
"""


@contextmanager
def many_games() -> Iterator[None]:
    """Use these settings in this process during the block."""
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(*SELDOM)
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
