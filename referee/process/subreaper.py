"""Adoption and removal of processes that a bot left behind outside its process group.

A bot's child that called setsid() is no longer in a process group of the referee, and would be adopted by the
system's init when its parent ends.  On Linux a process can adopt such orphans itself
(PR_SET_CHILD_SUBREAPER), and can then find and kill them: a worker after a game, a runner when a worker was
killed.  Processes that this one started for other purposes (workers, multiprocessing's resource tracker) are
in its own session, and spared.  A bot begins a session of its own, and no process can return to another one.
Other children that have a session of their own, such as a cluster's scheduler or programs that the user of a
notebook started, are registered with ``spare`` or ``spare_children``.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from referee.sandbox.reaper import reaper_pid

PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h"""
KILL_LIMIT_S = 1.0
"""Seconds after which processes are given up that fork faster than they are killed, or do not end."""
KILL_POLL_S = 0.001
"""Seconds between two attempts while no process ends."""

_spared: set[int] = set()
"""Process ids of children that are in other sessions and are no orphans."""


def become_subreaper() -> None:
    """Make this process adopt orphans among its descendants (on Linux; no effect elsewhere)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@contextlib.contextmanager
def spare(pid: int) -> Iterator[None]:
    """Protect a child that has a session of its own from ``kill_orphans`` during the block."""
    _spared.add(pid)
    try:
        yield
    finally:
        _spared.discard(pid)


@contextlib.contextmanager
def spare_children() -> Iterator[None]:
    """Protect the children that this process has now from ``kill_orphans`` during the block.

    For a process in which other code has started programs, such as a notebook's.
    """
    with contextlib.ExitStack() as stack:
        for pid in _foreign_children():
            stack.enter_context(spare(pid))
        yield


def kill_orphans() -> list[int]:
    """Kill and reap all children of this process that are in other sessions, for KILL_LIMIT_S at most.

    This process's sandbox reaper, which has a session of its own, and spared children are not killed.

    Returns:
        The numbers of the processes that could not be ended.
    """
    until = time.monotonic() + KILL_LIMIT_S
    while (found := _foreign_children()) and time.monotonic() < until:
        # First all are killed: a process that another one of them traces cannot be reaped before that one.
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not sum(map(_is_reaped, found)):
            time.sleep(KILL_POLL_S)
    return found


def _foreign_children() -> list[int]:
    """Return the children in other sessions that are not spared."""
    own, spared = os.getsid(0), {*_spared, reaper_pid()}
    return [pid for pid in _children() if pid not in spared and _session(pid) not in (own, None)]


def _is_reaped(pid: int) -> bool:
    """Reap a child if it has ended, and return True; otherwise False."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False


def reap_orphans() -> None:
    """Reap the ended children of this process that are in other sessions.

    For a process that lives long: it adopts the sandbox reapers of the processes that it started, and
    bubblewrap's first processes, which end by themselves later than their parents.
    """
    for pid in _foreign_children():
        with contextlib.suppress(ChildProcessError):  # another thread has reaped it
            os.waitpid(pid, os.WNOHANG)


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
