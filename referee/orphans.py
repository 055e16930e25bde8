"""Processes that a bot left behind outside its process group.

A bot's child that called setsid() is in no group of ours any more, and would be adopted by the system
when its parent ends.  On Linux a process can ask to adopt such orphans itself (PR_SET_CHILD_SUBREAPER),
and can then find and end them.  For a process that has no other children than bots (a worker, `kalarena
play`), or for one whose other children are in its own session (a runner, which finds the bots of a worker
that was killed).
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h"""
SWEEP_LIMIT_S = 1.0
"""A bot that forks faster than it is swept is given up after this long."""


def adopt_orphans() -> None:
    """Become the one that orphans below this process are given to; does nothing where that is not known."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def sweep_orphans(*, of_others: bool = False) -> int:
    """Kill and reap all children of this process until there are none; return how many there were.

    ``of_others`` spares those of this process's own session: workers, which it started itself.  Bots, and
    what they leave behind, have sessions of their own.
    """
    swept = 0
    until = time.monotonic() + SWEEP_LIMIT_S
    own = os.getsid(0)
    while children := [pid for pid in _children() if not of_others or _session(pid) not in (own, None)]:
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                swept += 1
            except (ProcessLookupError, ChildProcessError):
                continue
        if time.monotonic() > until:
            break
    return swept


def _session(pid: int) -> int | None:
    """The session of a process; None if it is gone."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _children() -> list[int]:
    found: list[int] = []
    try:
        for task in Path("/proc/self/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:  # no /proc, or a thread that has just ended
        return found
    return found
