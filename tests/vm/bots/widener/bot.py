"""A bot that widens its affinity mask, moves to each core in turn, and reports the cores on which it ran."""

import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from first_legal import main  # type: ignore[import-not-found]

PROCESSOR = 36
"""Index of the field ``processor`` behind the name in /proc/PID/stat (man 5 proc_pid_stat)."""
CORES = range(64)
LOOK_S = 0.001
"""CPU time before it looks where it is."""


def move_to(cores: Iterable[int]) -> bool:
    """Change the affinity mask; return whether the call succeeds, which it may do without effect."""
    try:
        os.sched_setaffinity(0, cores)
    except OSError:
        return False
    return True


def core_after_computing() -> str:
    """Compute for a moment; return the core on which this process then runs."""
    until = time.process_time() + LOOK_S
    while time.process_time() < until:
        pass
    return Path("/proc/self/stat").read_text().rpartition(")")[2].split()[PROCESSOR]


if sys.platform == "linux":
    done = "widened" if move_to(CORES) else "refused"
    seen = {core_after_computing()}
    for core in CORES:
        if move_to([core]):
            seen.add(core_after_computing())
    print(done, *sorted(seen), file=sys.stderr, flush=True)
main()
