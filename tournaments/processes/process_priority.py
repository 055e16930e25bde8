"""Scheduling priority (nice values) of Kalarena's own processes."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")
"""Nice value of this process's session.

Where Linux shares processors between sessions, sched(7), nice values of processes count within one session
alone.
"""


def give_way(nice: int) -> None:
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
