"""How Python runs a process that hears of many games: its threads take turns often, and it looks for garbage
in cycles seldom."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = (20_000, 20, 20)
"""Objects more than before, and rounds of the younger.  A game that arrives is a thousand objects, none in a
cycle: with Python's own 700, 10 and 10 a fourth of the head's time for a game went into looking."""
SWITCH_S = 0.0005
"""How long a thread may keep the interpreter while others wait, at most.  Python's own 5 ms would be paid for
each word that one thread has for another while a third one computes."""


@contextmanager
def many_games() -> Iterator[None]:
    """Meanwhile, in this process."""
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(*SELDOM)
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
