"""Settings of Kalarena's own processes: signals, scheduling priority (nice values) and interpreter."""

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")
"""File with the nice value of this process's session.

If Linux shares processors between sessions, sched(7), nice values of processes count only within a session.
"""


def stopping_signals() -> list[signal.Signals]:
    """Return the signals that stop a program: also SIGHUP of a closed terminal, unless nohup ignores it."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM] + ([] if ignored else [signal.SIGHUP])


@contextlib.contextmanager
def stopping_deferred() -> Iterator[None]:
    """Defer the signals that stop this program until the end of the block, so that nothing is left behind.

    Signals without a handler are not deferred.  In another thread than the main one, no signal is.
    """
    deferred: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in stopping_signals():
            if callable(signal.getsignal(number)):
                before[number] = signal.signal(number, lambda number, _frame: deferred.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if deferred:
            signal.raise_signal(deferred[0])


def lower_priority(nice: int) -> bool:
    """Lower the priority by ``nice`` (0 to 19) below that of an ordinary process.

    The priority is never raised, and a higher priority of the parent process is not kept.  Returns True, as
    the initializer of a worker process must.
    """
    current = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, min(19, max(0, current) + nice))
    return True


@contextlib.contextmanager
def raised_priority(nice: int) -> Iterator[None]:
    """Raise the priority of the process and its session in the block, to this nice value (below 0).

    Only root may do so, or a process with `Nice=` in its systemd unit; for others there is no effect.
    Processes that are started meanwhile have the same priority, unless they lower it.
    """
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(nice, before))
    # If another process has raised the session's priority, it puts the old value back.
    lower = session if (session := _autogroup_nice()) is not None and session > nice else None
    if lower is not None:
        _set_autogroup_nice(nice)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, before)
        if lower is not None:  # other processes may be in it, whose shell has started this one
            _set_autogroup_nice(lower)


def _autogroup_nice() -> int | None:
    """Return the session's nice value; None where there is none."""
    try:
        return int(AUTOGROUP.read_text(encoding="utf-8").rpartition("nice ")[2])
    except (OSError, ValueError):
        return None


def _set_autogroup_nice(nice: int) -> None:
    with contextlib.suppress(OSError):
        AUTOGROUP.write_text(str(nice), encoding="utf-8")


GC_THRESHOLDS = (20_000, 20, 20)
"""Thresholds of the garbage collector: objects, and collections of the younger generations.

A received game is a thousand objects, none in a cycle: with Python's own 700, 10 and 10 the head of a cluster
spent a fourth of its time for a game on collections.
"""
SWITCH_S = 0.0005
"""Maximum seconds for which a thread keeps the interpreter while others wait.

Python's own 5 ms would be added to each message between two threads while a third one computes.
"""


@contextlib.contextmanager
def prepare_for_many_games() -> Iterator[None]:
    """Use GC_THRESHOLDS and SWITCH_S in this process during the block."""
    thresholds, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(interval)
