"""Settings of Kalarena's own processes: scheduling priority (nice values) and interpreter."""

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")
"""Nice value of this process's session.

Where Linux shares processors between sessions, sched(7), nice values of processes count within one session
alone.
"""


def lower_priority(nice: int) -> None:
    """Lower the priority by ``nice`` (0 to 19) below that of an ordinary process, and never raise it.

    A higher priority of the parent process is not inherited.
    """
    is_now = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, min(19, max(0, is_now) + nice))


@contextlib.contextmanager
def going_first(nice: int) -> Iterator[None]:
    """Raise the priority in the block: to this nice value (below 0), also of the session.

    Only root may do so, or a process that root permits, with `Nice=` in a unit of systemd.  For others
    nothing happens.  Processes that are started meanwhile have the same priority, unless they lower it.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(nice, before))
    session = _autogroup_nice()
    _set_autogroup_nice(nice if session is None else min(nice, session))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, before)
        if session is not None:  # other processes may be in it, whose shell has started this one
            _set_autogroup_nice(session)


def _autogroup_nice() -> int | None:
    """Return the session's nice value; None where there is none."""
    try:
        return int(AUTOGROUP.read_text(encoding="utf-8").rpartition("nice ")[2])
    except (OSError, ValueError):
        return None


def _set_autogroup_nice(nice: int) -> None:
    with contextlib.suppress(OSError):
        AUTOGROUP.write_text(str(nice), encoding="utf-8")


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
def prepare_for_many_games() -> Iterator[None]:
    """Use these settings in this process during the block."""
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(*SELDOM)
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
