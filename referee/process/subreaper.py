"""Adoption and removal of processes that a bot left behind outside its process group.

A bot's child that called setsid() is no longer in a process group of the referee, and would be adopted by the
system's init when its parent ends.  On Linux a process can adopt such orphans itself
(PR_SET_CHILD_SUBREAPER), and can then find and kill them: a worker after a game, a runner when a worker was
killed.  Processes that this one started for other purposes (workers, multiprocessing's resource tracker) are
in its own session, and spared.  A bot begins a session of its own, and no process can return to another one.
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from referee.sandbox.reaper import reaper_pid

PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h"""
KILL_LIMIT_S = 1.0
"""Seconds after which a bot that forks faster than its processes are killed is given up."""


def become_subreaper() -> None:
    """Make this process adopt orphans among its descendants (on Linux; no effect elsewhere)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_orphans() -> int:
    """Kill and reap all children of this process that are in other sessions, until there are none.

    This process's sandbox reaper, which has a session of its own, is spared.  Returns the number of killed
    processes.
    """
    killed = 0
    until = time.monotonic() + KILL_LIMIT_S
    own, spared = os.getsid(0), reaper_pid()
    while children := [pid for pid in _children() if pid != spared and _session(pid) not in (own, None)]:
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                killed += 1
            except (ProcessLookupError, ChildProcessError):
                continue
        if time.monotonic() > until:
            break
    return killed


def _session(pid: int) -> int | None:
    """Return the session of a process; None if it is gone."""
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
