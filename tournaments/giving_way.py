"""How much a process of ours gives way to others, or goes before them."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")
"""Where Linux shares processors between sessions, sched(7), nice values count within one session alone; here
is that of ours."""


def give_way(nice: int) -> None:
    """Give way by so much (0 to 19) more than an ordinary process, and never less than before.

    Who started us may go before others, which we do not take over.
    """
    is_now = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, min(19, max(0, is_now) + nice))


@contextlib.contextmanager
def going_first(nice: int) -> Iterator[None]:
    """Go before others in the block: with this nice value (below 0), in a session with the same one.

    Only root may, and whom root lets: with `Nice=` in a unit of systemd.  For others nothing happens.  What
    is started meanwhile would go first, too, unless it gives way.
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
        if session is not None:  # others may be in it, whose shell has started us
            _set_autogroup_nice(session)


def _autogroup_nice() -> int | None:
    """The session's nice value; None where there is none."""
    try:
        return int(AUTOGROUP.read_text(encoding="utf-8").rpartition("nice ")[2])
    except (OSError, ValueError):
        return None


def _set_autogroup_nice(nice: int) -> None:
    with contextlib.suppress(OSError):
        AUTOGROUP.write_text(str(nice), encoding="utf-8")
